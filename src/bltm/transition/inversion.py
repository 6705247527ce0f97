"""From noisy posteriors back to Bayes posteriors (section 4.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.core.errors import InputError
from bltm.core.matrix import check_rows, check_transition, project_to_simplex

FloatArray = NDArray[np.float64]

# Entries of T that are inverted at a time: 16 MB, a few copies of which are alive.
BLOCK = 2 * 1024 * 1024
# Beyond this condition number the solution has no digits of a float32 posterior left.
MAX_CONDITION = 1e7


def bayes_posterior(noisy_posterior: NDArray[Any], T: NDArray[Any]) -> FloatArray:
    """Return ``P(Y*|x) = (T*(x)ᵀ)⁻¹ P(Ỹ|x)``, projected onto the simplex.

    Estimates need not be consistent with each other, so the solution can leave the simplex; the
    nearest point of it is returned. Where T is singular, or nearly so, the solution of least norm
    among the best is taken.

    Parameters
    ----------
    noisy_posterior
        Shape (N, C).
    T
        One matrix (C, C), or one for each example (N, C, C).

    Returns
    -------
    ndarray
        Shape (N, C), float64.

    Examples
    --------
    >>> T = np.array([[0.8, 0.2], [0.3, 0.7]])
    >>> bayes_posterior(np.array([[0.55, 0.45]]), T).round(6).tolist()
    [[0.5, 0.5]]
    """
    n_classes = noisy_posterior.shape[-1]
    if T.shape not in ((n_classes, n_classes), (*noisy_posterior.shape, n_classes)):
        raise InputError("T", f"has shape {T.shape}, the posteriors {noisy_posterior.shape}")
    q = check_rows(noisy_posterior, "noisy_posterior", atol=1e-4)
    if T.ndim == 2:
        return project_to_simplex(_solve(check_transition(T, atol=1e-4)[None], q[None])[0])
    solved = np.empty(q.shape)
    step = max(1, BLOCK // n_classes**2)
    for start in range(0, len(q), step):
        block = slice(start, start + step)
        matrices = check_transition(T[block], atol=1e-4)
        solved[block] = _solve(matrices, q[block, None])[:, 0]
    return project_to_simplex(solved)


def _solve(matrices: FloatArray, q: FloatArray) -> FloatArray:
    """Solve ``p · T = q`` for R rows ``q`` and each of B matrices; ``q`` is (B, R, C)."""
    transposed, sides = matrices.swapaxes(1, 2), q.swapaxes(1, 2)
    identity = np.broadcast_to(np.eye(q.shape[2]), matrices.shape)
    try:
        # The inverse comes out of the same factorisation and tells the condition.
        both = np.linalg.solve(transposed, np.concatenate([sides, identity], axis=2))
    except np.linalg.LinAlgError:
        return _least_squares(matrices, q)
    solution = both[:, :, : q.shape[1]].swapaxes(1, 2).copy()
    norms = [np.abs(m).sum(axis=1).max(axis=1) for m in (transposed, both[:, :, q.shape[1] :])]
    bad = ~(norms[0] * norms[1] < MAX_CONDITION)
    if bad.any():
        solution[bad] = _least_squares(matrices[bad], q[bad])
    return solution


def _least_squares(matrices: FloatArray, q: FloatArray) -> FloatArray:
    return q @ np.linalg.pinv(matrices, rcond=1.0 / MAX_CONDITION)
