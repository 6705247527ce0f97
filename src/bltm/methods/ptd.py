"""PTD and PTD-V: a transition matrix for each example, combined from those of its parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bltm.core.errors import InputError
from bltm.core.records import FitResult
from bltm.engine.class_transition import estimated_posterior
from bltm.engine.conclusion import conclude_corrected
from bltm.engine.job import Job
from bltm.engine.parts_transition import find_parts_transition
from bltm.engine.protocol import CYCLE
from bltm.engine.reweighting import (
    PUBLISHED_REVISION,
    REVISION,
    REVISION_RATE,
    fit_revised,
    fit_reweighted,
)
from bltm.engine.schedule import PlannedStage, Schedule
from bltm.engine.supervised import fit_cross_entropy
from bltm.methods.base import NoisyLabelClassifier


@dataclass(frozen=True)
class Recipe:
    """Schedules of warm-up, classifier and revision, and what else they leave open.

    ``start_from_warm_up`` says whether the classifier goes on from the warmed-up network;
    ``revision_rate`` is the factor on the learning rate of ΔT.
    """

    warm_up: Schedule
    classifier: Schedule
    revision: Schedule
    start_from_warm_up: bool
    revision_rate: float


PRESETS = {
    "default": Recipe(
        CYCLE,
        CYCLE,
        REVISION,
        start_from_warm_up=False,
        revision_rate=REVISION_RATE,
    ),
    "paper": Recipe(
        Schedule(5, 0.01, weight_decay=1e-4, select="accuracy"),
        Schedule(50, 0.01, weight_decay=1e-4, select="accuracy"),
        replace(PUBLISHED_REVISION, epochs=50),
        start_from_warm_up=True,
        revision_rate=1.0,
    ),
}


@dataclass(eq=False, repr=False, kw_only=True)
class PTDClassifier(NoisyLabelClassifier):
    """Train by importance reweighting with ``T(x) = Σ_k w_k(x) A_k``, a mixture of part matrices.

    The coefficients w(x) say how the features of x are made of parts; the matrices are fitted to
    the noisy posteriors of anchor points.

    Parameters
    ----------
    revision
        True for PTD-V, which revises T(x) by an offset ΔT that all examples share; False for PTD.
    n_parts
        Number of parts.
    revision_rate
        Factor on the learning rate of ΔT, or None for the preset's.

    References
    ----------
    Xia et al. (2020), Part-dependent Label Noise: Towards Instance-dependent Label Noise, NeurIPS.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(n_class=3, return_X_y=True)
    >>> model = PTDClassifier(n_parts=2, epochs=5, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> model.predict_transition(X[:2]).shape
    (2, 3, 3)
    """

    revision: bool = False
    n_parts: int = 10
    revision_rate: float | None = None

    def plan(self, n: int) -> list[PlannedStage]:
        """Return warm-up, reweighted training and, for PTD-V, the revision."""
        recipe = self._recipe()
        stages = [
            PlannedStage("warm_up", recipe.warm_up, n),
            PlannedStage("reweight", recipe.classifier, n),
        ]
        return [*stages, PlannedStage("revise", recipe.revision, n)] if self.revision else stages

    def _fit(self, job: Job) -> FitResult:
        recipe = self._recipe()
        warm = fit_cross_entropy(job, "warm_up", recipe.warm_up)
        posterior = estimated_posterior(job, warm)
        transition = find_parts_transition(job, "parts", warm, posterior, self.n_parts)
        start = warm if recipe.start_from_warm_up else None
        corrected = fit_reweighted(job, "reweight", recipe.classifier, transition, start)
        if self.revision:
            corrected = fit_revised(
                job,
                "revise",
                recipe.revision,
                transition,
                corrected.classifier,
                recipe.revision_rate,
            )
        settled = job.settled(recipe.classifier, "reweight")
        return conclude_corrected(
            job,
            corrected,
            refit=lambda rest, name: (
                fit_reweighted(rest, name, settled, corrected.transition, start).classifier
            ),
            posterior=posterior,
        )

    def _recipe(self) -> Recipe:
        recipe = self._chosen(PRESETS)
        if self.n_parts < 1:
            raise InputError("n_parts", f"must be at least 1, got {self.n_parts}", "10 is usual.")
        rate = recipe.revision_rate if self.revision_rate is None else self.revision_rate
        if rate < 0:
            raise InputError("revision_rate", f"must not be negative, got {rate}")
        return replace(
            recipe,
            warm_up=self._overridden(recipe.warm_up),
            classifier=self._overridden(recipe.classifier),
            revision=self._overridden(recipe.revision),
            revision_rate=rate,
        )
