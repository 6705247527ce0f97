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
    """Negative log-likelihoods of held-out noisy labels and their weights, shape (M,) each."""

    losses: torch.Tensor
    weights: torch.Tensor

    @classmethod
    @torch.inference_mode()
    def of(
        cls, networks: Mapping[str, nn.Module], score: Score, task: Task, fabric: Fabric
    ) -> HeldOut:
        """Judge the networks as they are now; each process judges its share, all know all."""
        # A process may have no share of a few examples.
        parts = [torch.empty(2, 0, device=fabric.device)] + [
            torch.stack([_losses(log_probs, batch), batch.weight])
            for log_probs, batch in _scored(networks, score, task, fabric)
        ]
        whole = torch.zeros(2, len(task), device=fabric.device)
        whole[:, fabric.global_rank :: fabric.world_size] = torch.cat(parts, dim=1)
        # On the CPU: not every device knows double precision.
        losses, weights = all_sum(fabric, whole).cpu().double()
        return cls(losses, weights)

    @property
    def mean(self) -> float:
        """The weighted mean loss."""
        return float(self.losses @ self.weights / self.weights.sum())

    def worse_than(self, other: HeldOut, errors: float) -> bool:
        """Tell whether the mean loss is above another's by more than so many standard errors."""
        lost = HeldOut(self.losses - other.losses, self.weights)
        error = (self.weights * (lost.losses - lost.mean)).norm() / self.weights.sum()
        return lost.mean > errors * float(error)


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
