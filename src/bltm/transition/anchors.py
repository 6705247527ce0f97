"""Class-dependent transition matrices read off at anchor points.

An anchor point of class i is an example that belongs to i beyond doubt. Its noisy posterior is row
i of T. Examples whose noisy posterior of i is largest stand in for anchor points.

References
----------
Patrini et al. (2017), Making Deep Neural Networks Robust to Label Noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PERCENTILE = 97.0


def anchor_transition(
    H: NDArray[np.floating[Any]], filtered: bool = True, percentile: float = PERCENTILE
) -> FloatArray:
    """Return T whose row i is the noisy posterior of class i's anchor point, shape (C, C).

    Parameters
    ----------
    H
        Noisy posteriors, shape (N, C); they are not changed.
    filtered
        Whether the examples with the very largest posteriors are passed over as outliers.
    percentile
        Where they begin.

    Examples
    --------
    >>> anchor_transition(np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]), filtered=False).tolist()
    [[0.9, 0.1], [0.2, 0.8]]
    """
    anchors = anchor_indices(H, [percentile])[:, 0] if filtered else H.argmax(axis=0)
    return anchor_rows(H, anchors)


def anchor_indices(H: NDArray[np.floating[Any]], percentiles: Sequence[float]) -> IntArray:
    """Return the anchor point of each class at each percentile, shape (C, len(percentiles)).

    It is the example with the largest posterior of the class among those strictly below the
    percentile. Where nobody is below it, or nobody below it has the class as the likeliest (a
    class rarer than what is passed over), it is the example with the largest posterior of all.

    Parameters
    ----------
    H
        Noisy posteriors, shape (N, C); they are not changed.
    percentiles
        Between 0 and 100.

    Examples
    --------
    >>> H = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    >>> anchor_indices(H, [97.0, 99.0]).tolist()
    [[1, 1], [2, 2]]
    """
    classes = np.arange(H.shape[1])
    likeliest, largest = H.argmax(axis=1), H.argmax(axis=0)
    thresholds = np.percentile(H, percentiles, axis=0, method="higher")
    anchors = np.empty((len(classes), len(percentiles)), dtype=np.int64)
    for number, threshold in enumerate(thresholds):
        below = np.where(threshold > H, H, -np.inf)
        chosen = below.argmax(axis=0)
        lost = (likeliest[chosen] != classes) & (likeliest[largest] == classes)
        lost |= np.isneginf(below[chosen, classes])
        anchors[:, number] = np.where(lost, largest, chosen)
    return anchors


def anchor_rows(H: NDArray[np.floating[Any]], anchors: NDArray[np.integer[Any]]) -> FloatArray:
    """Return the noisy posteriors of anchor points with rows that sum to one, (..., C)."""
    rows = H[anchors].astype(np.float64)
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))
