"""The audit: from labels and probabilities to verdicts and a summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bltm.audit.cases import Case
from bltm.audit.certificate import Collection, certify, collect_above
from bltm.audit.checks import calibrate
from bltm.audit.from_arrays import case_of_arrays
from bltm.audit.from_fit import case_of_evidence
from bltm.audit.judge import Judgement, judge
from bltm.audit.rates import average_transition
from bltm.audit.records import Audit, Calibration
from bltm.audit.summarise import Found, summarise
from bltm.audit.thresholds import Thresholds, decide
from bltm.audit.transitions import (
    ClassTransition,
    Floats,
    KnownParts,
    Transition,
    TransitionRows,
)
from bltm.core.errors import InputError
from bltm.core.evidence import Evidence
from bltm.core.tempering import Tempering
from bltm.transition.surest import surest


def audit(
    labels: Any,
    pred_probs: Any = None,
    transition: Any = None,
    *,
    log_columns: ArrayLike | None = None,
    classes: Sequence[Any] | NDArray[Any] | None = None,
    ids: ArrayLike | None = None,
    id_name: str = "id",
    trusted: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    in_sample: bool | None = None,
    thresholds: Thresholds | None = None,
    top_k: int = 5,
    seed: int = 0,
) -> Audit:
    """Find the labels that are probably wrong.

    ``audit(labels, pred_probs)`` takes ready posteriors of any model, best out of sample; one
    transition matrix is counted where they are surest. ``audit(labels, pred_probs, transition)``
    takes probabilities of the *right* label and T. ``audit(evidence)`` and ``audit(estimator)``
    take what a fit of this package left behind.

    Parameters
    ----------
    labels
        Given labels, shape (N,): strings, integers or booleans. Or an ``Evidence``, or a fitted
        estimator with ``evidence_``; then only the options from ``in_sample`` on may be given.
    pred_probs
        Class probabilities, shape (N, C).
    transition
        ``T[i, j] = P(given = j | right = i)``: (C, C), (N, C, C), or a function that takes
        positions (B,) and gives (B, C, C).
    log_columns
        Instead of ``transition``: log T(x)[:, given label], shape (N, C).
    classes
        The classes in the order of the columns. By default whole numbers within 0..C-1 are column
        numbers, and other labels stand in sorted order.
    ids, id_name
        Stable names of the examples, by default 0..N-1, and what they are called.
    trusted
        Mask of labels known to be right, shape (N,).
    weights
        Weights in the summary, shape (N,); zero leaves an example out of it.
    in_sample
        For a fit: True takes the probabilities of the classifier that saw the labels, False those
        of classifiers that did not, None the latter where there are any. For arrays: True says
        that the model had seen the labels, which makes ``p_wrong`` a score.
    thresholds
        Limits of the verdicts.
    top_k
        How many likely labels to keep for each example.
    seed
        Of the random draws in the null check and the diagnosis.

    Returns
    -------
    Audit
        Arrays in the order of the data, and a summary.

    Examples
    --------
    >>> import bltm
    >>> probs = np.array([[0.95, 0.05]] * 60 + [[0.05, 0.95]] * 60)
    >>> labels = ["cat"] * 60 + ["dog"] * 57 + ["cat"] * 3
    >>> found = bltm.audit(labels, probs)
    >>> sorted(found.ranking()[:3].tolist())
    [117, 118, 119]
    """
    arrays = {
        "pred_probs": pred_probs,
        "transition": transition,
        "log_columns": log_columns,
        "classes": classes,
        "ids": ids,
        "trusted": trusted,
        "weights": weights,
    }
    if isinstance(top_k, bool) or not isinstance(top_k, int | np.integer) or top_k < 1:
        raise InputError("top_k", f"must be a whole number from 1 on, got {top_k!r}", "Use 5.")
    evidence = labels if isinstance(labels, Evidence) else getattr(labels, "evidence_", None)
    if isinstance(evidence, Evidence):
        for name, value in arrays.items():
            if value is not None:
                raise InputError(name, "cannot be given with a fit", "Leave it out.")
        case = case_of_evidence(evidence, in_sample)
    elif hasattr(labels, "fit") and not hasattr(labels, "__array__"):
        raise InputError(
            "labels", f"this {type(labels).__name__} is not fitted", "Call its fit first."
        )
    elif pred_probs is None:
        raise InputError(
            "pred_probs",
            "is missing",
            "Give class probabilities beside the labels, or a fitted estimator alone.",
        )
    else:
        case = case_of_arrays(labels, id_name=id_name, in_sample=bool(in_sample), **arrays)
    return _examined(case, thresholds or Thresholds(), int(top_k), seed)


def _examined(case: Case, thresholds: Thresholds, top_k: int, seed: int) -> Audit:
    inference = case.inference
    judgement = _judged(case, case.tempering, top_k)
    p_wrong = judgement.p_wrong
    changed = judgement.suggested != case.labels
    verdict = decide(p_wrong, judgement.top_probs[:, 0], changed, thresholds)
    collection = case.collection
    if collection is None and inference is not None and case.bound is not None:
        collection = collect_above(inference, case.bound.value)
    calibration = _calibration(case, collection, p_wrong)
    certificate = None
    if collection is not None and inference is not None:
        certificate = certify(
            collection, inference, case.labels, judgement.p_inferred, case.bound, case.classes
        )
    mean = _average_transition(case, judgement, top_k)
    full = _completed(case.transition, mean)
    summary = summarise(
        Found(case, judgement, p_wrong, verdict, calibration, certificate, mean, full),
        thresholds,
        seed,
    )
    used = case.weights > 0 if case.weights is not None else np.ones(len(case.labels), bool)
    collected = np.zeros(len(case.labels), np.int8)
    shown = collection if case.learned_from is None else case.learned_from
    if shown is not None:
        same = case.labels[shown.positions] == shown.inferred
        collected[shown.positions] = np.where(same, 1, 2)
    return Audit(
        ids=case.ids,
        id_name=case.id_name,
        classes=case.classes,
        labels=case.labels,
        suggested=judgement.suggested,
        p_wrong=p_wrong,
        p_right=judgement.p_right,
        top=judgement.top,
        top_probs=judgement.top_probs,
        t_row=None if full is None else TransitionRows(full, judgement.suggested),
        verdict=verdict,
        collected=collected,
        support=case.support,
        trusted=case.trusted if case.trusted is not None else np.zeros(len(used), bool),
        used=used,
        held_out=case.held_out_mask(),
        kind=case.kind,
        source=case.source,
        summary=summary,
    )


def _judged(case: Case, tempering: Tempering | None, top_k: int) -> Judgement:
    return judge(
        case.labels,
        case.probs,
        case.transition,
        tempering=tempering,
        unmix=case.unmix,
        suspicion=case.suspicion,
        trusted=case.trusted,
        weights=case.weights,
        inferred=None if case.inference is None else case.inference.likeliest,
        top_k=top_k,
    )


def _average_transition(case: Case, judgement: Judgement, top_k: int) -> NDArray[np.float64]:
    """Return the average of T(x) as it was estimated, however far it is trusted with labels."""
    if case.tempering is not None and not isinstance(case.transition, ClassTransition):
        judgement = _judged(case, None, top_k)
    return average_transition(judgement.joint, case.transition)


def _calibration(case: Case, collection: Collection | None, p_wrong: Floats) -> Calibration | None:
    """Compare with the surer half of the collected examples, whose inferred labels are purest."""
    if collection is None:
        return None
    positions, inferred = collection.positions, collection.inferred
    if case.inference is not None:
        half = surest(inferred, case.inference.height[positions], len(case.classes), share=0.5)
        positions, inferred = positions[half], inferred[half]
    doubtful = np.ones(len(positions), bool) if case.trusted is None else ~case.trusted[positions]
    return calibrate(p_wrong, case.labels, positions[doubtful], inferred[doubtful])


def _completed(transition: Transition | None, mean: NDArray[np.float64]) -> Transition | None:
    """Return a T(x) of which any row and column can be had."""
    if not isinstance(transition, KnownParts):
        return transition
    return KnownParts(
        transition.log_columns,
        transition.given,
        transition.known_rows,
        transition.row_labels,
        ClassTransition(mean),
    )
