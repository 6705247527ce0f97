"""Step 2 of Algorithm 1 (section 4.2): collect examples whose Bayes label can be inferred.

If ``rho_max`` bounds the noise, ``P(noisy = y | Y ≠ y, x) ≤ rho_max`` for all x and y, then
``P(noisy = y | x) ≤ P(Y = y | x) + (1 - P(Y = y | x)) rho_max``; so a noisy posterior above
``(1 + rho_max) / 2`` means ``P(Y = y | x) > 1/2``, and y is the Bayes label. This holds for the
*true* noisy posterior and for a ``rho_max`` at or above the true bound; an estimated posterior has
to be calibrated for it to hold in practice.

``rho_max`` is not the bound on the flip rate of Algorithm 2. There an example's label flips with
probability ``q ≤ rho_max(Algorithm 2)``, spread over the other classes. The bound here is on one
class's share of the flips and is at most that large when clean labels are deterministic.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bltm.core.errors import CoverageWarning, InputError
from bltm.core.records import Collected, IntArray, Posterior
from bltm.engine.job import Job

FEW = 10


class Collector(Protocol):
    """A rule that infers Bayes labels from noisy posteriors. Users can write their own."""

    @property
    def name(self) -> str:
        """How the rule is called."""

    @property
    def out_of_sample(self) -> bool:
        """Which kind of posteriors the rule wants."""

    def __call__(self, probs: np.ndarray, threshold: float) -> tuple[IntArray, IntArray]:
        """Return positions of the collected rows of ``probs`` (M, C), and their Bayes labels."""


@dataclass(frozen=True)
class ThresholdCollector:
    """The paper's rule: collect where the largest posterior is above the threshold.

    Examples
    --------
    >>> rule = ThresholdCollector("in-sample", out_of_sample=False)
    >>> rule(np.array([[0.7, 0.3], [0.6, 0.4], [0.1, 0.9]]), 0.65)
    (array([0, 2]), array([0, 1]))
    """

    name: str
    out_of_sample: bool

    def __call__(self, probs: np.ndarray, threshold: float) -> tuple[IntArray, IntArray]:
        """Return positions and Bayes labels of rows whose largest entry is above the threshold."""
        positions = np.flatnonzero(probs.max(axis=1) > threshold)
        return positions, probs[positions].argmax(axis=1)


@dataclass(frozen=True)
class CoveringCollector:
    """The paper's rule, and for each class that falls short its most confident examples.

    Examples added below the threshold have no guarantee; they must still be the likeliest class.

    Parameters
    ----------
    name
        How the rule is called.
    out_of_sample
        Which posteriors it wants.
    at_least
        Number of examples that each class should have, if so many are predicted as that class.
    """

    name: str = "covering"
    out_of_sample: bool = True
    at_least: int = 50

    def __call__(self, probs: np.ndarray, threshold: float) -> tuple[IntArray, IntArray]:
        """Return positions and Bayes labels, each class covered where possible."""
        likeliest, height = probs.argmax(axis=1), probs.max(axis=1)
        keep = height > threshold
        for label in range(probs.shape[1]):
            own = np.flatnonzero(likeliest == label)
            if keep[own].sum() < self.at_least:
                keep[own[np.argsort(-height[own], kind="stable")[: self.at_least]]] = True
        positions = np.flatnonzero(keep)
        return positions, likeliest[positions]


COLLECTORS: dict[str, Collector] = {
    "in-sample": ThresholdCollector("in-sample", out_of_sample=False),
    "cross-fitted": ThresholdCollector("cross-fitted", out_of_sample=True),
    "covering": CoveringCollector(),
}


def get_collector(collector: str | Collector) -> Collector:
    """Return a collector by name, or the user's own."""
    if not isinstance(collector, str) and callable(collector):
        return collector
    if collector not in COLLECTORS:
        raise InputError(
            "collector",
            f"unknown: {collector!r}",
            f"Use one of {', '.join(COLLECTORS)}, or an object with the Collector interface.",
        )
    return COLLECTORS[collector]


def threshold_of(rho_max: float) -> float:
    """Return (1 + rho_max) / 2.

    Examples
    --------
    >>> threshold_of(0.3)
    0.65
    """
    if not 0.0 <= rho_max < 1.0:
        raise InputError(
            "rho_max",
            f"must lie in [0, 1), got {rho_max}",
            "It is the largest probability with which a wrong class is given as the label.",
        )
    return (1.0 + rho_max) / 2.0


def collect(
    job: Job, stage: str, posterior: Posterior, collector: Collector, threshold: float
) -> Collected:
    """Collect from the training split; labels the user trusts are taken as they are."""

    def compute() -> Collected:
        train, data = job.split.train, job.data
        positions, labels = collector(posterior.probs[train], threshold)
        bayes = np.full(len(train), -1, dtype=np.int64)
        bayes[positions] = labels
        trusted = data.trusted[train]
        bayes[trusted] = data.labels[train][trusted]
        kept = bayes >= 0
        return Collected(
            indices=train[kept],
            bayes_labels=bayes[kept],
            threshold=float(threshold),
            coverage=np.bincount(bayes[kept], minlength=data.n_classes).astype(np.int64),
            collector=collector.name,
        )

    collected = job.bench.record(stage, Collected, compute)
    _warn_of_gaps(collected, job.data.classes)
    return collected


def _warn_of_gaps(collected: Collected, classes: np.ndarray) -> None:
    thin = np.flatnonzero(collected.coverage < FEW)
    if len(thin):
        shown = ", ".join(f"{classes[i]} ({collected.coverage[i]})" for i in thin[:10])
        warnings.warn(
            f"{len(thin)} of {len(classes)} classes have fewer than {FEW} collected examples at "
            f"threshold {collected.threshold:g}: {shown}. Their rows of T*(x) rest on the counted "
            "class matrix, or on nothing where there is none. A lower rho_max or "
            "collector='covering' collects more.",
            CoverageWarning,
            stacklevel=3,
        )
