"""The Bayes label transition network of section 4.3: a trunk and a C×C head."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import torch
from torch import nn

from bltm.core.errors import InputError
from bltm.nets.heads import Base, DenseHead, PartsHead, Revise, TransitionHead
from bltm.nets.redirect import RedirectedHead, Seeing, View, view_size
from bltm.nets.registry import NetFactory, make_trunk

# From this many classes on the head is a mixture of parts.
MANY_CLASSES = 100


class TransitionNetwork(nn.Module):
    """T*(x), the transition matrix from Bayes labels to noisy labels for each input (Eq. 2).

    Training goes through :meth:`forward`, as wrappers for several devices require. Rows and columns
    are made from features without building T*(x) where the head can.

    Parameters
    ----------
    trunk
        Module that maps a batch of inputs to features (B, d).
    head
        Module that maps features to rows and columns of T*(x).
    """

    def __init__(self, trunk: nn.Module, head: TransitionHead) -> None:
        super().__init__()
        self.trunk = trunk
        self.head = head

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features of a batch of inputs, shape (B, d)."""
        features: torch.Tensor = self.trunk(x)
        return features

    def forward(
        self, x: torch.Tensor, bayes_labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ``log T[b, y*_b, :]`` for Eq. 3, shape (B, C), and the strain, shape (B, 2).

        The strain is what a penalty is put on: how far T*(x) is from the base matrix, in the row of
        the Bayes label and in the other rows.
        """
        return self.head.rows(self.features(x), bayes_labels)

    def log_rows(self, features: torch.Tensor, bayes_labels: torch.Tensor) -> torch.Tensor:
        """Return ``log T[b, y*_b, :]``, shape (B, C)."""
        return self.head.rows(features, bayes_labels)[0]

    def log_columns(
        self, features: torch.Tensor, noisy_labels: torch.Tensor, revise: Revise = None
    ) -> torch.Tensor:
        """Return ``log T[b, :, ỹ_b]``, shape (B, C): all that Eq. 5 needs of a frozen T*(x)."""
        return self.head.log_columns(features, noisy_labels, revise)

    def matrix(self, features: torch.Tensor, revise: Revise = None) -> torch.Tensor:
        """Return T*(x), shape (B, C, C)."""
        return self.head.matrix(features, revise)

    def log_noisy(
        self, features: torch.Tensor, log_probs: torch.Tensor, revise: Revise = None
    ) -> torch.Tensor:
        """Return ``log (p · T*(x))`` for given log p, both (B, C)."""
        return self.head.log_noisy(features, log_probs, revise)

    def redirected(self, input_shape: Sequence[int]) -> TransitionNetwork:
        """Return the network with flips that the input itself may redirect; so far it does not."""
        head = RedirectedHead(self.head, view_size(input_shape))
        return TransitionNetwork(Seeing(self.trunk, View(input_shape)), head)


def make_transition_network(
    net: str | NetFactory,
    input_shape: Sequence[int],
    n_classes: int,
    base: Base = None,
    head: Literal["auto", "dense", "parts"] = "auto",
    weights: str | Path | None = None,
) -> TransitionNetwork:
    """Build a transition network.

    Parameters
    ----------
    net
        Name or function of the trunk, as for :func:`bltm.nets.registry.make_net`.
    input_shape
        Shape of one input.
    n_classes
        Number of classes C.
    base
        Class-dependent matrix (C, C) to start from, or None for the paper's plain head.
    head
        ``"dense"`` for a linear layer with C² outputs, ``"parts"`` for a mixture of matrices;
        ``"auto"`` takes the mixture from 100 classes on.
    weights
        File with weights for the trunk.

    Examples
    --------
    >>> network = make_transition_network("mlp", (4,), 3)
    >>> network.matrix(network.features(torch.zeros(2, 4))).shape
    torch.Size([2, 3, 3])
    """
    if head not in ("auto", "dense", "parts"):
        raise InputError("head", f"there is no head {head!r}", "Known are auto, dense, parts.")
    trunk, n_features = make_trunk(net, input_shape, weights)
    if head == "parts" or (head == "auto" and n_classes >= MANY_CLASSES):
        return TransitionNetwork(trunk, PartsHead(n_features, n_classes, base=base))
    return TransitionNetwork(trunk, DenseHead(n_features, n_classes, base))
