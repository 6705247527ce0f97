"""Which epoch's weights are kept, judged on noisy examples held out of training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    for network in networks.values():
        network.eval()
    share = task.index[fabric.global_rank :: fabric.world_size]
    sums = torch.zeros(3, device=fabric.device)
    for batch in iterate(task, in_batches(share, EVALUATION_BATCH), fabric.device):
        log_probs = score(networks, batch).float()
        right = (log_probs.argmax(dim=1) == batch.y).float()
        nll = -log_probs.gather(1, batch.y[:, None]).squeeze(1)
        sums += torch.stack(
            [(right * batch.weight).sum(), (nll * batch.weight).sum(), batch.weight.sum()]
        )
    right_sum, nll_sum, weight = all_sum(fabric, sums).tolist()
    return {"val_accuracy": right_sum / weight, "val_loss": nll_sum / weight}
