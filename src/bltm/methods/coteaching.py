"""Co-teaching: two networks that choose each other's examples."""

from __future__ import annotations

from dataclasses import dataclass

from bltm.core.records import FitResult
from bltm.engine.forgetting import RAMPS, Forgetting
from bltm.engine.job import Job
from bltm.engine.noise_rate import find_noise_rate, plan_noise_rate
from bltm.engine.pairs import conclude_pair, exchange_step, fit_pair, plan_pair
from bltm.engine.protocol import CT200, CYCLE
from bltm.engine.schedule import PlannedStage
from bltm.methods.base import NoisyLabelClassifier

STAGE = "coteaching"
PRESETS = {"default": CYCLE, "paper": CT200}


@dataclass(eq=False, repr=False, kw_only=True)
class CoTeachingClassifier(NoisyLabelClassifier):
    """Two networks, each trained on the examples that have the smallest losses in the other.

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
        "paper" for ``noise_rate · min(epoch^exponent / ramp, 1)``, "code" for the table in the
        authors' code; see :func:`bltm.losses.forget_rate`.

    References
    ----------
    Han et al. (2018), Co-teaching: Robust Training of Deep Neural Networks with Extremely Noisy
    Labels, NeurIPS.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> CoTeachingClassifier(noise_rate=0.1, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    couples_batch = "which examples are kept depends on the losses of the whole batch"

    noise_rate: float | None = None
    ramp: float | None = None
    exponent: float = 1.0
    forget: str = "paper"

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the stages of the noise rate's estimate, and the one of both networks."""
        self._forgetting(noise_rate=0.0)
        return [
            *plan_noise_rate(n, self.noise_rate, self.epochs, self.batch_size),
            plan_pair(STAGE, self._schedule(PRESETS), n),
        ]

    def _fit(self, job: Job) -> FitResult:
        schedule = self.plan(len(job.split.train))[-1].schedule
        rate = find_noise_rate(job, self.noise_rate, self.epochs, self.batch_size)
        forgetting = self._forgetting(rate.value)
        pair = fit_pair(job, STAGE, schedule, exchange_step(forgetting.keep))
        return conclude_pair(job, pair, rate.findings())

    def _forgetting(self, noise_rate: float) -> Forgetting:
        ramp = self._chosen(RAMPS) if self.ramp is None else self.ramp
        return Forgetting(noise_rate, ramp, self.exponent, self.forget)
