"""What an audit finds out about a data set, piece by piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Rate:
    """A share with a 95 % interval, and the number of examples (sum of weights) behind it."""

    value: float
    low: float
    high: float
    n: float


@dataclass(frozen=True)
class ClassRate:
    """The share of wrong labels in one class."""

    label: Any
    rate: Rate


@dataclass(frozen=True)
class ConfusedPair:
    """A label that stands where another should be.

    ``count`` examples given ``given`` have the suggestion ``suggested``; ``expected`` is the sum
    of their probabilities over all examples given ``given``.
    """

    given: Any
    suggested: Any
    count: int
    expected: float


@dataclass(frozen=True)
class CalibrationBin:
    """Collected examples whose ``p_wrong`` lies between two limits."""

    low: float
    high: float
    n: int
    predicted: float
    observed: Rate


@dataclass(frozen=True)
class Calibration:
    """``p_wrong`` against what is seen on the surer half of the collected examples.

    A collected example has an inferred label, so that whether its given label differs is known, as
    far as the inferred label is right. ``gap`` is predicted minus observed share of wrong labels,
    ``error`` the mean absolute difference over the bins.
    """

    n: int
    predicted: float
    observed: float
    gap: float
    error: float
    bins: tuple[CalibrationBin, ...]
    words: str


@dataclass(frozen=True)
class NullCheck:
    """The audit of labels that were redrawn from f·T, whose right labels are known.

    Attributes
    ----------
    n
        Number of examples.
    flagged, flagged_in_data
        Share of redrawn labels, and of the given ones, whose verdict is not *keep*.
    false_flags
        Share of the flagged redrawn labels that are right.
    relabel_precision
        Share of *relabel* verdicts on redrawn labels whose suggestion is the right label.
    false_flags_without_noise
        Share of labels flagged when every redrawn label is the right one.
    found
        Share of the wrong redrawn labels that are flagged.
    """

    n: int
    flagged: float
    flagged_in_data: float
    false_flags: float | None
    relabel_precision: float | None
    false_flags_without_noise: float
    found: float | None
    words: str


@dataclass(frozen=True)
class Diagnosis:
    """Whether T(x) predicts held-out noisy labels better than one T.

    ``gain`` is the mean difference of log-likelihoods per example, T(x) minus one T, ``low`` and
    ``high`` its 95 % interval and ``p_value`` that of a paired t-test. ``instance_dependent`` is
    True (T(x) is better), False (it is not) or None (nothing can be said).
    """

    n: int
    gain: float | None
    low: float | None
    high: float | None
    p_value: float | None
    instance_dependent: bool | None
    words: str


@dataclass(frozen=True)
class NoiseBound:
    """An estimate of ``rho_max = sup_x P(given = y | right ≠ y, x)`` with a 95 % interval."""

    value: float
    low: float
    high: float
    n: int
    assumptions: str


@dataclass(frozen=True)
class SweepStep:
    """What would be collected for one value of rho.

    ``agreement`` is the share of collected examples whose given label is the inferred one,
    ``purity`` the mean probability that the inferred label is right.
    """

    rho: float
    threshold: float
    collected: int
    share: float
    agreement: float | None
    purity: float | None
    classes_without: int


@dataclass(frozen=True)
class Certificate:
    """What the inferred labels rest on.

    Attributes
    ----------
    threshold, rho_max
        The noisy posterior had to be above ``threshold = (1 + rho_max) / 2``.
    assumed
        Where ``rho_max`` comes from: "fit" or "estimate".
    out_of_sample
        Whether the posteriors come from models that had not seen the labels.
    coverage
        Number collected of each class, shape (C,).
    zero_coverage
        Classes of which none was collected.
    bound
        The estimate of rho_max, None where there is nothing to estimate it from.
    sweep
        The same for other values of rho.
    condition
        When the inferred labels are Bayes-optimal, in words.
    """

    collector: str
    threshold: float
    rho_max: float
    assumed: str
    out_of_sample: bool
    collected: int
    coverage: tuple[int, ...]
    zero_coverage: tuple[Any, ...]
    bound: NoiseBound | None
    sweep: tuple[SweepStep, ...]
    condition: str
