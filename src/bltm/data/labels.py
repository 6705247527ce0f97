"""Labels as users write them, and their codes ``0..C-1``."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bltm.core.errors import DataQualityWarning, InputError

IntArray = NDArray[np.int64]
# "NA", "None" and "null" can be names of classes; these cannot.
_MISSING_TEXT = frozenset({"", "nan", "NaN", "<NA>"})


def encode_labels(
    labels: ArrayLike,
    classes: Sequence[Any] | NDArray[Any] | None = None,
    *,
    ids: ArrayLike | None = None,
    missing: Literal["raise", "drop"] = "raise",
    warn: bool = True,
) -> tuple[IntArray, NDArray[Any]]:
    """Return a code for each label, and the sorted classes that the codes count.

    Parameters
    ----------
    labels
        Strings, integers or booleans, shape (N,).
    classes
        All classes there are, where some may be absent from the labels.
    ids
        Names of the examples, for messages.
    missing
        What to do about labels that are None, NaN or empty: ``"raise"``, or ``"drop"``, which
        warns and gives them the code -1.
    warn
        Whether to warn about classes with one example and the like.

    Examples
    --------
    >>> codes, names = encode_labels(["dog", "cat", "dog", "cat"], classes=["dog", "cat", "fox"])
    >>> codes.tolist(), names.tolist()
    ([1, 0, 1, 0], ['cat', 'dog', 'fox'])
    """
    given = label_array(labels)
    absent = missing_labels(given)
    if absent.any():
        _treat_missing(absent, ids, missing, warn)
    present = _plain(given[~absent])
    names = _sorted_classes(present) if classes is None else _named_classes(classes, present)
    table = {value: code for code, value in enumerate(names.tolist())}
    found = np.fromiter(
        (table.get(value, -1) for value in present.tolist()), dtype=np.int64, count=len(present)
    )
    if (found < 0).any():
        unknown = sorted({str(value) for value in present[found < 0].tolist()})
        raise InputError(
            "classes",
            f"the labels hold {_listing(unknown)}, which classes={names.tolist()} does not name",
            "Name every class, or correct these labels.",
        )
    codes = np.full(len(given), -1, dtype=np.int64)
    codes[~absent] = found
    if warn:
        _warn_about_counts(found, names)
    return codes, names


def label_array(labels: ArrayLike) -> NDArray[Any]:
    """Return labels as a flat array: numbers and booleans as they are, all else as objects."""
    values: NDArray[Any] = np.asarray(labels)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError(
            "y", f"needs one label for each example, got shape {values.shape}", "Give a flat list."
        )
    return values if values.dtype.kind in "iufbO" else values.astype(object)


def missing_labels(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the mask of labels that are None, NaN or empty."""
    if labels.dtype.kind == "f":
        return np.asarray(np.isnan(labels))
    if labels.dtype != object:
        return np.zeros(len(labels), dtype=bool)
    return np.fromiter(map(_is_missing, labels.tolist()), dtype=bool, count=len(labels))


def _is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip() in _MISSING_TEXT
    try:
        return value is None or not bool(value == value)
    except TypeError:  # pandas.NA has no truth value
        return True


def _plain(labels: NDArray[Any]) -> NDArray[Any]:
    """Objects of one type become an array of that type, whole floats integers."""
    if labels.dtype == object:
        values = labels.tolist()
        text = sum(isinstance(value, str) for value in values)
        if text == len(values):
            return labels
        if text or not all(isinstance(v, bool | int | float | np.generic) for v in values):
            kinds = sorted({type(value).__name__ for value in values})
            raise InputError(
                "y",
                f"mixes labels of the types {', '.join(kinds)}",
                "Labels are all strings, all integers or all booleans; y.astype(str) would do.",
            )
        labels = np.array(values)
    if labels.dtype.kind == "f":
        whole = np.isfinite(labels) & (labels == np.round(labels))
        if not whole.all():
            raise InputError(
                "y",
                f"has continuous values such as {labels[~whole][0]:g}",
                "Labels are classes: strings, integers or booleans.",
            )
        labels = labels.astype(np.int64)
    return labels


def _sorted_classes(present: NDArray[Any]) -> NDArray[Any]:
    if present.dtype == object:
        return np.array(sorted(set(present.tolist())), dtype=object)
    return np.unique(present)


def _named_classes(classes: Sequence[Any] | NDArray[Any], present: NDArray[Any]) -> NDArray[Any]:
    named = _plain(label_array(classes))
    if named.dtype == object and present.dtype.kind in "iu":
        # The command line can only name classes by text.
        with contextlib.suppress(ValueError):
            named = np.array([int(value) for value in named.tolist()], dtype=np.int64)
    names = _sorted_classes(named)
    if len(names) != len(named):
        raise InputError("classes", f"names a class twice: {named.tolist()}", "Name each one once.")
    return names


def _treat_missing(
    absent: NDArray[np.bool_], ids: ArrayLike | None, missing: str, warn: bool
) -> None:
    names = np.arange(len(absent)) if ids is None else np.asarray(ids)
    problem = (
        f"{int(absent.sum())} of {len(absent)} examples have no label: "
        f"{_listing([str(name) for name in names[absent][:6].tolist()])}"
    )
    if missing == "raise":
        raise InputError("y", problem, "Label these examples or leave them out.")
    if warn:
        warnings.warn(f"{problem}. They are left out.", DataQualityWarning, stacklevel=3)


def _warn_about_counts(codes: IntArray, names: NDArray[Any]) -> None:
    counts = np.bincount(codes, minlength=len(names))
    if len(codes) < len(names):
        warnings.warn(
            f"There are {len(codes)} examples for {len(names)} classes; what is learned about "
            "classes without an example is a guess.",
            DataQualityWarning,
            stacklevel=3,
        )
    single = [str(name) for name in names[counts == 1].tolist()]
    if single:
        warnings.warn(
            f"One example only: {_listing(single)}. Such an example always trains and never "
            "validates, and nothing can be said about errors in its label.",
            DataQualityWarning,
            stacklevel=3,
        )


def _listing(names: list[str], most: int = 5) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown}, ..."
