"""Cross-entropy on the labels as they are: the baseline that every method is compared with."""

from __future__ import annotations

from dataclasses import dataclass

from bltm.core.records import FitResult, Posterior
from bltm.engine.conclusion import conclude
from bltm.engine.job import Job
from bltm.engine.posteriors import in_sample_posterior
from bltm.engine.protocol import CYCLE, S100
from bltm.engine.schedule import PlannedStage
from bltm.engine.supervised import fit_cross_entropy
from bltm.methods.base import NoisyLabelClassifier

STAGE = "cross_entropy"
PRESETS = {"default": CYCLE, "paper": S100}


@dataclass(eq=False, repr=False, kw_only=True)
class CrossEntropyClassifier(NoisyLabelClassifier):
    """A network trained by cross-entropy on the noisy labels, selected on noisy validation data.

    It has the parameters that all methods share and no others.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> CrossEntropyClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the one stage."""
        return [PlannedStage(STAGE, self._schedule(PRESETS), n)]

    def _fit(self, job: Job) -> FitResult:
        schedule = self._schedule(PRESETS)
        classifier = fit_cross_entropy(job, STAGE, schedule)
        settled = job.settled(schedule, STAGE)
        posterior = job.bench.record(
            "posterior", Posterior, lambda: in_sample_posterior(job, classifier)
        )
        return conclude(
            job,
            classifier,
            refit=lambda rest, name: fit_cross_entropy(rest, name, settled),
            posterior=posterior,
        )
