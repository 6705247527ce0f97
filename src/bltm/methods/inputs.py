"""From what users give to ``fit`` to the records that methods see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from bltm.core.errors import InputError
from bltm.core.records import NoisyData
from bltm.data.encoders import Encoder, fit_encoder
from bltm.data.groups import group_rows
from bltm.data.labels import encode_labels, missing_labels
from bltm.data.source import Source
from bltm.data.splits import canonical_order, merge_duplicates

Weights = ArrayLike | None

# From this many examples on, labels that are mostly different are taken for a mistake.
MANY_EXAMPLES = 20


def noisy_data(
    source: Source,
    classes: Sequence[Any] | None,
    sample_weight: Weights,
    trusted: Weights,
    image_size: int | None,
) -> tuple[NoisyData, Encoder]:
    """Return the examples as methods see them, and the encoder that made their inputs.

    Copies of an example become one example with the weight of all; examples of weight zero
    are left out.
    """
    weights = _checked_weights(sample_weight, len(source))
    mask = np.zeros(len(source), dtype=bool) if trusted is None else _mask(trusted, source)
    if (weights == 0).any():
        # A weight of zero must count like an example that is not there, for the classes too.
        kept = np.flatnonzero(weights > 0)
        source, weights, mask = source.take(kept), weights[kept], mask[kept]
    codes, names = encode_labels(_labels(source), classes, ids=source.ids)
    if len(names) < 2:
        raise InputError(
            "y",
            f"holds one class only ({names[0]!r}); a classifier needs two classes or more",
            "Give examples of another class, or name all classes with classes=[...].",
        )
    different = len(np.unique(codes))
    if len(codes) >= MANY_EXAMPLES and different > len(codes) / 2:
        raise InputError(
            "y",
            f"has {different} different labels for {len(codes)} examples",
            "Names and measurements are not classes: give the column, or the array, of the labels.",
        )
    group = group_rows(source)
    weights = merge_duplicates(codes, weights, group, mask)
    order = canonical_order(codes, group)
    order = order[weights[order] > 0]
    encoder = fit_encoder(source, order, weights[order], image_size=image_size)
    examples = encoder.encode(source)
    return NoisyData(examples, codes, names, weights, mask, group, source.ids), encoder


def draw_seed(random_state: int | np.random.RandomState | None) -> int:
    """Return the one seed: given, drawn from the caller's generator, or fresh."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    raise InputError(
        "random_state",
        f"cannot seed a random stream with {random_state!r}",
        "Give a non-negative integer, a numpy RandomState, or None.",
    )


def _labels(source: Source) -> NDArray[Any]:
    if source.labels is None:
        raise InputError("y", "there are no labels", "Give one label for each example.")
    return source.labels


def is_flat(X: Any) -> bool:
    """Tell whether X is anything but an array of images."""
    return not (isinstance(X, np.ndarray) and X.ndim > 2)


def checked_labels(estimator: str, y: Any) -> NDArray[Any]:
    """Return labels as a flat array after the checks that scikit-learn's users know."""
    if y is None:
        raise ValueError(
            f"This {estimator} estimator requires y to be passed, but the target y is None."
        )
    values = np.asarray(y)
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise InputError("y", "has infinite values", "Labels are strings, integers or booleans.")
    if values.dtype.kind in "fO":
        # Real-valued targets are refused; missing labels get their own message later.
        present = values[~_missing(values)]
        if len(present):
            check_classification_targets(present)
    return np.asarray(column_or_1d(y, warn=True))


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    return missing_labels(values) if values.ndim == 1 else np.zeros(values.shape, dtype=bool)


def _checked_weights(sample_weight: Weights, n: int) -> NDArray[np.float64]:
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise InputError(
            "sample_weight",
            f"has shape {weights.shape} but there are {n} examples",
            "Give one weight for each example.",
        )
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise InputError(
            "sample_weight", "needs finite, non-negative weights that are not all zero"
        )
    return weights


def _mask(trusted: ArrayLike, source: Source) -> NDArray[np.bool_]:
    mask = np.asarray(trusted)
    if mask.shape != (len(source),) or mask.dtype != bool:
        raise InputError(
            "trusted",
            f"needs a boolean for each of {len(source)} examples, got {mask.dtype} {mask.shape}",
        )
    return mask


def check_folds(folds: int) -> None:
    """Refuse a number of folds that cannot be; 0 stands for none."""
    if folds < 0 or folds == 1:
        raise InputError("audit_folds", f"must be 0, or at least 2, got {folds}", "Use 3.")
