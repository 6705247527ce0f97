"""What a fit knows of its training examples: all that an audit of their labels needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.core.records import (
    Collected,
    FitResult,
    FloatArray,
    IntArray,
    NoisyData,
    Posterior,
    Split,
    Suspicion,
)

Probs = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything about the N training examples that an audit needs.

    Attributes
    ----------
    ids, id_name
        The user's name of each example, and what the user calls these names.
    classes
        The C classes.
    labels
        Given labels as codes, shape (N,).
    weights
        Weight of each example, shape (N,); zero for copies and examples that were not used.
    trusted
        Mask of labels known to be right, shape (N,).
    split
        Which examples trained and which selected.
    probs
        The classifier's probabilities of the right label, shape (N, C).
    suspicion
        How much speaks against each given label.
    out_of_sample
        Probabilities of the right label by classifiers that have not seen the example's given one,
        shape (N, C); None if there are none.
    columns
        log T(x)[:, given label], shape (N, C); None for methods without a transition.
    rows
        T(x)[i, :] for the most probable right label i, shape (N, C); None likewise.
    expected
        How probably each label is wrong by f and T(x) before it is seen, shape (N,); None likewise.
    support
        Positions of the nearest collected examples that have that label as Bayes label, shape
        (N, 3), -1 for none; None for methods that collect nothing.
    posterior, distilled
        Noisy posteriors, and the Bayes labels that were inferred from them; where the method has
        them.
    collected
        The inferred labels that T*(x) was learned from; of a later round, if there was one.
    """

    ids: list[Any]
    id_name: str
    classes: list[Any]
    labels: IntArray
    weights: FloatArray
    trusted: NDArray[np.bool_]
    split: Split
    probs: Probs
    suspicion: Suspicion
    out_of_sample: Probs | None = None
    columns: Probs | None = None
    rows: Probs | None = None
    expected: Probs | None = None
    support: IntArray | None = None
    posterior: Posterior | None = None
    distilled: Collected | None = None
    collected: Collected | None = None

    @classmethod
    def of(cls, data: NoisyData, split: Split, result: FitResult, id_name: str) -> Evidence:
        """Gather what a fit leaves behind."""
        return cls(
            ids=data.ids.tolist(),
            id_name=id_name,
            classes=data.classes.tolist(),
            labels=data.labels,
            weights=data.weights,
            trusted=data.trusted,
            split=split,
            probs=result.probs,
            suspicion=result.suspicion,
            out_of_sample=result.out_of_sample,
            columns=result.columns,
            rows=result.rows,
            expected=result.expected,
            support=result.support,
            posterior=result.posterior,
            distilled=result.distilled,
            collected=result.collected,
        )
