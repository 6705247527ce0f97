"""Several networks that answer as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import nn


class Ensemble(nn.Module):
    """Answers with the mean of its networks' logits.

    The likeliest class is that of their sum, and probabilities are as sure as one network's.

    Examples
    --------
    >>> Ensemble([nn.Identity(), nn.Identity()])(torch.tensor([[1.0, 2.0]]))
    tensor([[1., 2.]])
    """

    def __init__(self, networks: Iterable[nn.Module]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the mean logits of a batch, shape (B, n_outputs)."""
        return torch.stack([network(x) for network in self.networks]).mean(dim=0)


def together(networks: Sequence[nn.Module]) -> nn.Module:
    """Return a network that answers for all: one by itself, several as an ensemble."""
    return networks[0] if len(networks) == 1 else Ensemble(networks)


def last_member(classifier: nn.Module) -> nn.Module:
    """Return the network of a classifier that was trained last: the last one of an ensemble."""
    return classifier.networks[-1] if isinstance(classifier, Ensemble) else classifier
