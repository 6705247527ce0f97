"""What the methods that leave out large losses share: parameters, and how much they leave out."""

from __future__ import annotations

from dataclasses import dataclass

from bltm.core.records import FitResult
from bltm.engine.forgetting import RAMPS, Forgetting
from bltm.engine.job import Job
from bltm.engine.noise_rate import find_noise_rate, plan_noise_rate
from bltm.engine.protocol import CT200, CYCLE
from bltm.engine.schedule import PlannedStage, Schedule
from bltm.methods.base import NoisyLabelClassifier

PRESETS = {"default": CYCLE, "paper": CT200}


@dataclass(eq=False, repr=False, kw_only=True)
class SmallLossClassifier(NoisyLabelClassifier):
    """Base of methods that learn from the small losses of each batch.

    Parameters
    ----------
    noise_rate
        Share of wrong labels, and so of the examples that are left out; None estimates it.
    ramp
        Share of the training over which the left out part rises to ``noise_rate``; None takes the
        preset's (a half, or 10 of 200 epochs for "paper").
    exponent
        Of the rise.
    forget
        "paper" for ``noise_rate · min(epoch^exponent / ramp, 1)``, "code" for the table in the code
        of Co-teaching; see :func:`bltm.losses.forget_rate`.
    """

    couples_batch = "which examples are kept depends on the losses of the whole batch"

    noise_rate: float | None = None
    ramp: float | None = None
    exponent: float = 1.0
    forget: str = "paper"

    def _planned(self, n: int, schedule: Schedule) -> PlannedStage:
        """Return the stage that learns from small losses."""
        raise NotImplementedError

    def _fit_kept(
        self, job: Job, schedule: Schedule, forgetting: Forgetting, findings: dict[str, object]
    ) -> FitResult:
        """Train on what is kept of each batch; every such method's own part."""
        raise NotImplementedError

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the stages of the noise rate's estimate, and the one that learns."""
        self._forgetting(noise_rate=0.0)
        return [
            *plan_noise_rate(n, self.noise_rate, self.epochs, self.batch_size),
            self._planned(n, self._schedule(PRESETS)),
        ]

    def _fit(self, job: Job) -> FitResult:
        self.plan(len(job.split.train))  # refuses what cannot be before anything is trained
        rate = find_noise_rate(job, self.noise_rate, self.epochs, self.batch_size)
        forgetting = self._forgetting(rate.value)
        return self._fit_kept(job, self._schedule(PRESETS), forgetting, rate.findings())

    def _forgetting(self, noise_rate: float) -> Forgetting:
        ramp = self._chosen(RAMPS) if self.ramp is None else self.ramp
        return Forgetting(noise_rate, ramp, self.exponent, self.forget)
