"""What all networks of this package have in common: features, and one linear layer on top."""

from __future__ import annotations

import torch
from torch import nn

NORMALISING = (nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)


def normalises(network: nn.Module) -> bool:
    """Return whether a network has layers that normalise what goes through them.

    Examples
    --------
    >>> normalises(nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4))), normalises(nn.Linear(2, 4))
    (True, False)
    """
    return any(isinstance(layer, NORMALISING) for layer in network.modules())


class Network(nn.Module):
    """A network that is a feature extractor followed by the linear layer ``fc``.

    Subclasses set ``n_features`` and ``fc`` and implement :meth:`features`. With ``fc`` replaced by
    ``nn.Identity()`` the network is the trunk of a transition network.

    Attributes
    ----------
    n_features
        Number of features d that go into ``fc``.
    fc
        The classification head.
    """

    n_features: int
    fc: nn.Module

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features of a batch, shape (B, n_features)."""
        raise NotImplementedError

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of a batch, shape (B, n_outputs)."""
        logits: torch.Tensor = self.fc(self.features(x))
        return logits
