"""How far to trust the probabilities: on collected examples, and on labels that are redrawn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.audit.findings import Calibration, CalibrationBin, NullCheck
from bltm.audit.intervals import jeffreys
from bltm.audit.judge import Unmix
from bltm.audit.thresholds import KEEP, RELABEL, Thresholds, decide
from bltm.audit.transitions import Codes, Floats, Transition
from bltm.core.blocks import blocks
from bltm.core.matrix import sample_rows
from bltm.core.posterior import given_and_best, right_label_posterior
from bltm.core.tempering import Tempering

BINS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 1.0)
FEWEST = 30
# Examples that are redrawn, and entries of T that may be computed for them.
MOST_REDRAWN, MOST_ENTRIES = 20_000, 2**31


def calibrate(
    p_wrong: Floats, labels: Codes, positions: NDArray[np.integer[Any]], inferred: Codes
) -> Calibration | None:
    """Compare ``p_wrong`` with what is seen on collected examples.

    Parameters
    ----------
    p_wrong, labels
        Of all examples, shape (N,).
    positions, inferred
        Collected examples without trusted ones, and their inferred labels, shape (M,).
    """
    if len(positions) < FEWEST:
        return None
    p = p_wrong[positions].astype(np.float64)
    wrong = labels[positions] != inferred
    place = np.clip(np.digitize(p, BINS) - 1, 0, len(BINS) - 2)
    n = np.bincount(place, minlength=len(BINS) - 1)
    predicted = np.bincount(place, p, len(n))
    seen = np.bincount(place, wrong, len(n))
    bins = tuple(
        CalibrationBin(
            BINS[i],
            BINS[i + 1],
            int(n[i]),
            float(predicted[i] / n[i]),
            jeffreys(float(seen[i]), float(n[i])),
        )
        for i in np.flatnonzero(n).tolist()
    )
    error = float(np.abs(predicted - seen).sum() / len(p))
    gap = float(p.mean() - wrong.mean())
    words = (
        f"On the {len(p):,} examples whose inferred label is surest, {_percent(wrong.mean())} of "
        f"the given labels differ from it, and p_wrong says {_percent(p.mean())}; over all levels "
        f"of p_wrong the two are {_percent(error)} apart on average. These are easier examples, "
        "and model and inferred label can share an error."
    )
    return Calibration(len(p), float(p.mean()), float(wrong.mean()), gap, error, bins, words)


def null_check(
    probs: NDArray[np.floating[Any]],
    transition: Transition,
    tempering: Tempering | None,
    unmix: Unmix | None,
    verdict: NDArray[np.int8],
    eligible: NDArray[np.integer[Any]],
    thresholds: Thresholds,
    rng: np.random.Generator,
) -> NullCheck | None:
    """Redraw right and noisy labels from f·T, audit them again and count the mistakes.

    Parameters
    ----------
    probs, transition, tempering, unmix
        What the audit was made of.
    verdict
        Verdicts on the given labels, shape (N,).
    eligible
        Examples to draw from.
    thresholds
        The limits of the verdicts.
    rng
        Random numbers.
    """
    most = min(MOST_REDRAWN, max(500, MOST_ENTRIES // transition.n_classes**2))
    if len(eligible) == 0:
        return None
    index = np.asarray(eligible, dtype=np.int64)
    if len(index) > most:
        index = np.sort(rng.choice(index, most, replace=False))
    flagged = wrong = false = found = relabels = right_relabels = without = 0
    for block in blocks(len(index), transition.block_rows):
        at = index[block]
        f = probs[at].astype(np.float32, copy=False)
        f = f if unmix is None else unmix(f)
        right = sample_rows(f.astype(np.float64), rng)
        noisy = sample_rows(transition.rows(at, right).astype(np.float64), rng)
        codes, suggested = _judged(f, transition.columns(at, noisy), noisy, tempering, thresholds)
        flag, is_wrong = codes != KEEP, noisy != right
        flagged += int(flag.sum())
        wrong += int(is_wrong.sum())
        false += int((flag & ~is_wrong).sum())
        found += int((flag & is_wrong).sum())
        relabels += int((codes == RELABEL).sum())
        right_relabels += int(((codes == RELABEL) & (suggested == right)).sum())
        clean, _ = _judged(f, transition.columns(at, right), right, tempering, thresholds)
        without += int((clean != KEEP).sum())
    n = len(index)
    in_data = float((verdict[index] != KEEP).mean())
    share_false = false / flagged if flagged else None
    return NullCheck(
        n=n,
        flagged=flagged / n,
        flagged_in_data=in_data,
        false_flags=share_false,
        relabel_precision=right_relabels / relabels if relabels else None,
        false_flags_without_noise=without / n,
        found=found / wrong if wrong else None,
        words=_null_words(n, flagged / n, in_data, share_false),
    )


def _judged(
    f: Floats, columns: Floats, given: Codes, tempering: Tempering | None, thresholds: Thresholds
) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    if tempering is not None:
        columns = tempering.columns(columns, given)
    right, _ = right_label_posterior(f, columns)
    p_right, suggested = given_and_best(right, given)
    p_suggested = right[np.arange(len(given)), suggested]
    codes = decide(1.0 - p_right, p_suggested, suggested != given, thresholds)
    return codes, suggested


def _null_words(n: int, flagged: float, in_data: float, share_false: float | None) -> str:
    said = "none of them" if share_false is None else f"{_percent(share_false)} of them falsely"
    text = (
        f"With labels of {n:,} examples redrawn from the estimated f·T, {_percent(flagged)} are "
        f"flagged, {said}. This is how sharp the audit is if f and T are right"
    )
    if abs(flagged - in_data) <= 0.25 * max(flagged, in_data) + 0.01:
        return f"{text}; the data has about as many flags ({_percent(in_data)}), which fits."
    return (
        f"{text}; the data has {_percent(in_data)} flags, so f and T do not describe it well: "
        "trust the order of the list more than the probabilities."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
