"""MentorNet in its self-paced form: a network that keeps its own small losses."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from bltm.core.records import FitResult
from bltm.engine.batches import Batch
from bltm.engine.conclusion import conclude
from bltm.engine.forgetting import RAMPS, Forgetting, trusted_mask
from bltm.engine.job import Job
from bltm.engine.noise_rate import find_noise_rate, plan_noise_rate
from bltm.engine.protocol import CT200, CYCLE
from bltm.engine.schedule import PlannedStage
from bltm.engine.stage import Modules, Step
from bltm.engine.supervised import cross_entropy_step, noisy_label_score
from bltm.losses.small_loss import self_paced_loss
from bltm.methods.base import NoisyLabelClassifier

STAGE = "mentornet"
PRESETS = {"default": CYCLE, "paper": CT200}


@dataclass(eq=False, repr=False, kw_only=True)
class MentorNetClassifier(NoisyLabelClassifier):
    """One network that learns from the examples of each batch that have its smallest losses.

    Parameters
    ----------
    noise_rate
        Share of wrong labels, and so of each batch that is left out; None estimates it.
    ramp
        Share of the training over which the left out part rises to ``noise_rate``; None takes the
        preset's (a half, or 10 of 200 epochs for "paper").
    exponent
        Of the rise.
    forget
        "paper" for ``noise_rate · min(epoch^exponent / ramp, 1)``, "code" for the table in the code
        of Co-teaching; see :func:`bltm.losses.forget_rate`.

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

    couples_batch = "which examples are kept depends on the losses of the whole batch"

    noise_rate: float | None = None
    ramp: float | None = None
    exponent: float = 1.0
    forget: str = "paper"

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the stages of the noise rate's estimate, and the one of the network."""
        self._forgetting(noise_rate=0.0)
        return [
            *plan_noise_rate(n, self.noise_rate, self.epochs, self.batch_size),
            PlannedStage(STAGE, self._schedule(PRESETS), n),
        ]

    def _fit(self, job: Job) -> FitResult:
        schedule = self.plan(len(job.split.train))[-1].schedule
        rate = find_noise_rate(job, self.noise_rate, self.epochs, self.batch_size)
        forgetting = self._forgetting(rate.value)
        classifier = job.new_classifier(STAGE)
        job.train(
            STAGE,
            {"classifier": classifier},
            self_paced_step(forgetting),
            schedule,
            score=noisy_label_score,
            extras=trusted_mask(job),
        )
        return conclude(job, classifier, findings=rate.findings())

    def _forgetting(self, noise_rate: float) -> Forgetting:
        ramp = self._chosen(RAMPS) if self.ramp is None else self.ramp
        return Forgetting(noise_rate, ramp, self.exponent, self.forget)


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
