"""T-Revision: reweighting, then classifier and transition matrix revised together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from numpy.typing import ArrayLike

from bltm.core.errors import InputError
from bltm.core.records import FitResult
from bltm.engine.class_transition import (
    PUBLISHED,
    find_class_transition,
    plan_class_transition,
)
from bltm.engine.conclusion import conclude_corrected
from bltm.engine.job import Job
from bltm.engine.protocol import CYCLE, S100
from bltm.engine.reweighting import (
    PUBLISHED_REVISION,
    REVISION,
    REVISION_RATE,
    fit_revised,
    fit_reweighted,
)
from bltm.engine.schedule import PlannedStage, Schedule
from bltm.methods.base import NoisyLabelClassifier


@dataclass(frozen=True)
class Recipe:
    """Schedules of the three stages, and what else they leave open.

    ``start_from_estimate`` says whether the classifier goes on from the network that T was
    estimated with; ``revision_rate`` is the factor on the learning rate of ΔT.
    """

    estimate: Schedule
    classifier: Schedule
    revision: Schedule
    start_from_estimate: bool
    revision_rate: float


PRESETS = {
    "default": Recipe(
        CYCLE,
        CYCLE,
        REVISION,
        start_from_estimate=False,
        revision_rate=REVISION_RATE,
    ),
    "paper": Recipe(
        PUBLISHED,
        replace(S100, epochs=200),
        PUBLISHED_REVISION,
        start_from_estimate=True,
        revision_rate=1.0,
    ),
}


@dataclass(eq=False, repr=False, kw_only=True)
class TRevisionClassifier(NoisyLabelClassifier):
    """Estimate T, train by importance reweighting, then revise T by an offset ΔT.

    The third stage trains classifier and ΔT together on the reweighted loss with
    ``rownorm(max(T + ΔT, 0))`` in place of T.

    Parameters
    ----------
    transition
        Where T is from before its revision: "anchor", the posteriors of anchor points, as
        published; "counted", by confident learning on the same posteriors; or the matrix itself,
        with ``T[i, j] = P(noisy = j | right = i)`` and classes in sorted order.
    revision_rate
        Factor on the learning rate of ΔT in the third stage, or None for the preset's.

    References
    ----------
    Xia et al. (2019), Are Anchor Points Really Indispensable in Label-Noise Learning?, NeurIPS.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TRevisionClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    transition: str | ArrayLike = "anchor"
    revision_rate: float | None = None

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the three stages."""
        recipe = self._recipe()
        stages = plan_class_transition(
            n, self.transition, recipe.estimate, recipe.start_from_estimate
        )
        return [
            *stages,
            PlannedStage("reweight", recipe.classifier, n),
            PlannedStage("revise", recipe.revision, n),
        ]

    def _fit(self, job: Job) -> FitResult:
        recipe = self._recipe()
        estimate = find_class_transition(
            job, self.transition, recipe.estimate, recipe.start_from_estimate
        )
        T = estimate.transition
        start = estimate.network if recipe.start_from_estimate else None
        classifier = fit_reweighted(job, "reweight", recipe.classifier, T, start).classifier
        revised = fit_revised(job, "revise", recipe.revision, T, classifier, recipe.revision_rate)
        settled = job.settled(recipe.classifier, "reweight")
        return conclude_corrected(
            job,
            revised,
            refit=lambda rest, name: (
                fit_reweighted(rest, name, settled, revised.transition, start).classifier
            ),
            posterior=estimate.posterior,
            findings=estimate.findings(),
        )

    def _recipe(self) -> Recipe:
        recipe = self._chosen(PRESETS)
        rate = recipe.revision_rate if self.revision_rate is None else self.revision_rate
        if rate < 0:
            raise InputError("revision_rate", f"must not be negative, got {rate}")
        return replace(
            recipe,
            estimate=self._overridden(recipe.estimate),
            classifier=self._overridden(recipe.classifier),
            revision=self._overridden(recipe.revision),
            revision_rate=rate,
        )
