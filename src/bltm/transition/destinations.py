"""Where the labels of one class go when they go wrong, as a linear function of the input.

A logistic regression over the wrong labels that starts from what is believed of each example::

    P(given = j | right = i, wrong, x) ∝ B_ij(x) exp(w_ij · z(x) + b_ij),  j ≠ i

B is that belief and z the input itself. Only examples with a wrong label speak, each as far as it
is believed to be of the class, and a penalty on the weights leaves B where they say little.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
MOST_ITERATIONS = 40
TOLERANCE = 1e-4


def learn_destinations(
    inputs: Floats,
    labels: NDArray[np.integer[Any]],
    weights: Floats,
    log_belief: Floats,
    penalty: float,
    start: Floats,
) -> NDArray[np.float32]:
    """Return weights and, in the last column, offsets of the wrong labels, shape (C, d + 1).

    Minimises the weighted negative log-likelihood plus ``penalty`` times the squared weights and
    offsets (L-BFGS; the problem is convex and has one solution).

    Parameters
    ----------
    inputs
        The inputs of examples with wrong labels, shape (M, d).
    labels
        The labels they were given, shape (M,); never the class itself.
    weights
        How much each example counts, shape (M,).
    log_belief
        ``log B(x)``, shape (M, C), minus infinity at the class itself; up to a constant in a row.
    penalty
        Weight of the squares; positive.
    start
        Where to start, shape (C, d + 1).

    Examples
    --------
    >>> inputs = np.array([[-1.0], [-2.0], [1.0], [3.0]])
    >>> log_belief = np.tile(np.log([1e-300, 0.5, 0.5]), (4, 1))
    >>> found = learn_destinations(
    ...     inputs, np.array([1, 1, 2, 2]), np.ones(4), log_belief, 0.01, np.zeros((3, 2))
    ... )
    >>> bool(found[1, 0] < 0 < found[2, 0])
    True
    """
    from scipy.optimize import minimize

    x = np.column_stack([inputs, np.ones(len(inputs))]).astype(np.float32)
    rows = np.arange(len(labels))
    weights = weights.astype(np.float32)
    log_belief = log_belief.astype(np.float32)
    shape = (log_belief.shape[1], x.shape[1])

    def objective(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        w = flat.reshape(shape).astype(np.float32)
        logits = x @ w.T
        logits += log_belief
        logits -= logits.max(axis=1, keepdims=True)
        probs = np.exp(logits)
        sums = probs.sum(axis=1, keepdims=True)
        losses = np.log(sums[:, 0]) - logits[rows, labels]
        probs /= sums
        probs[rows, labels] -= 1.0
        probs *= weights[:, None]
        loss = float(weights @ losses.astype(np.float64)) + penalty * float(flat @ flat)
        return loss, (probs.T @ x).ravel().astype(np.float64) + 2.0 * penalty * flat

    found = minimize(
        objective,
        start.astype(np.float64).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": MOST_ITERATIONS, "ftol": TOLERANCE * 1e-2, "gtol": TOLERANCE},
    )
    return np.asarray(found.x.reshape(shape), dtype=np.float32)
