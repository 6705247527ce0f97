"""Labels and probabilities as users give them, checked and in the form that the audit takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bltm.core.blocks import block_rows, blocks
from bltm.core.errors import InputError

Codes = NDArray[np.int32]
TOLERANCE = 1e-2


@dataclass(frozen=True, eq=False)
class Scanned:
    """Probabilities (N, C) as they were given, the likeliest class of each row and its height."""

    probs: NDArray[np.floating[Any]]
    likeliest: Codes
    height: NDArray[np.float32]


def scan(pred_probs: Any, name: str = "pred_probs") -> Scanned:
    """Check that rows are probabilities, and find the largest of each."""
    probs: NDArray[Any] = (
        pred_probs if isinstance(pred_probs, np.ndarray) else np.asarray(pred_probs)
    )
    if probs.ndim != 2 or probs.shape[1] < 1 or probs.dtype.kind not in "fiu":
        raise InputError(
            name,
            f"needs numbers of shape (examples, classes), got {probs.dtype} of shape {probs.shape}",
            "Give one row of class probabilities for each example.",
        )
    if len(probs) == 0:
        raise InputError(name, "has no rows", "Give at least one example.")
    ones = np.ones(probs.shape[1], dtype=np.float32)
    likeliest, height = np.empty(len(probs), np.int32), np.empty(len(probs), np.float32)
    for block in blocks(len(probs), block_rows(probs.shape[1])):
        part = probs[block].astype(np.float32, copy=False)
        sums = part @ ones
        bad = ~(np.abs(sums - 1.0) <= TOLERANCE)
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            raise InputError(
                name,
                f"row {block.start + at} sums to {sums[at]:g}",
                "Each row holds the probabilities of all classes and sums to one; "
                "logits have to go through a softmax first.",
            )
        if part.min() < -1e-6:
            raise InputError(name, f"has negative entries such as {part.min():g}")
        likeliest[block] = part.argmax(axis=1)
        height[block] = part[np.arange(len(part)), likeliest[block]]
    return Scanned(probs, likeliest, height)


def encode(
    labels: Any, n_classes: int, classes: Sequence[Any] | NDArray[Any] | None = None
) -> tuple[Codes, list[Any]]:
    """Return a code for each label, and the classes in the order of the columns.

    Without ``classes``, whole numbers within 0..C-1 are codes already; other labels are taken in
    sorted order, and there have to be as many different ones as columns.

    Parameters
    ----------
    labels
        Strings, integers or booleans, shape (N,).
    n_classes
        Number of columns C.
    classes
        Names of the columns; text stands for numbers, too.

    Examples
    --------
    >>> codes, names = encode(["dog", "cat", "dog"], 2)
    >>> codes.tolist(), names
    ([1, 0, 1], ['cat', 'dog'])
    """
    given = _flat(labels)
    whole = classes is None and given.dtype.kind in "iu"
    if whole and given.min() >= 0 and given.max() < n_classes:
        return given.astype(np.int32), list(range(n_classes))
    codes, found = _factorised(given)
    if classes is None:
        if len(found) != n_classes:
            raise InputError(
                "labels",
                f"has {len(found)} different values and pred_probs {n_classes} columns",
                "Name all classes in the order of the columns with classes=.",
            )
        return codes, found
    names = classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
    if len(names) != n_classes or len(set(map(repr, names))) != len(names):
        raise InputError(
            "classes",
            f"names {len(names)} classes ({len(set(map(repr, names)))} different ones) for "
            f"{n_classes} columns of pred_probs",
            "Name each column once.",
        )
    place = {name: code for code, name in enumerate(names)}
    if not all(value in place for value in found):
        # The command line can only name classes by text.
        texts = {str(value): value for value in found}
        names = [texts.get(name, name) if isinstance(name, str) else name for name in names]
        place = {name: code for code, name in enumerate(names)}
    unknown = [value for value in found if value not in place]
    if unknown:
        shown = ", ".join(repr(value) for value in unknown[:5])
        raise InputError(
            "labels",
            f"holds {shown}, which classes= does not name",
            "Name every class, with values of the type that the labels have.",
        )
    table = np.array([place[value] for value in found], dtype=np.int32)
    return table[codes], names


def _flat(labels: Any) -> NDArray[Any]:
    values: NDArray[Any] = np.asarray(labels)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or len(values) == 0:
        raise InputError(
            "labels", f"needs one label for each example, got shape {values.shape}", ""
        )
    if values.dtype.kind == "f":
        if not (np.isfinite(values) & (values == np.round(values))).all():
            raise InputError(
                "labels",
                "has values that are missing or no whole numbers",
                "Labels are classes: strings, integers or booleans.",
            )
        return values.astype(np.int64)
    return values


def _factorised(values: NDArray[Any]) -> tuple[Codes, list[Any]]:
    """Return codes in sorted order of the values, and the values."""
    if values.dtype.kind in "iub":
        numbers, places = np.unique(values, return_inverse=True)
        return places.astype(np.int32), numbers.tolist()
    import pandas as pd

    codes, uniques = pd.factorize(values.astype(object))
    if (codes < 0).any():
        raise InputError(
            "labels",
            f"has {int((codes < 0).sum())} missing values, the first in row "
            f"{int(np.flatnonzero(codes < 0)[0])}",
            "Label these examples or leave them out.",
        )
    found = list(uniques)
    try:
        order = sorted(range(len(found)), key=found.__getitem__)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in found})
        raise InputError(
            "labels",
            f"mixes values of the types {', '.join(kinds)}",
            "Labels are all strings, all integers or all booleans.",
        ) from None
    rank = np.empty(len(found), dtype=np.int32)
    rank[order] = np.arange(len(found), dtype=np.int32)
    return rank[codes], [found[i] for i in order]


def check_ids(ids: Any, n: int) -> NDArray[Any]:
    """Return ids as an array: whole numbers as such, all else as objects."""
    if ids is None:
        return np.arange(n, dtype=np.int64)
    values = ids if isinstance(ids, np.ndarray) else np.array(list(ids), dtype=object)
    if values.shape != (n,):
        raise InputError("ids", f"has shape {values.shape} for {n} examples", "Give one for each.")
    if values.dtype == object and all(type(value) is int for value in values):
        small = all(-(2**63) <= value < 2**63 for value in values)
        values = values.astype(np.int64) if small else values
    elif values.dtype.kind not in "iuO":
        values = values.astype(object)
    return values


def check_length(name: str, values: ArrayLike | None, n: int, dtype: Any) -> NDArray[Any] | None:
    """Return an array of one value for each example, or None."""
    if values is None:
        return None
    array = np.asarray(values, dtype=dtype)
    if array.shape != (n,):
        raise InputError(name, f"has shape {array.shape} for {n} examples", "Give one for each.")
    return array


def check_weights(weights: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    """Return non-negative weights that are not all zero, or None."""
    array = check_length("weights", weights, n, np.float64)
    if array is not None and not (np.isfinite(array).all() and array.min() >= 0 and array.any()):
        raise InputError("weights", "needs finite numbers from 0 on, not all 0", "")
    return array
