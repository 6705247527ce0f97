"""The share of wrong labels, for methods that have to know it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bltm.core.errors import InputError
from bltm.core.records import Posterior
from bltm.engine.job import Job
from bltm.engine.posteriors import cross_fitted_posterior
from bltm.engine.protocol import CYCLE
from bltm.engine.schedule import PlannedStage, Schedule
from bltm.transition.counting import confident_joint

STAGE = "noise_rate"
FOLDS = 2
HIGHEST = 0.9
"""No estimate is above this: a method that drops more would have nothing left to learn from."""

PROBE = replace(CYCLE, epochs=6, lengths=(), select="last")
"""Short, for networks that have memorised nothing say more of wrong labels."""


@dataclass(frozen=True)
class NoiseRate:
    """The share of wrong labels, and whether it was "given" or "estimated"."""

    value: float
    source: str

    def findings(self) -> dict[str, Any]:
        """Return what the result says of it."""
        return {"assumed_noise_rate": self.value, "assumed_noise_rate_source": self.source}


def check_noise_rate(given: float | None) -> None:
    """Refuse a noise rate that cannot be."""
    if given is not None and not 0.0 <= given < 1.0:
        raise InputError(
            "noise_rate", f"must be at least 0 and below 1, got {given}", "None estimates it."
        )


def find_noise_rate(
    job: Job, given: float | None, epochs: int | None = None, batch_size: int | None = None
) -> NoiseRate:
    """Return the noise rate the user gave, or an estimate from out-of-sample posteriors.

    The estimate is the mass off the diagonal of the joint distribution of given and right labels
    that confident learning counts, on posteriors in which no example is judged by a network that
    saw its label.

    Parameters
    ----------
    job
        The fit.
    given
        The user's value, or None.
    epochs, batch_size
        The user's, for the networks behind the estimate.
    """
    check_noise_rate(given)
    if given is not None:
        return NoiseRate(given, "given")
    schedule = _probe(epochs, batch_size)
    # So short a training has no time for changed images: they would pass for wrong labels.
    plain = replace(job, augment=None)
    posterior = job.bench.record(
        STAGE, Posterior, lambda: cross_fitted_posterior(plain, STAGE, schedule, FOLDS)
    )
    index = job.split.train[~job.data.trusted[job.split.train]]
    if len(index) == 0:
        return NoiseRate(0.0, "estimated")
    joint = confident_joint(posterior.probs[index], job.data.labels[index], job.data.weights[index])
    return NoiseRate(float(np.clip(1.0 - np.trace(joint), 0.0, HIGHEST)), "estimated")


def plan_noise_rate(
    n: int, given: float | None, epochs: int | None = None, batch_size: int | None = None
) -> list[PlannedStage]:
    """Return the stages that an estimate takes."""
    check_noise_rate(given)
    if given is not None:
        return []
    return [PlannedStage(STAGE, _probe(epochs, batch_size), n - n // FOLDS)] * FOLDS


def _probe(epochs: int | None, batch_size: int | None) -> Schedule:
    return PROBE.overridden(None if epochs is None else min(epochs, PROBE.epochs), batch_size)
