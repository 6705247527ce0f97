"""The audit of ready probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bltm.audit.cases import Case, name_of, one_matrix, read_probs, seen_or_not
from bltm.audit.inputs import (
    check_ids,
    check_length,
    check_weights,
    encode,
    scan,
)
from bltm.audit.transitions import (
    KnownParts,
    Transition,
    as_transition,
)
from bltm.core.errors import InputError
from bltm.transition.surest import surest_transition


def case_of_arrays(
    labels: Any,
    pred_probs: Any,
    transition: Any,
    log_columns: ArrayLike | None,
    classes: Sequence[Any] | NDArray[Any] | None,
    ids: ArrayLike | None,
    trusted: ArrayLike | None,
    weights: ArrayLike | None,
    id_name: str,
    in_sample: bool,
) -> Case:
    """Return the case of ready probabilities."""
    scanned = scan(pred_probs)
    n, n_classes = scanned.probs.shape
    codes, names = encode(labels, n_classes, classes)
    if len(codes) != n:
        raise InputError("labels", f"has {len(codes)} entries and pred_probs {n} rows", "")
    weight = check_weights(weights, n)
    shared: dict[str, Any] = {
        "labels": codes,
        "classes": names,
        "ids": check_ids(ids, n),
        "id_name": id_name,
        "probs": scanned.probs,
        "likeliest": scanned.likeliest,
        "trusted": check_length("trusted", trusted, n, np.bool_),
        "weights": weight,
    }
    counted = surest_transition(scanned.likeliest, scanned.height, codes, n_classes, weight)
    if transition is None and log_columns is None:
        used = np.arange(n) if weight is None else np.flatnonzero(weight)
        parts = read_probs(scanned, codes, counted, weight, shared["trusted"], used, in_sample)
        return Case(**shared, **parts)
    if transition is not None and log_columns is not None:
        raise InputError("log_columns", "is given beside transition", "Give one of the two.")
    T: Transition
    if log_columns is None:
        T = as_transition(transition, n, n_classes)
    else:
        columns = np.asarray(log_columns, dtype=np.float32)
        if columns.shape != (n, n_classes) or not (columns <= 1e-3).all():
            raise InputError(
                "log_columns",
                f"needs logarithms of probabilities of shape ({n}, {n_classes})",
                "Give log T(x)[:, given label] for each example.",
            )
        T = one_matrix(columns, codes) or KnownParts(columns, codes)
    everyone = np.arange(0 if in_sample else n)
    return Case(
        **shared,
        transition=T,
        kind="probability",
        source=f"f·T with the given probabilities and {name_of(T)}{seen_or_not(in_sample)}",
        counted=counted,
        fitted_on=everyone,
        held_out=everyone,
    )
