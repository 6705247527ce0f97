"""Active passive loss: normalised cross-entropy plus reverse cross-entropy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from bltm.core.errors import InputError
from bltm.core.records import FitResult
from bltm.engine.batches import Batch
from bltm.engine.conclusion import conclude
from bltm.engine.job import Job
from bltm.engine.protocol import CYCLE, S100
from bltm.engine.schedule import PlannedStage
from bltm.engine.stage import Modules
from bltm.engine.supervised import fit_network
from bltm.losses import normalised_cross_entropy, reverse_cross_entropy
from bltm.methods.base import NoisyLabelClassifier

STAGE = "apl"
PRESETS = {
    "default": CYCLE,
    "paper": replace(S100, epochs=120, decay="cosine", milestones=(), clip=5.0),
}


@dataclass(eq=False, repr=False, kw_only=True)
class APLClassifier(NoisyLabelClassifier):
    """A network trained by ``alpha`` · normalised + ``beta`` · reverse cross-entropy (NCE + RCE).

    Parameters
    ----------
    alpha
        Weight of the active loss, which makes given labels likely.
    beta
        Weight of the passive loss, which makes other labels unlikely.
    net, preset, epochs, batch_size, lr, augment, weights, validation_fraction, classes, image_size
        As for every method; see :class:`NoisyLabelClassifier`, also for the rest.

    References
    ----------
    Ma et al. (2020), Normalized Loss Functions for Deep Learning with Noisy Labels, ICML.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> APLClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    alpha: float = 1.0
    beta: float = 1.0

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the one stage."""
        self._check()
        return [PlannedStage(STAGE, self._schedule(PRESETS), n)]

    def _fit(self, job: Job) -> FitResult:
        self._check()

        def step(modules: Modules, batch: Batch) -> torch.Tensor:
            logits = modules["classifier"](batch.x)
            active = normalised_cross_entropy(logits, batch.y)
            passive = reverse_cross_entropy(logits, batch.y)
            return self.alpha * active + self.beta * passive

        schedule = self._schedule(PRESETS)
        classifier = fit_network(job, STAGE, schedule, step)
        settled = job.settled(schedule, STAGE)
        return conclude(
            job, classifier, refit=lambda rest, name: fit_network(rest, name, settled, step)
        )

    def _check(self) -> None:
        for name in ("alpha", "beta"):
            if not getattr(self, name) >= 0.0:
                raise InputError(name, f"must not be negative, got {getattr(self, name)}")
        if self.alpha == self.beta == 0.0:
            raise InputError("alpha", "and beta are both 0: there is nothing to learn from")
