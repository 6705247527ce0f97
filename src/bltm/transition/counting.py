"""Class-dependent transition matrices that are counted, not trained.

References
----------
Northcutt, Jiang, Chuang (2021), Confident Learning: Estimating Uncertainty in Dataset Labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Labels = NDArray[np.integer[Any]]

# Pseudo-examples that every row gets from all classes together.
PRIOR_STRENGTH = 10.0
# A mean of equal numbers can end up a rounding error above them.
ROUNDING = 1e-9


def confident_joint(
    probs: NDArray[np.floating[Any]], labels: Labels, weights: FloatArray | None = None
) -> FloatArray:
    """Return the joint distribution of given and right labels by confident learning.

    Class j qualifies for an example when its probability is at least the mean of ``p_j`` over the
    examples labelled j. An example counts for its likeliest qualifying class, or not at all. The
    counts of each given label are scaled to the frequency of that label.

    Parameters
    ----------
    probs
        Noisy posteriors, best out of sample, shape (N, C).
    labels
        Given labels, shape (N,).
    weights
        Weight of each example, shape (N,); all ones by default.

    Returns
    -------
    ndarray
        Q of shape (C, C) that sums to one. Rows are the *given* labels, columns the right ones:
        this is not the orientation of T.

    Examples
    --------
    >>> probs = np.array([[0.9, 0.1], [0.2, 0.8], [0.8, 0.2], [0.1, 0.9]])
    >>> confident_joint(probs, np.array([0, 0, 0, 1])).tolist()
    [[0.75, 0.0], [0.0, 0.25]]
    """
    n_classes = probs.shape[1]
    weights = _weights(labels, weights)
    mass = np.bincount(labels, weights, n_classes)
    # A label that nobody was given is believed only where it is certain.
    thresholds = np.ones(n_classes)
    own = np.bincount(labels, weights * probs[np.arange(len(labels)), labels], n_classes)
    np.divide(own, mass, out=thresholds, where=mass > 0)
    qualified = np.where(probs >= thresholds - ROUNDING, probs, -1.0)
    right = qualified.argmax(axis=1)
    counted = qualified.max(axis=1) >= 0
    counts = _contingency(labels[counted], right[counted], n_classes, weights[counted])
    sums = counts.sum(axis=1)
    counts[sums == 0, sums == 0] = 1.0
    joint = counts / counts.sum(axis=1, keepdims=True) * mass[:, None]
    return np.asarray(joint / mass.sum(), dtype=np.float64)


def class_transition(
    probs: NDArray[np.floating[Any]],
    labels: Labels,
    weights: FloatArray | None = None,
    prior_strength: float = PRIOR_STRENGTH,
) -> FloatArray:
    """Return ``T[i, j] = P(noisy = j | right = i)`` counted by confident learning.

    Parameters
    ----------
    probs
        Noisy posteriors, best out of sample, shape (N, C).
    labels
        Given labels, shape (N,).
    weights
        Weight of each example, shape (N,); all ones by default.
    prior_strength
        Number of pseudo-examples that pull each row towards what all classes have in common.

    Returns
    -------
    ndarray
        T of shape (C, C) with strictly positive rows that sum to one.

    Examples
    --------
    >>> probs = np.array([[0.9, 0.1]] * 40 + [[0.1, 0.9]] * 40)
    >>> labels = np.array([0] * 40 + [1] * 30 + [0] * 10)
    >>> class_transition(probs, labels, prior_strength=1.0).round(2).tolist()
    [[1.0, 0.0], [0.25, 0.75]]
    """
    total = float(_weights(labels, weights).sum())
    return _smoothed(total * confident_joint(probs, labels, weights).T, prior_strength)


def counted_transition(
    bayes_labels: Labels,
    noisy_labels: Labels,
    n_classes: int,
    weights: FloatArray | None = None,
    prior_strength: float = PRIOR_STRENGTH,
) -> FloatArray:
    """Return ``T[i, j] = P(noisy = j | Bayes = i)`` counted on examples whose Bayes label is known.

    Parameters and result are those of :func:`class_transition`.

    Examples
    --------
    >>> T = counted_transition(np.array([0, 0, 1]), np.array([0, 1, 1]), 3)
    >>> bool((T.argmax(axis=1) == np.arange(3)).all())
    True
    """
    weights = _weights(noisy_labels, weights)
    return _smoothed(_contingency(bayes_labels, noisy_labels, n_classes, weights), prior_strength)


def _smoothed(counts: FloatArray, prior_strength: float) -> FloatArray:
    """Add pseudo-counts to rows of counts: the average diagonal, the pooled off-diagonal."""
    n_classes, total = len(counts), counts.sum()
    if n_classes == 1:
        return np.ones((1, 1))
    kept = np.trace(counts) / total if total > 0 else 0.0
    # Believed within limits: a prior row must lean on its diagonal, and have no zeros.
    kept = np.clip(kept, 0.5, 0.99)
    off_diagonal = ~np.eye(n_classes, dtype=bool)
    flips = (counts * off_diagonal).sum(axis=0) + 1.0
    pattern = flips * off_diagonal
    prior = (1.0 - kept) * pattern / pattern.sum(axis=1, keepdims=True) + kept * np.eye(n_classes)
    rows = counts + prior_strength * prior
    return np.asarray(rows / rows.sum(axis=1, keepdims=True), dtype=np.float64)


def _contingency(rows: Labels, columns: Labels, n_classes: int, weights: FloatArray) -> FloatArray:
    flat = rows.astype(np.int64) * n_classes + columns
    table = np.bincount(flat, weights, n_classes**2).reshape(n_classes, n_classes)
    return np.asarray(table, dtype=np.float64)


def _weights(labels: Labels, weights: FloatArray | None) -> FloatArray:
    return np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
