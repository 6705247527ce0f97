"""Networks whose logits are their parameters, and batches to try steps on."""

from collections.abc import Sequence

import torch
from torch import nn

from bltm.engine.batches import Batch, Moment


class Fixed(nn.Module):
    """Answers a batch with its parameter."""

    def __init__(self, logits: torch.Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits.clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.logits

    def touched(self) -> list[int]:
        """Rows that have a gradient."""
        grad = self.logits.grad
        return [] if grad is None else grad.abs().sum(1).nonzero().squeeze(1).tolist()


def fixed_pair(first: torch.Tensor, second: torch.Tensor) -> dict[str, Fixed]:
    return {"classifier": Fixed(first), "peer": Fixed(second)}


def batch_of(
    labels: Sequence[int],
    moment: Moment | None = None,
    weight: torch.Tensor | None = None,
    **extras: torch.Tensor,
) -> Batch:
    n = len(labels)
    return Batch(
        index=torch.arange(n),
        x=torch.zeros(n, 1),
        y=torch.tensor(labels),
        weight=torch.ones(n) if weight is None else weight,
        extras=extras,
        moment=moment or Moment(),
    )


def random_logits(seed: int, n: int = 12, n_classes: int = 3) -> torch.Tensor:
    return 2 * torch.randn(n, n_classes, generator=torch.Generator().manual_seed(seed))
