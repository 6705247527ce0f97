"""T(x) as a convex combination of part matrices: how examples are made of parts, and the matrices.

Features are factorised, ``V ≈ W · H``, into non-negative parts H and coefficients W whose rows sum
to one; ``T(x) = Σ_k W(x)_k A_k``. Parts are learned once, and coefficients are a function of the
features and the parts alone, so that x has one T(x) in training, in validation and afterwards.

References
----------
Xia et al. (2020), Part-dependent Label Noise: Towards Instance-dependent Label Noise.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from bltm.core.matrix import log_entries, project_to_simplex

FloatArray = NDArray[np.float64]

# Multiplicative updates of parts and coefficients together, and of coefficients alone.
ROUNDS, COEFFICIENT_ROUNDS = 20, 50
# Steps of the least-squares solver, and the change of an entry at which it has converged.
SOLVER_STEPS, CONVERGED = 2000, 1e-8
# Directions in which the coefficients of a class's anchors differ by less than this share of the
# largest tell more of rounding than of parts.
WEAK = 0.03


def factorise(
    features: torch.Tensor, n_parts: int, rng: np.random.Generator, rounds: int = ROUNDS
) -> torch.Tensor:
    """Return the parts of non-negative features, shape (n_parts, d).

    Parameters
    ----------
    features
        Shape (N, d); what is below zero counts as zero.
    n_parts
        Number of parts r.
    rng
        Draws where the multiplicative updates start.
    rounds
        Number of updates.

    Examples
    --------
    >>> features = torch.tensor([[1.0, 0.0], [0.0, 3.0], [2.0, 0.0], [0.0, 1.0]])
    >>> parts = factorise(features, 2, np.random.default_rng(0), rounds=100)
    >>> sorted((parts > 0.1).int().tolist())
    [[0, 1], [1, 0]]
    """
    V = features.clamp_min(0.0)
    parts = torch.from_numpy(rng.random((n_parts, V.shape[1]), dtype=np.float32)).to(V)
    W = torch.from_numpy(rng.random((len(V), n_parts), dtype=np.float32)).to(V)
    W = _on_simplex(W)
    for _ in range(rounds):
        parts = _updated(parts, W.T @ V, (W.T @ W) @ parts)
        W = _on_simplex(_updated(W, V @ parts.T, W @ (parts @ parts.T)))
    return parts


def coefficients(
    features: torch.Tensor, parts: torch.Tensor, rounds: int = COEFFICIENT_ROUNDS
) -> torch.Tensor:
    """Return how much of each part an example has, shape (N, r), rows that sum to one.

    They tend to the non-negative least-squares solution divided by its sum: the length of the
    features does not matter. Features that are all zero are made of all parts alike.

    Parameters
    ----------
    features
        Shape (N, d); what is below zero counts as zero.
    parts
        Shape (r, d).
    rounds
        Number of multiplicative updates.

    Examples
    --------
    >>> coefficients(torch.tensor([[3.0, 1.0], [0.0, 0.0]]), torch.eye(2)).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    products = features.clamp_min(0.0) @ parts.T
    gram = parts @ parts.T
    W = torch.full_like(products, 1.0 / len(parts))
    for _ in range(rounds):
        W = _on_simplex(_updated(W, products, W @ gram))
    return W


def fit_part_matrices(weights: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the part matrices A of shape (r, C, C) from the anchor points of all classes.

    For each class i the rows ``A_1[i], …, A_r[i]`` minimise ``Σ_j ‖Σ_k w_jk A_k[i] - h_j‖²`` over
    rows on the simplex. All classes are solved at once by accelerated projected gradients. They
    start where all parts are the mean of the anchors, and what anchors that repeat, or hardly
    differ, leave open stays there.

    Parameters
    ----------
    weights
        Coefficients w of P anchor points for each class, shape (C, P, r).
    rows
        Their noisy posteriors h, shape (C, P, C).

    Examples
    --------
    >>> weights = np.array([[[1.0, 0.0], [0.0, 1.0]]] * 2)
    >>> rows = np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.2, 0.8], [0.0, 1.0]]])
    >>> fit_part_matrices(weights, rows).round(6).tolist()
    [[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.0, 1.0]]]
    """
    n_classes, _, n_parts = weights.shape
    left, values, right = np.linalg.svd(weights, full_matrices=False)
    values = np.where(values < WEAK * values[:, :1], 0.0, values)
    transposed = right.swapaxes(1, 2) * values[:, None] @ left.swapaxes(1, 2)
    gram, side = transposed @ transposed.swapaxes(1, 2), transposed @ rows
    step = 1.0 / values[:, :1, None] ** 2
    current = np.repeat(rows.mean(axis=1, keepdims=True), n_parts, axis=1)
    ahead, momentum = current, np.ones((n_classes, 1, 1))
    for _ in range(SOLVER_STEPS):
        moved = ahead - step * (gram @ ahead - side)
        new = project_to_simplex(moved.reshape(-1, n_classes)).reshape(current.shape)
        change = new - current
        # Momentum that points uphill is dropped, class by class.
        uphill = ((ahead - new) * change).sum(axis=(1, 2), keepdims=True) > 0
        momentum = np.where(uphill, 1.0, momentum)
        following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = new + (momentum - 1.0) / following * change
        current, momentum = new, following
        if np.abs(change).max() < CONVERGED:
            break
    return np.ascontiguousarray(current.swapaxes(0, 1))


def mixed_rows(weights: torch.Tensor, matrices: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return row ``labels[b]`` of ``Σ_k weights[b, k] · matrices[k]``, shape (B, C)."""
    return torch.einsum("bk,kbj->bj", weights, matrices[:, labels])


def mixed_log_columns(
    weights: torch.Tensor, matrices: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    """Return the log of column ``labels[b]`` of ``Σ_k weights[b, k] · matrices[k]``, (B, C)."""
    return log_entries(torch.einsum("bk,kib->bi", weights, matrices[:, :, labels]))


def mixed_log_noisy(
    weights: torch.Tensor, matrices: torch.Tensor, log_probs: torch.Tensor
) -> torch.Tensor:
    """Return ``log (p · Σ_k weights[b, k] matrices[k])`` for given log p, both (B, C)."""
    by_part = log_probs.exp() @ matrices
    return log_entries(torch.einsum("bk,kbj->bj", weights, by_part))


def _updated(
    values: torch.Tensor, numerator: torch.Tensor, denominator: torch.Tensor
) -> torch.Tensor:
    """Return one multiplicative update; where there is nothing to divide by, the value is zero."""
    return values * numerator / denominator.clamp_min(torch.finfo(values.dtype).tiny)


def _on_simplex(values: torch.Tensor) -> torch.Tensor:
    """Divide rows by their sums; rows of zeros become uniform."""
    sums = values.sum(dim=1, keepdim=True)
    return torch.where(sums > 0, values / sums, 1.0 / values.shape[1])
