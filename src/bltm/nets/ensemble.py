"""Several networks that answer as one."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn


class Ensemble(nn.Module):
    """Sums the logits of its networks, as DivideMix does when it is tested.

    Examples
    --------
    >>> Ensemble([nn.Identity(), nn.Identity()])(torch.tensor([[1.0, 2.0]]))
    tensor([[2., 4.]])
    """

    def __init__(self, networks: Iterable[nn.Module]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the summed logits of a batch, shape (B, n_outputs)."""
        return torch.stack([network(x) for network in self.networks]).sum(dim=0)
