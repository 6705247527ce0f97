"""Forward correction with one transition matrix for all examples."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from bltm.core.records import FitResult
from bltm.engine.class_transition import find_class_transition, plan_class_transition
from bltm.engine.conclusion import conclude_corrected
from bltm.engine.correction import fit_corrected
from bltm.engine.job import Job
from bltm.engine.protocol import CYCLE, S100
from bltm.engine.schedule import PlannedStage
from bltm.methods.base import NoisyLabelClassifier

PRESETS = {"default": CYCLE, "paper": S100}


@dataclass(eq=False, repr=False, kw_only=True)
class ForwardClassifier(NoisyLabelClassifier):
    """Minimise ``-log (f(x) · T)[noisy label]`` with one matrix T for all examples.

    Parameters
    ----------
    transition
        Where T is from: "anchor", the posteriors of anchor points, as published; "counted", by
        confident learning on the same posteriors; or the matrix itself, where it is known, with
        ``T[i, j] = P(noisy = j | right = i)`` and classes in sorted order.

    References
    ----------
    Patrini et al. (2017), Making Deep Neural Networks Robust to Label Noise: a Loss Correction
    Approach, CVPR.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ForwardClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> model.predict_transition(X[:2]).shape
    (2, 3, 3)
    """

    transition: str | ArrayLike = "anchor"

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the estimate of T and the corrected training."""
        schedule = self._schedule(PRESETS)
        stages = plan_class_transition(n, self.transition, schedule)
        return [*stages, PlannedStage("correct", schedule, n)]

    def _fit(self, job: Job) -> FitResult:
        schedule = self._schedule(PRESETS)
        estimate = find_class_transition(job, self.transition, schedule)
        corrected = fit_corrected(job, "correct", schedule, estimate.transition, None)
        settled = job.settled(schedule, "correct")
        return conclude_corrected(
            job,
            corrected,
            refit=lambda rest, name: (
                fit_corrected(rest, name, settled, estimate.transition, None).classifier
            ),
            posterior=estimate.posterior,
            findings=estimate.findings(),
        )
