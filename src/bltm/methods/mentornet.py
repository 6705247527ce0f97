"""MentorNet in its self-paced form: a network that keeps its own small losses."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from bltm.core.records import FitResult
from bltm.engine.batches import Batch
from bltm.engine.conclusion import conclude
from bltm.engine.forgetting import Forgetting, trusted_mask
from bltm.engine.job import Job
from bltm.engine.schedule import PlannedStage, Schedule
from bltm.engine.stage import Modules, Step
from bltm.engine.supervised import cross_entropy_step, fit_network
from bltm.losses.small_loss import self_paced_loss
from bltm.methods.small_loss import SmallLossClassifier

STAGE = "mentornet"


@dataclass(eq=False, repr=False, kw_only=True)
class MentorNetClassifier(SmallLossClassifier):
    """One network that learns from the examples of each batch that have its smallest losses.

    Parameters
    ----------
    noise_rate, ramp, exponent, forget
        How much of each batch is left out; see :class:`SmallLossClassifier`.

    References
    ----------
    Jiang et al. (2018), MentorNet: Learning Data-Driven Curriculum for Very Deep Neural Networks on
    Corrupted Labels, ICML.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> MentorNetClassifier(noise_rate=0.1, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def _planned(self, n: int, schedule: Schedule) -> PlannedStage:
        return PlannedStage(STAGE, schedule, n)

    def _fit_kept(
        self, job: Job, schedule: Schedule, forgetting: Forgetting, findings: dict[str, object]
    ) -> FitResult:
        def fit(job: Job, name: str, schedule: Schedule) -> nn.Module:
            step = self_paced_step(forgetting)
            return fit_network(job, name, schedule, step, extras=trusted_mask(job))

        classifier = fit(job, STAGE, schedule)
        settled = job.settled(schedule, STAGE)
        return conclude(
            job,
            classifier,
            refit=lambda rest, name: fit(rest, name, settled),
            findings=findings,
        )


def self_paced_step(forgetting: Forgetting) -> Step:
    """Return the step that learns from the smallest losses of a batch."""

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        return self_paced_loss(
            cross_entropy_step(modules, batch),
            batch.weight,
            forgetting.keep(batch.moment),
            batch.extras.get("trusted"),
        )

    return step
