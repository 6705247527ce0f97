"""Heads that turn features into rows and columns of T*(x), in the log domain.

Both heads can start from a class-dependent matrix ``base``, so that a class that few examples speak
of keeps a sane row, and learn how T*(x) departs from it. What they share::

    rows(features, bayes_labels)       -> log T[b, y*_b, :], shape (B, C), and the strain, (B, 2)
    log_columns(features, noisy_labels) -> log T[b, :, ỹ_b], shape (B, C)
    matrix(features)                   -> T, shape (B, C, C)
    diagonal(features)                 -> its diagonal, shape (B, C)
    log_noisy(features, log_probs)     -> log (p · T), shape (B, C)
    shrink(share)                      -> leaves a share of the departure from the base

The strain is the squared departure from the base: of the row y*_b, and the sum over the other rows.
Nothing in the data speaks of those at x; unless they are held to the base they extrapolate freely,
and then any label can be explained as the corruption of another class.

All but rows and shrink take ``revise``, a map from row-stochastic matrices (..., C, C) to such
matrices that is the same for all instances (the "-V" of BLTM-V).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import linear

from bltm.core.matrix import check_transition, log_entries, normalise_rows

# Entries of one transient block: 16 MB in float32, and two or three are alive at a time.
BLOCK = 4 * 1024 * 1024
BASE_FLOOR = 1e-6
PART_SPREAD = 0.1

Base = torch.Tensor | NDArray[Any] | None
Revise = Callable[[torch.Tensor], torch.Tensor] | None


class TransitionHead(nn.Module):
    """What a transition network asks of its head; ``log_base`` is the log of the base matrix."""

    log_base: torch.Tensor

    def __init__(self, n_classes: int, base: Base) -> None:
        super().__init__()
        self.n_classes = n_classes
        self.register_buffer("log_base", _log_base(base, n_classes))

    def rows(
        self, features: torch.Tensor, bayes_labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ``log T[b, y*_b, :]``, shape (B, C), and the strain, shape (B, 2)."""
        raise NotImplementedError

    def log_columns(
        self, features: torch.Tensor, noisy_labels: torch.Tensor, revise: Revise = None
    ) -> torch.Tensor:
        """Return ``log T[b, :, ỹ_b]``, shape (B, C)."""
        raise NotImplementedError

    def matrix(self, features: torch.Tensor, revise: Revise = None) -> torch.Tensor:
        """Return T, shape (B, C, C)."""
        raise NotImplementedError

    def matrix_rows(
        self, features: torch.Tensor, bayes_labels: torch.Tensor, revise: Revise = None
    ) -> torch.Tensor:
        """Return ``T[b, y*_b, :]``, shape (B, C)."""
        T = self.matrix(features, revise)
        return T[torch.arange(len(T), device=T.device), bayes_labels]

    def diagonal(self, features: torch.Tensor, revise: Revise = None) -> torch.Tensor:
        """Return the diagonal of T, shape (B, C)."""
        return self.matrix(features, revise).diagonal(dim1=1, dim2=2)

    def log_noisy(
        self, features: torch.Tensor, log_probs: torch.Tensor, revise: Revise = None
    ) -> torch.Tensor:
        """Return ``log (p · T)`` for class probabilities p given by their logs, both (B, C)."""
        raise NotImplementedError

    def shrink(self, share: float) -> None:
        """Leave a share of the departure from the base, in place; at 0 T(x) is the base."""
        raise NotImplementedError


class DenseHead(TransitionHead):
    """The paper's head, a linear layer with C² outputs, as a residual on a base matrix.

    ``T(x) = softmax(log base + r(x))`` over the last axis, with r linear in the features (Eq. 2).
    Without a base this is the paper's head; with one, r is zero at first and ``T(x) = base``.

    Parameters
    ----------
    n_features
        Width d of the features.
    n_classes
        Number of classes C.
    base
        Class-dependent matrix (C, C), or None.

    Examples
    --------
    >>> head = DenseHead(4, 2, torch.tensor([[0.9, 0.1], [0.25, 0.75]]))
    >>> head.matrix(torch.randn(1, 4)).detach().round(decimals=4).tolist()[0]
    [[0.8999999761581421, 0.10000000149011612], [0.25, 0.75]]
    """

    def __init__(self, n_features: int, n_classes: int, base: Base = None) -> None:
        super().__init__(n_classes, base)
        self.residual = nn.Linear(n_features, n_classes * n_classes)
        if base is not None:
            nn.init.zeros_(self.residual.weight)
            nn.init.zeros_(self.residual.bias)

    def rows(
        self, features: torch.Tensor, bayes_labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ``log T[b, y*_b, :]``, shape (B, C), and the strain, shape (B, 2)."""
        size = max(1, BLOCK // self.n_classes**2)
        own, strain = [], []
        for part, labels in zip(
            torch.split(features, size), torch.split(bayes_labels, size), strict=True
        ):
            residuals = self._residuals(part)
            own.append(residuals[torch.arange(len(part), device=part.device), labels])
            squares = own[-1].square().sum(1)
            strain.append(torch.stack([squares, residuals.square().sum((1, 2)) - squares], dim=1))
        log_rows = (self.log_base[bayes_labels] + torch.cat(own)).log_softmax(-1)
        return log_rows, torch.cat(strain)

    def log_columns(
        self, features: torch.Tensor, noisy_labels: torch.Tensor, revise: Revise = None
    ) -> torch.Tensor:
        """Return ``log T[b, :, ỹ_b]``, shape (B, C), some rows of T at a time."""
        n_classes = self.n_classes
        if revise is not None:
            index = noisy_labels.view(-1, 1, 1).expand(-1, n_classes, 1)
            return log_entries(self.matrix(features, revise).gather(2, index).squeeze(2))
        step = max(1, BLOCK // (n_classes * max(1, len(features))))
        weight = self.residual.weight.view(n_classes, n_classes, -1)
        bias = self.residual.bias.view(n_classes, n_classes)
        index = noisy_labels.view(-1, 1, 1)
        columns = []
        for start in range(0, n_classes, step):
            block = slice(start, start + step)
            logits = linear(features, weight[block].flatten(0, 1), bias[block].flatten())
            logits = logits.view(len(features), -1, n_classes) + self.log_base[block]
            chosen = logits.gather(2, index.expand(-1, logits.shape[1], 1)).squeeze(2)
            columns.append(chosen - logits.logsumexp(2))
        return torch.cat(columns, dim=1)

    def matrix(self, features: torch.Tensor, revise: Revise = None) -> torch.Tensor:
        """Return T, shape (B, C, C)."""
        T = (self.log_base + self._residuals(features)).softmax(-1)
        return T if revise is None else revise(T)

    def log_noisy(
        self, features: torch.Tensor, log_probs: torch.Tensor, revise: Revise = None
    ) -> torch.Tensor:
        """Return ``log (p · T)``, shape (B, C)."""
        log_T = log_entries(self.matrix(features, revise))
        return (log_probs[:, :, None] + log_T).logsumexp(1)

    @torch.no_grad()
    def shrink(self, share: float) -> None:
        """Leave a share of the departure from the base, in place; at 0 T(x) is the base."""
        self.residual.weight.mul_(share)
        self.residual.bias.mul_(share)

    def _residuals(self, features: torch.Tensor) -> torch.Tensor:
        residuals: torch.Tensor = self.residual(features)
        return residuals.view(-1, self.n_classes, self.n_classes)


class PartsHead(TransitionHead):
    """A mixture of K matrices, for many classes: d·K + K·C² parameters instead of d·C².

    ``T(x) = Σ_k w_k(x) A_k`` with ``w = softmax`` of a linear layer and row-stochastic
    ``A_k = softmax(log base + R_k)``. A row or a column of T costs O(K·C) for each example;
    columns also cost K·C² for each batch, so large batches are the cheaper ones.

    Parameters
    ----------
    n_features
        Width d of the features.
    n_classes
        Number of classes C.
    n_parts
        Number of matrices K.
    base
        Class-dependent matrix (C, C), or None.

    References
    ----------
    Xia et al. (2020), Part-dependent Label Noise, has the same form with fixed weights.

    Examples
    --------
    >>> head = PartsHead(4, 100, n_parts=2)
    >>> sum(parameter.numel() for parameter in head.parameters())
    20010
    """

    def __init__(
        self, n_features: int, n_classes: int, n_parts: int = 16, base: Base = None
    ) -> None:
        super().__init__(n_classes, base)
        self.mixture = nn.Linear(n_features, n_parts)
        # Equal parts would get equal gradients and stay equal.
        self.parts = nn.Parameter(PART_SPREAD * torch.randn(n_parts, n_classes, n_classes))

    def rows(
        self, features: torch.Tensor, bayes_labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ``log T[b, y*_b, :]``, shape (B, C), and the strain, shape (B, 2).

        The own row departs after mixing, where parts that cancel each other do not count. Of the
        other rows only the parts are looked at, which are the same for all examples.
        """
        base = self.log_base[bayes_labels]
        log_parts = (self.parts[:, bayes_labels] + base).log_softmax(-1)
        log_rows = (self._log_mixture(features).T[:, :, None] + log_parts).logsumexp(0)
        own = (log_rows - base.log_softmax(-1)).square().sum(1)
        others = torch.linalg.vector_norm(self.parts).square() / len(self.parts)
        return log_rows, torch.stack([own, others.expand_as(own)], dim=1)

    def log_columns(
        self, features: torch.Tensor, noisy_labels: torch.Tensor, revise: Revise = None
    ) -> torch.Tensor:
        """Return ``log T[b, :, ỹ_b]``, shape (B, C)."""
        if revise is not None:
            columns = log_entries(self._matrices(revise)[:, :, noisy_labels])
            return (self._log_mixture(features).T[:, None, :] + columns).logsumexp(0).T
        normalisers = torch.stack([(part + self.log_base).logsumexp(-1) for part in self.parts])
        chosen = self.parts[:, :, noisy_labels] + self.log_base[:, noisy_labels]
        log_parts = chosen - normalisers[:, :, None]
        return (self._log_mixture(features).T[:, None, :] + log_parts).logsumexp(0).T

    def matrix(self, features: torch.Tensor, revise: Revise = None) -> torch.Tensor:
        """Return T, shape (B, C, C)."""
        mixture = self._log_mixture(features).exp()
        return torch.einsum("bk,kij->bij", mixture, self._matrices(revise))

    def matrix_rows(
        self, features: torch.Tensor, bayes_labels: torch.Tensor, revise: Revise = None
    ) -> torch.Tensor:
        """Return ``T[b, y*_b, :]``, shape (B, C), without T."""
        mixture = self._log_mixture(features).exp()
        return torch.einsum("bk,kbj->bj", mixture, self._matrices(revise)[:, bayes_labels])

    def diagonal(self, features: torch.Tensor, revise: Revise = None) -> torch.Tensor:
        """Return the diagonal of T, shape (B, C), without T."""
        diagonals = self._matrices(revise).diagonal(dim1=1, dim2=2)
        return self._log_mixture(features).exp() @ diagonals

    def log_noisy(
        self, features: torch.Tensor, log_probs: torch.Tensor, revise: Revise = None
    ) -> torch.Tensor:
        """Return ``log (p · T)``, shape (B, C), part by part."""
        mixture, probs = self._log_mixture(features).exp(), log_probs.exp()
        noisy = torch.zeros_like(probs)
        for weight, part in zip(mixture.T, self._matrices(revise), strict=True):
            noisy = noisy + weight[:, None] * (probs @ part)
        return log_entries(noisy)

    @torch.no_grad()
    def shrink(self, share: float) -> None:
        """Leave a share of the departure from the base, in place; at 0 T(x) is the base."""
        self.parts.mul_(share)

    def _matrices(self, revise: Revise) -> torch.Tensor:
        """Return the parts A_k, shape (K, C, C).

        A revision is applied to each part: as long as it clips no entry at zero this is the same
        as revising their mixture, and it needs no matrix for each example.
        """
        parts = (self.parts + self.log_base).softmax(-1)
        return parts if revise is None else revise(parts)

    def _log_mixture(self, features: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.mixture(features)
        return logits.log_softmax(-1)


def _log_base(base: Base, n_classes: int) -> torch.Tensor:
    if base is None:
        return torch.zeros(n_classes, n_classes)
    values = base.detach().cpu().numpy() if isinstance(base, torch.Tensor) else base
    checked = torch.from_numpy(check_transition(values, "base", atol=1e-4))
    return normalise_rows(checked.clamp_min(BASE_FLOOR)).log().to(torch.get_default_dtype())
