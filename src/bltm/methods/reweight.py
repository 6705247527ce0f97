"""Importance reweighting with one transition matrix for all examples."""

from __future__ import annotations

from dataclasses import dataclass, replace

from numpy.typing import ArrayLike

from bltm.core.records import FitResult
from bltm.engine.class_transition import (
    PUBLISHED,
    find_class_transition,
    plan_class_transition,
)
from bltm.engine.conclusion import conclude_corrected
from bltm.engine.job import Job
from bltm.engine.protocol import CYCLE, S100
from bltm.engine.reweighting import fit_reweighted
from bltm.engine.schedule import PlannedStage, Schedule
from bltm.methods.base import NoisyLabelClassifier


@dataclass(frozen=True)
class Recipe:
    """Schedules of the network that T is estimated with and of the classifier.

    ``start_from_estimate`` says whether the classifier goes on from that network.
    """

    estimate: Schedule
    classifier: Schedule
    start_from_estimate: bool


PRESETS = {
    "default": Recipe(CYCLE, CYCLE, start_from_estimate=False),
    "paper": Recipe(
        PUBLISHED,
        S100,
        start_from_estimate=True,
    ),
}


@dataclass(eq=False, repr=False, kw_only=True)
class ReweightClassifier(NoisyLabelClassifier):
    """Minimise ``-β log f(x)[noisy label]`` with the importance weight ``β = f_y / (f · T)_y``.

    Parameters
    ----------
    transition
        Where T is from: "anchor", the posteriors of anchor points, as published; "counted", by
        confident learning on the same posteriors; or the matrix itself, where it is known, with
        ``T[i, j] = P(noisy = j | right = i)`` and classes in sorted order.

    References
    ----------
    Liu, Tao (2016), Classification with Noisy Labels by Importance Reweighting, IEEE TPAMI.
    Xia et al. (2019), Are Anchor Points Really Indispensable in Label-Noise Learning?, NeurIPS,
    for more than two classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ReweightClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    transition: str | ArrayLike = "anchor"

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the estimate of T and the reweighted training."""
        recipe = self._recipe()
        stages = plan_class_transition(
            n, self.transition, recipe.estimate, recipe.start_from_estimate
        )
        return [*stages, PlannedStage("reweight", recipe.classifier, n)]

    def _fit(self, job: Job) -> FitResult:
        recipe = self._recipe()
        estimate = find_class_transition(
            job, self.transition, recipe.estimate, recipe.start_from_estimate
        )
        start = estimate.network if recipe.start_from_estimate else None
        corrected = fit_reweighted(job, "reweight", recipe.classifier, estimate.transition, start)
        settled = job.settled(recipe.classifier, "reweight")
        return conclude_corrected(
            job,
            corrected,
            refit=lambda rest, name: (
                fit_reweighted(rest, name, settled, estimate.transition, start).classifier
            ),
            posterior=estimate.posterior,
            findings=estimate.findings(),
        )

    def _recipe(self) -> Recipe:
        recipe = self._chosen(PRESETS)
        return replace(
            recipe,
            estimate=self._overridden(recipe.estimate),
            classifier=self._overridden(recipe.classifier),
        )
