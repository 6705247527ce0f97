"""The one convention for transition matrices, and their algebra.

``T[..., i, j] = P(noisy label = j | Bayes label = i, x)``: rows are the labels that should be
there, columns the labels that were given, and every row sums to one (Eq. 1 of the paper). This
module is the only place that checks it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bltm.core.errors import InputError

if TYPE_CHECKING:
    import torch

FloatArray = NDArray[np.float64]


def check_transition(T: ArrayLike, name: str = "T", atol: float = 1e-6) -> FloatArray:
    """Return ``T`` as float64 after checking shape, sign and row sums.

    Parameters
    ----------
    T
        Array of shape (..., C, C).
    name
        How the user knows this matrix, for the error message.
    atol
        Tolerance on the row sums.

    Examples
    --------
    >>> check_transition([[0.9, 0.1], [0.2, 0.8]]).shape
    (2, 2)
    """
    matrix = np.asarray(T, dtype=np.float64)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise InputError(name, f"needs shape (..., C, C), got {matrix.shape}")
    check_rows(matrix, name, atol)
    return matrix


def check_rows(rows: ArrayLike, name: str = "rows", atol: float = 1e-6) -> FloatArray:
    """Return probability rows of shape (..., C) as float64 after checking sign and sums."""
    values = np.asarray(rows, dtype=np.float64)
    if not np.isfinite(values).all():
        count = int((~np.isfinite(values)).sum())
        raise InputError(name, f"needs finite entries, got {count} that are NaN or infinite")
    if (values < -atol).any():
        raise InputError(
            name,
            f"needs non-negative entries, got a minimum of {values.min():g}",
            "Each row is a probability distribution over the noisy labels.",
        )
    sums = values.sum(axis=-1)
    if not np.allclose(sums, 1.0, rtol=0.0, atol=atol):
        worst = float(sums.flat[np.abs(sums - 1.0).argmax()])
        raise InputError(
            name,
            f"needs rows that sum to 1, got a row sum of {worst:g}",
            "Rows are the labels that should be there and columns the labels given; "
            "transpose the matrix if its columns sum to one.",
        )
    return values


def normalise_rows(matrix: torch.Tensor, eps: float = 1e-12) -> torch.Tensor:
    """Divide each row of (..., C, C) or (..., C) by its sum (last axis, whatever the batch)."""
    return matrix / matrix.sum(dim=-1, keepdim=True).clamp_min(eps)


def log_entries(T: torch.Tensor) -> torch.Tensor:
    """Return ``log T`` with a finite value, and no gradient, where T is zero.

    Examples
    --------
    >>> import torch
    >>> log_entries(torch.tensor([1.0, 0.0])).tolist()
    [0.0, -10000.0]
    """
    import torch

    # The logarithm of the smallest normal number (-87 in float32) would let zeros leak into sums.
    return T.clamp_min(torch.finfo(T.dtype).tiny).log().masked_fill(T <= 0, -1e4)


def towards_identity(log_columns: torch.Tensor, labels: torch.Tensor, share: float) -> torch.Tensor:
    """Return the log of columns of ``(1 - share) I + share T``: flips scaled by a share.

    Parameters
    ----------
    log_columns
        ``log T[:, labels[b]]``, shape (B, C).
    labels
        Which columns they are, shape (B,).
    share
        What is left of the flips, above 0; 1 leaves the columns as they are.

    Examples
    --------
    >>> import torch
    >>> columns = torch.tensor([[0.6, 0.2]])
    >>> towards_identity(columns.log(), torch.tensor([0]), 0.5).exp()
    tensor([[0.8000, 0.1000]])
    """
    import torch

    if share == 1.0:
        return log_columns
    columns = share * log_columns.exp()
    columns[torch.arange(len(labels), device=labels.device), labels] += 1.0 - share
    return log_entries(columns)


def sample_rows(rows: FloatArray, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one label from each probability row, by inversion of its cumulative sum.

    Examples
    --------
    >>> sample_rows(np.array([[0.0, 1.0], [1.0, 0.0]]), np.random.default_rng(0)).tolist()
    [1, 0]
    """
    cumulative = np.cumsum(np.asarray(rows, dtype=np.float64), axis=1)
    cumulative /= cumulative[:, -1:]
    draws = rng.random((len(cumulative), 1))
    return np.asarray((cumulative <= draws).sum(axis=1), dtype=np.int64)


def project_to_simplex(values: FloatArray) -> FloatArray:
    """Project each row of (N, C) onto the probability simplex in the Euclidean norm.

    Examples
    --------
    >>> project_to_simplex(np.array([[1.2, -0.2], [0.3, 0.3]])).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    n_classes = values.shape[1]
    ordered = -np.sort(-values, axis=1)
    excess = np.cumsum(ordered, axis=1) - 1.0
    support = ordered - excess / np.arange(1, n_classes + 1) > 0
    last = n_classes - 1 - support[:, ::-1].argmax(axis=1)
    shift = excess[np.arange(len(values)), last] / (last + 1)
    return np.asarray(np.maximum(values - shift[:, None], 0.0))
