"""Which examples train and which validate: stratified, copies together, order-independent.

Everything here goes by the canonical order of the examples, which sorts them by
``(group, label)``. The same examples in another order are therefore split in the same way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bltm.core.errors import InputError
from bltm.core.random import stream
from bltm.core.records import NoisyData, Split

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# With fewer examples than this, none is spared for validation.
MIN_TO_SPLIT = 50


def merge_duplicates(
    labels: IntArray, weights: FloatArray, group: IntArray, trusted: BoolArray | None = None
) -> FloatArray:
    """Give one example of each (group, label) pair the weight of all, and its copies none.

    The example that stays is the first one of positive weight; a trusted one goes first.

    Examples
    --------
    >>> merge_duplicates(np.array([0, 0, 1]), np.array([1.0, 2.0, 1.0]), np.array([5, 5, 5]))
    array([3., 0., 1.])
    """
    doubted = np.zeros(len(labels), dtype=bool) if trusted is None else ~trusted
    # The weight is a key as well, for the rounding of a sum depends on its order.
    order = np.lexsort((weights, labels, group))
    pair = _runs(group[order], labels[order])
    totals = np.bincount(pair, weights=weights[order], minlength=pair[-1] + 1 if len(pair) else 0)
    number = np.empty(len(labels), dtype=np.int64)
    number[order] = pair
    first = np.lexsort((doubted, weights <= 0, number))
    first = first[np.flatnonzero(np.diff(number[first], prepend=-1))]
    merged = np.zeros(len(labels), dtype=np.float64)
    merged[first] = totals[number[first]]
    return merged


def canonical_order(labels: IntArray, group: IntArray) -> IntArray:
    """Return the indices of all examples sorted by (group, label)."""
    return np.lexsort((labels, group)).astype(np.int64)


def split_noisy(data: NoisyData, fraction: float, seed: int) -> Split:
    """Set a share of the examples aside for validation on their noisy labels.

    Examples of weight zero are left out of both parts. The split is stratified by noisy label,
    keeps equal inputs on one side, leaves trusted examples and the only input of a class in the
    training part, and is empty on the validation side for fewer than 50 examples. Both parts come
    in canonical order.

    Parameters
    ----------
    data
        Examples whose duplicates are merged (see ``merge_duplicates``).
    fraction
        Share of the examples that validate, in [0, 0.5].
    seed
        Of the stream ``"split"``.
    """
    if not 0.0 <= fraction <= 0.5:
        raise InputError(
            "validation_fraction", f"must lie in [0, 0.5], got {fraction}", "0.1 is usual."
        )
    order = canonical_order(data.labels, data.group)
    used = order[data.weights[order] > 0]
    if len(used) < MIN_TO_SPLIT or fraction == 0.0:
        return Split(train=used, validation=used[:0])
    number, stratum, count = _strata(data, used)
    bound = np.bincount(number, weights=data.trusted[used], minlength=count) > 0
    alone = np.bincount(stratum)[stratum] == 1
    rng = stream(seed, "split")
    draw, start = rng.random(count), rng.random()
    free = np.flatnonzero(~(bound | alone))
    free = free[np.lexsort((draw[free], stratum[free]))]
    # Every (1/fraction)-th group of the list, which goes class by class: each class gives its
    # share to within one group, and so does the whole.
    mark = np.floor(np.arange(len(free) + 1) * fraction + start)
    chosen = np.zeros(count, dtype=bool)
    chosen[free[np.diff(mark) > 0]] = True
    return Split(train=used[~chosen[number]], validation=used[chosen[number]])


def folds(data: NoisyData, index: IntArray, k: int, seed: int) -> IntArray:
    """Return the fold ``0..k-1`` of each entry of ``index``.

    Folds are stratified by noisy label, hold equal inputs together and are never empty; there are
    fewer than ``k`` when there are fewer than ``k`` different inputs.
    """
    if k < 1:
        raise InputError("folds", f"needs at least one fold, got {k}", "Use 2 or more.")
    number, stratum, count = _strata(data, index)
    order = np.lexsort((stream(seed, "folds").random(count), stratum))
    fold = np.empty(count, dtype=np.int64)
    fold[order] = np.arange(count) % min(k, max(count, 1))
    return fold[number]


def _strata(data: NoisyData, index: IntArray) -> tuple[IntArray, IntArray, int]:
    """Return the input number of each entry, the label that stands for each input, their count."""
    inputs, number = np.unique(data.group[index], return_inverse=True)
    stratum = np.full(len(inputs), data.n_classes, dtype=np.int64)
    np.minimum.at(stratum, number, data.labels[index])
    return number.astype(np.int64), stratum, len(inputs)


def _runs(*keys: IntArray) -> IntArray:
    """Return the number of the run of equal keys that each place of sorted keys is in."""
    new = np.zeros(len(keys[0]), dtype=bool)
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return np.cumsum(new).astype(np.int64)
