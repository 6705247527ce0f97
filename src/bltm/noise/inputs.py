"""Checks of what the caller hands to a noise model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bltm.core.errors import InputError
from bltm.core.records import IntArray


def check_labels(y: ArrayLike, n_classes: int | None = None) -> tuple[IntArray, int]:
    """Return clean labels as int64 together with the number of classes.

    Examples
    --------
    >>> check_labels([0, 2, 1])
    (array([0, 2, 1]), 3)
    """
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.size == 0:
        raise InputError("y", f"needs shape (n,) with n > 0, got {labels.shape}")
    if labels.dtype.kind not in "iub":
        raise InputError(
            "y",
            f"needs integer codes 0..C-1, got type {labels.dtype}",
            "Encode the labels first, for example with numpy.unique(y, return_inverse=True).",
        )
    lowest, highest = int(labels.min()), int(labels.max())
    if lowest < 0:
        raise InputError(
            "y", f"needs labels of at least 0, got {lowest}", "Encode the classes as 0..C-1."
        )
    count = highest + 1 if n_classes is None else int(n_classes)
    if highest >= count:
        raise InputError(
            "n_classes",
            f"is {count} but y contains the label {highest}",
            f"Give at least {highest + 1}.",
        )
    if count < 2:
        raise InputError(
            "n_classes",
            f"must be at least 2, got {count}",
            "With one class there is no wrong label; give n_classes if classes are absent from y.",
        )
    return labels.astype(np.int64), count


def check_features(x: Any, n: int) -> NDArray[Any]:
    """Return features as a finite numeric array of shape (n, d); images are flattened.

    Examples
    --------
    >>> check_features(np.zeros((2, 8, 8)), 2).shape
    (2, 64)
    """
    features = np.asarray(x)
    if features.dtype.kind not in "fiub":
        raise InputError(
            "x",
            f"needs numbers, got type {features.dtype}",
            "Give a dense numeric array; for a sparse matrix call .toarray() first.",
        )
    check_length(features, n)
    if features.size == 0:
        raise InputError("x", f"needs at least one feature, got shape {features.shape}")
    if features.dtype.kind == "f" and not np.isfinite(features).all():
        raise InputError(
            "x", "contains values that are not finite", "Fill in or drop missing values first."
        )
    return features.reshape(n, -1)


def check_length(x: Any, n: int) -> None:
    """Check that there is one example for each label, whatever holds the examples."""
    shape = getattr(x, "shape", None)
    length = len(x) if shape is None else (*shape, 0)[0]
    if length != n:
        raise InputError("x", f"has {length} examples but there are {n} labels in y")


def check_rate(
    rate: float | None, bound: float, *, open_end: bool = False, name: str = "rate"
) -> float:
    """Return ``rate`` as a float after checking that it lies in [0, bound], or [0, bound).

    Examples
    --------
    >>> check_rate(0.3, 0.6)
    0.3
    """
    interval = f"[0, {bound:g}{')' if open_end else ']'}"
    if rate is None or isinstance(rate, (bool, str)):
        raise InputError(name, f"must be a number in {interval}, got {rate!r}")
    value = float(rate)
    if math.isnan(value) or value < 0 or value > bound or (open_end and value == bound):
        raise InputError(
            name,
            f"must lie in {interval}, got {value:g}",
            "A rate is a share of the labels: write 30 % as 0.3.",
        )
    return value


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``choices``.

    Examples
    --------
    >>> check_choice("draws", "exact", ("bernoulli", "exact"))
    'exact'
    """
    if not isinstance(value, str) or value not in choices:
        raise InputError(name, f"has no choice {value!r}", f"Choose from: {', '.join(choices)}.")
    return value
