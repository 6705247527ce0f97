"""The summary of an audit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bltm.audit.cases import Case
from bltm.audit.checks import null_check
from bltm.audit.diagnosis import diagnose
from bltm.audit.findings import Calibration, Certificate
from bltm.audit.intervals import Z
from bltm.audit.judge import Judgement
from bltm.audit.rates import confused_pairs, noise_rates
from bltm.audit.records import AuditSummary
from bltm.audit.thresholds import VERDICTS, Thresholds
from bltm.audit.transitions import Floats, Transition
from bltm.audit.words import in_words
from bltm.core.random import stream

# What a noise rate may be off that was counted beside scores.
SCORE_ERROR = 0.05


@dataclass(frozen=True, eq=False)
class Found:
    """What the parts of a summary are made of."""

    case: Case
    judgement: Judgement
    p_wrong: Floats
    verdict: NDArray[np.int8]
    calibration: Calibration | None
    certificate: Certificate | None
    mean: NDArray[np.float64]
    transition: Transition | None


def summarise(found: Found, thresholds: Thresholds, seed: int) -> AuditSummary:
    """Return what an audit says of the data set."""
    case, judgement = found.case, found.judgement
    n = len(case.labels)
    weights = np.ones(n) if case.weights is None else case.weights
    used = weights > 0
    open_labels = used if case.trusted is None else used & ~case.trusted
    eligible = np.flatnonzero(open_labels)
    systematic, scale = _uncertainty(found, weights, open_labels)
    rates = noise_rates(judgement, case.labels, case.classes, weights, systematic, scale)
    differs = case.likeliest[eligible] != case.labels[eligible]
    disagreement = float(weights[eligible] @ differs / max(weights[eligible].sum(), 1e-300))
    pairs = confused_pairs(judgement, case.labels, case.classes, used)
    counts = np.bincount(found.verdict[used], minlength=len(VERDICTS)).tolist()
    verdicts = dict(zip(VERDICTS, counts, strict=True))
    checked = None
    if found.transition is not None and case.suspicion is None:
        checked = null_check(
            case.probs,
            found.transition,
            case.tempering,
            case.unmix,
            found.verdict,
            eligible,
            thresholds,
            stream(seed, "audit", "null"),
        )
    diagnosis = diagnose(
        case.probs,
        case.labels,
        case.transition,
        judgement.likelihood,
        case.fitted_on,
        case.held_out,
        found.mean,
        stream(seed, "audit", "diagnosis"),
    )
    return AuditSummary(
        n=n,
        used=int(used.sum()),
        kind=case.kind,
        source=case.source,
        classes=case.classes,
        noise_rate=rates.overall,
        disagreement=disagreement,
        by_given=rates.by_given,
        by_right=rates.by_right,
        average_transition=found.mean,
        pairs=pairs,
        verdicts=verdicts,
        thresholds=thresholds,
        calibration=found.calibration,
        null_check=checked,
        diagnosis=diagnosis,
        certificate=found.certificate,
        words=in_words(
            int(used.sum()),
            case.kind,
            case.source,
            rates,
            disagreement,
            verdicts,
            pairs,
            found.calibration,
            checked,
            diagnosis,
            found.certificate,
        ),
    )


def _uncertainty(
    found: Found, weights: NDArray[np.float64], open_labels: NDArray[np.bool_]
) -> tuple[float, float]:
    """Return by how much the noise rate may be off beyond chance, and how to scale scores."""
    total = max(weights.sum(), 1e-300)
    rights = found.judgement.joint.sum(axis=1)
    share_open = float(weights[open_labels].sum() / total)
    rate = float(found.case.counted.rates @ rights / max(rights.sum(), 1e-300))
    counted, mean = share_open * rate, float(weights @ found.p_wrong / total)
    few = Z * float(np.sqrt(rate * (1.0 - rate) / max(found.case.counted.n, 1)))
    calibration = found.calibration
    if found.case.kind == "probability":
        gap = 0.0 if calibration is None else abs(calibration.gap)
        return float(np.hypot(max(abs(counted - mean), gap), few)), 1.0
    gap = 0.0 if calibration is None else abs(calibration.observed - counted)
    return float(np.hypot(max(gap, SCORE_ERROR), few)), counted / mean if mean > 0 else 1.0
