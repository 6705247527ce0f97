"""How much noise there is: overall, by class, and between which classes.

The share of wrong labels is the mean of ``p_wrong``. Its interval has two parts. One is chance:
given the probabilities, the number of wrong labels has the variance ``Σ p (1 - p)``. The other is
that the probabilities may be off; it is taken as the larger of two distances that can be measured,
from the share seen on collected examples, and from a second estimate that does not use the
probabilities but counts disagreement where the classifier is surest (the chance in that count is
added). Neither can see an error that classifier and inferred labels share. Where ``p_wrong`` is
only a score, that second estimate takes the place of its mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.audit.findings import ClassRate, ConfusedPair, Rate
from bltm.audit.intervals import Z
from bltm.audit.judge import Judgement
from bltm.audit.transitions import ClassTransition, Codes, Transition

FloatArray = NDArray[np.float64]
MOST_PAIRS = 20


@dataclass(frozen=True, eq=False)
class NoiseRates:
    """Shares of wrong labels."""

    overall: Rate
    by_given: tuple[ClassRate, ...]
    by_right: tuple[ClassRate, ...]


def noise_rates(
    judgement: Judgement,
    labels: Codes,
    classes: list[Any],
    weights: FloatArray,
    systematic: float,
    scale: float = 1.0,
) -> NoiseRates:
    """Return the shares of wrong labels with their intervals.

    Parameters
    ----------
    judgement
        What was found; its joint is weighted alike.
    labels
        Given labels as codes, shape (N,).
    classes
        The C classes.
    weights
        Weights, zero for examples that do not count, shape (N,).
    systematic
        By how much the overall share may be off beyond chance. Shares of classes are taken to be
        off by as much in proportion.
    scale
        What ``p_wrong`` is multiplied by, where it is a score and not a probability.
    """
    n_classes = len(classes)
    p = np.minimum(scale * judgement.p_wrong.astype(np.float64), 1.0)
    mass = np.bincount(labels, weights, n_classes)
    wrong = np.bincount(labels, weights * p, n_classes)
    spread = np.bincount(labels, weights**2 * p * (1.0 - p), n_classes)
    overall = _rate(wrong.sum(), mass.sum(), spread.sum(), systematic)
    relative = systematic / max(overall.value, 1e-3)
    by_given = tuple(
        ClassRate(name, _rate(k, n, s, relative * k / n if n else 1.0))
        for name, k, n, s in zip(
            classes, wrong.tolist(), mass.tolist(), spread.tolist(), strict=True
        )
    )
    rights = judgement.joint.sum(axis=1)
    missed = np.minimum(scale * (rights - np.diag(judgement.joint)), rights)
    # Chance enters through the labels: a label that is wrong is one for some right class.
    by_right = tuple(
        ClassRate(name, _rate(k, n, k * (1.0 - k / n) if n else 0.0, relative * k / n if n else 1))
        for name, k, n in zip(classes, missed.tolist(), rights.tolist(), strict=True)
    )
    return NoiseRates(overall, by_given, by_right)


def average_transition(joint: FloatArray, transition: Transition | None) -> FloatArray:
    """Return the average of T(x) over the examples: one T as it is, else from the joint."""
    if isinstance(transition, ClassTransition):
        return transition.T
    sums = joint.sum(axis=1, keepdims=True)
    return np.where(sums > 0, joint / np.maximum(sums, 1e-300), np.eye(len(joint)))


def confused_pairs(
    judgement: Judgement, labels: Codes, classes: list[Any], used: NDArray[np.bool_]
) -> tuple[ConfusedPair, ...]:
    """Return the pairs with the largest expected number of wrong labels."""
    n_classes = len(classes)
    expected = judgement.joint.copy()
    np.fill_diagonal(expected, 0.0)
    order = np.argsort(-expected, axis=None, kind="stable")[:MOST_PAIRS]
    flat = judgement.suggested.astype(np.int64) * n_classes + labels
    counts = np.bincount(flat[used], minlength=n_classes**2)
    return tuple(
        ConfusedPair(
            classes[place % n_classes],
            classes[place // n_classes],
            int(counts[place]),
            float(expected.flat[place]),
        )
        for place in order.tolist()
        if expected.flat[place] > 0
    )


def _rate(wrong: float, mass: float, spread: float, systematic: float) -> Rate:
    if mass <= 0:
        return Rate(0.0, 0.0, 1.0, 0.0)
    value = min(1.0, wrong / mass)
    chance = Z * np.sqrt(max(spread, 0.0)) / mass + 0.5 / max(mass, 1.0)
    half = float(np.hypot(chance, systematic))
    return Rate(
        float(value), max(0.0, float(value - half)), min(1.0, float(value + half)), float(mass)
    )
