"""T*(x) whose flips are redirected by the input itself.

Labels can go wrong by what a network sees in an input, and by the bare numbers: brightness, one
column of a table. The trunk of a transition network learns the former from few collected examples;
the latter is linear and needs no trunk::

    T(x)[i, i] as before,    T(x)[i, j] ∝ T'(x)[i, j] exp(w_ij · z(x) + b_ij)  for j ≠ i,

where T' is what the inner head says. How often labels of a class go wrong is left to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from bltm.core.matrix import log_entries
from bltm.nets.heads import Revise, TransitionHead

# Images are looked at in so many rows and columns.
SIDE = 8


def view_size(input_shape: Sequence[int]) -> int:
    """Return how many numbers the view of an input has.

    Examples
    --------
    >>> view_size((3, 32, 32)), view_size((1, 28, 28)), view_size((20,))
    (192, 64, 20)
    """
    size = 1
    for number, side in enumerate(input_shape):
        size *= side if number == 0 else min(side, SIDE)
    return size


class View(nn.Module):
    """The bare input as a vector z(x): a table's columns, an image's means over 8×8 fields.

    Parameters
    ----------
    input_shape
        Shape of one input.

    Examples
    --------
    >>> View((1, 16, 16))(torch.ones(2, 1, 16, 16)).shape
    torch.Size([2, 64])
    """

    mean: torch.Tensor
    scale: torch.Tensor

    def __init__(self, input_shape: Sequence[int]) -> None:
        super().__init__()
        self.sides = tuple(min(side, SIDE) for side in input_shape[1:])
        size = view_size(input_shape)
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("scale", torch.ones(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return z(x), shape (B, d)."""
        seen = functional.adaptive_avg_pool2d(x, self.sides) if len(self.sides) == 2 else x
        return (seen.flatten(1) - self.mean) / self.scale


class Seeing(nn.Module):
    """A trunk whose features are followed by the view of the input, shape (B, d' + d)."""

    def __init__(self, trunk: nn.Module, view: View) -> None:
        super().__init__()
        self.trunk, self.view = trunk, view

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return features and view."""
        return torch.cat([self.trunk(x), self.view(x)], dim=1)


class RedirectedHead(TransitionHead):
    """A head whose flips are redirected by the last features, which are the view of the input.

    Parameters
    ----------
    inner
        The head that says how often labels go wrong, and whither as far as the trunk knows.
    n_view
        Length of the view.

    Examples
    --------
    >>> from bltm.nets.heads import DenseHead
    >>> head = RedirectedHead(DenseHead(2, 3, torch.full((3, 3), 1 / 3)), 1)
    >>> head.weight[0, 2] = 1.0
    >>> head.matrix(torch.tensor([[0.0, 0.0, 4.0]])).detach()[0].round(decimals=2).tolist()[0]
    [0.33000001311302185, 0.009999999776482582, 0.6499999761581421]
    """

    weight: torch.Tensor
    bias: torch.Tensor

    def __init__(self, inner: TransitionHead, n_view: int) -> None:
        super().__init__(inner.n_classes, None)
        self.inner, self.n_view = inner, n_view
        c = inner.n_classes
        self.register_buffer("weight", torch.zeros(c, c, n_view))
        self.register_buffer("bias", torch.zeros(c, c))

    @torch.no_grad()
    def set(self, weights: NDArray[np.float32]) -> None:
        """Take weights and, in the last column, offsets, shape (C, C, d + 1)."""
        values = torch.from_numpy(weights)
        self.weight.copy_(values[..., :-1])
        self.bias.copy_(values[..., -1])

    def rows(
        self, features: torch.Tensor, bayes_labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ``log T[b, y*_b, :]``, shape (B, C), and the inner head's strain, shape (B, 2)."""
        own, strain = self.inner.rows(features[:, : -self.n_view], bayes_labels)
        shifts = torch.einsum("bd,bjd->bj", self._view(features), self.weight[bayes_labels])
        at = torch.zeros_like(own, dtype=torch.bool)
        at[torch.arange(len(own), device=own.device), bayes_labels] = True
        return _redirected(own, shifts + self.bias[bayes_labels], at), strain

    def log_columns(
        self, features: torch.Tensor, noisy_labels: torch.Tensor, revise: Revise = None
    ) -> torch.Tensor:
        """Return ``log T[b, :, ỹ_b]``, shape (B, C)."""
        index = noisy_labels.view(-1, 1, 1).expand(-1, self.n_classes, 1)
        return log_entries(self.matrix(features, revise).gather(2, index).squeeze(2))

    def matrix(self, features: torch.Tensor, revise: Revise = None) -> torch.Tensor:
        """Return T, shape (B, C, C)."""
        log_T = log_entries(self.inner.matrix(features[:, : -self.n_view]))
        shifts = functional.linear(self._view(features), self.weight.flatten(0, 1))
        shifts = shifts.view_as(log_T) + self.bias
        eye = torch.eye(self.n_classes, dtype=torch.bool, device=log_T.device)
        T = _redirected(log_T, shifts, eye.expand_as(log_T)).exp()
        return T if revise is None else revise(T)

    def diagonal(self, features: torch.Tensor, revise: Revise = None) -> torch.Tensor:
        """Return the diagonal of T, shape (B, C)."""
        if revise is None:
            return self.inner.diagonal(features[:, : -self.n_view])
        return super().diagonal(features, revise)

    def log_noisy(
        self, features: torch.Tensor, log_probs: torch.Tensor, revise: Revise = None
    ) -> torch.Tensor:
        """Return ``log (p · T)``, shape (B, C)."""
        return log_entries((log_probs.exp()[:, None] @ self.matrix(features, revise)).squeeze(1))

    @torch.no_grad()
    def shrink(self, share: float) -> None:
        """Leave a share of the departure from the base, in place; at 0 T(x) is the base."""
        self.inner.shrink(share)
        self.weight.mul_(share)
        self.bias.mul_(share)

    def _view(self, features: torch.Tensor) -> torch.Tensor:
        return features[:, -self.n_view :]


def _redirected(log_rows: torch.Tensor, shifts: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """Return log rows with the entries beside the own one shifted, and their sum as it was."""
    flips = log_rows.masked_fill(own, -torch.inf)
    shifted = (flips + shifts).log_softmax(-1) + flips.logsumexp(-1, keepdim=True)
    return torch.where(own, log_rows, shifted)
