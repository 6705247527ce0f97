"""Several networks, or several views of an image, that answer as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import nn


class Ensemble(nn.Module):
    """Answers with the mean of its networks' logits.

    The likeliest class is that of their sum, and probabilities are as sure as one network's.

    Parameters
    ----------
    networks
        The networks, at least one.
    mirrored
        Whether they look at images a second time, with left and right exchanged. Where training
        images were mirrored at random, both views are equally good.

    Examples
    --------
    >>> Ensemble([nn.Identity(), nn.Identity()])(torch.tensor([[1.0, 2.0]]))
    tensor([[1., 2.]])
    """

    def __init__(self, networks: Iterable[nn.Module], mirrored: bool = False) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.mirrored = mirrored

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the mean logits of a batch, shape (B, n_outputs)."""
        views = [x, x.flip(-1)] if self.mirrored else [x]
        return torch.stack([network(view) for network in self.networks for view in views]).mean(0)


def together(networks: Sequence[nn.Module], mirrored: bool = False) -> nn.Module:
    """Return a network that answers for all: one with one view by itself, else an ensemble."""
    return networks[0] if len(networks) == 1 and not mirrored else Ensemble(networks, mirrored)


def last_member(classifier: nn.Module) -> nn.Module:
    """Return the network of a classifier that was trained last: the last one of an ensemble."""
    return classifier.networks[-1] if isinstance(classifier, Ensemble) else classifier
