"""Co-teaching: two networks that choose each other's examples."""

from __future__ import annotations

from dataclasses import dataclass

from bltm.core.records import FitResult
from bltm.engine.forgetting import Forgetting
from bltm.engine.job import Job
from bltm.engine.pairs import conclude_pair, exchange_step, fit_pair, plan_pair
from bltm.engine.schedule import PlannedStage, Schedule
from bltm.methods.small_loss import SmallLossClassifier

STAGE = "coteaching"


@dataclass(eq=False, repr=False, kw_only=True)
class CoTeachingClassifier(SmallLossClassifier):
    """Two networks, each trained on the examples that have the smallest losses in the other.

    Parameters
    ----------
    noise_rate, ramp, exponent, forget
        How much of each batch is left out; see :class:`SmallLossClassifier`.

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

    def _planned(self, n: int, schedule: Schedule) -> PlannedStage:
        return plan_pair(STAGE, schedule, n)

    def _fit_kept(
        self, job: Job, schedule: Schedule, forgetting: Forgetting, findings: dict[str, object]
    ) -> FitResult:
        pair = fit_pair(job, STAGE, schedule, exchange_step(forgetting.keep))
        return conclude_pair(job, pair, findings)
