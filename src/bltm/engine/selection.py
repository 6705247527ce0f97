"""Which epoch's weights are kept, judged on noisy examples held out of training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from lightning_fabric import Fabric
from torch import nn

from bltm.engine.batches import Batch, Task, in_batches, iterate
from bltm.engine.devices import all_sum

Score = Callable[[Mapping[str, nn.Module], Batch], torch.Tensor]
"""Computes log-probabilities of the noisy labels, shape (B, C)."""

EVALUATION_BATCH = 512


@dataclass(frozen=True)
class Best:
    """A copy of the weights, the epoch they are from, and what they scored."""

    epoch: int
    metrics: dict[str, float]
    weights: dict[str, dict[str, torch.Tensor]]

    @classmethod
    def of(cls, modules: Mapping[str, nn.Module], epoch: int, metrics: dict[str, float]) -> Best:
        """Copy the modules' weights as they are now."""
        weights = {
            name: {key: value.detach().clone() for key, value in module.state_dict().items()}
            for name, module in modules.items()
        }
        return cls(epoch, metrics, weights)

    def restore(self, modules: Mapping[str, nn.Module]) -> None:
        """Put the kept weights back."""
        for name, module in modules.items():
            module.load_state_dict(self.weights[name])


def improves(metrics: Mapping[str, float], best: Best | None, select: str) -> bool:
    """Tell whether an epoch beats the best one so far; ties in accuracy go to the lower loss."""
    if best is None:
        return True
    if select == "loss":
        return metrics["val_loss"] < best.metrics["val_loss"]
    new = (metrics["val_accuracy"], -metrics["val_loss"])
    return new > (best.metrics["val_accuracy"], -best.metrics["val_loss"])


@torch.inference_mode()
def evaluate(
    networks: Mapping[str, nn.Module], score: Score, task: Task, fabric: Fabric
) -> dict[str, float]:
    """Return weighted accuracy and mean negative log-likelihood of the noisy labels.

    Each process judges its share of the examples; the sums are added up.
    """
    sums = torch.zeros(3, device=fabric.device)
    for log_probs, batch in _scored(networks, score, task, fabric):
        right = (log_probs.argmax(dim=1) == batch.y).float()
        sums += torch.stack(
            [
                (right * batch.weight).sum(),
                (_losses(log_probs, batch) * batch.weight).sum(),
                batch.weight.sum(),
            ]
        )
    right_sum, nll_sum, weight = all_sum(fabric, sums).tolist()
    return {"val_accuracy": right_sum / weight, "val_loss": nll_sum / weight}


@dataclass(frozen=True)
class HeldOut:
    """Negative log-likelihoods of the noisy labels that this process judges, and their weights."""

    losses: torch.Tensor
    weights: torch.Tensor

    @classmethod
    @torch.inference_mode()
    def of(
        cls, networks: Mapping[str, nn.Module], score: Score, task: Task, fabric: Fabric
    ) -> HeldOut:
        """Judge the networks as they are now."""
        parts = [
            (_losses(log_probs, batch), batch.weight)
            for log_probs, batch in _scored(networks, score, task, fabric)
        ]
        # A process may have no share of a few examples.
        nothing = torch.empty(0, device=fabric.device)
        losses, weights = zip((nothing, nothing), *parts, strict=True)
        return cls(torch.cat(losses).double(), torch.cat(weights).double())

    def worse_than(self, other: HeldOut, errors: float, fabric: Fabric) -> bool:
        """Tell whether the mean loss is above another's by more than so many standard errors."""
        lost = self.losses - other.losses
        total, weight = all_sum(
            fabric, torch.stack([(self.weights * lost).sum(), self.weights.sum()])
        )
        mean = total / weight
        spread = all_sum(fabric, (self.weights**2 * (lost - mean) ** 2).sum()).sqrt() / weight
        return bool(mean > errors * spread)


def _scored(
    networks: Mapping[str, nn.Module], score: Score, task: Task, fabric: Fabric
) -> Iterator[tuple[torch.Tensor, Batch]]:
    """Yield log-probabilities for the batches of this process."""
    for network in networks.values():
        network.eval()
    share = task.index[fabric.global_rank :: fabric.world_size]
    for batch in iterate(task, in_batches(share, EVALUATION_BATCH), fabric.device):
        yield score(networks, batch).float(), batch


def _losses(log_probs: torch.Tensor, batch: Batch) -> torch.Tensor:
    return -log_probs.gather(1, batch.y[:, None]).squeeze(1)
