"""P(right label | x, given label): how f and T(x) together judge a given label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Probs = NDArray[np.float32]
Labels = NDArray[np.int64]
# Below this a product of float32 numbers has lost its digits.
SMALL = 1e-30


def right_label_posterior(f: Probs, columns: Probs) -> tuple[Probs, Probs]:
    """Return P(right = i | x, given) ∝ f_i(x) · T(x)[i, given], and the likelihood of the given.

    Where f and T exclude each other nothing is known of the label, and f alone has to tell.

    Parameters
    ----------
    f
        Probabilities of the right label, shape (B, C).
    columns
        T(x)[:, given label], shape (B, C).

    Examples
    --------
    >>> f = np.array([[0.5, 0.5]], dtype=np.float32)
    >>> right, likelihood = right_label_posterior(f, np.array([[0.6, 0.2]], dtype=np.float32))
    >>> right.round(4).tolist(), likelihood.round(4).tolist()
    ([[0.75, 0.25]], [0.4000000059604645])
    """
    joint = f * columns
    likelihood = joint @ np.ones(joint.shape[1], dtype=np.float32)
    lost = np.flatnonzero(likelihood < SMALL)
    if len(lost):
        exact = f[lost].astype(np.float64) * columns[lost]
        sums = exact.sum(axis=1, keepdims=True)
        exact = np.where(sums > 0, exact, f[lost])
        joint[lost] = exact / exact.sum(axis=1, keepdims=True)
    scale = likelihood.copy()
    scale[lost] = 1.0
    joint /= scale[:, None]
    return joint, likelihood


def given_and_best(right: Probs, given: NDArray[np.integer[Any]]) -> tuple[Probs, Labels]:
    """Return the probability of the given label, and the most probable label, both (B,).

    Among equals the given label is the most probable one.

    Examples
    --------
    >>> right = np.array([[0.5, 0.5], [0.9, 0.1]], dtype=np.float32)
    >>> given_and_best(right, np.array([1, 1]))[1].tolist()
    [1, 0]
    """
    b = np.arange(len(given))
    p_given, best = right[b, given], right.argmax(axis=1)
    return p_given, np.where(p_given >= right[b, best], given, best)
