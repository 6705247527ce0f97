"""Decoupling *when* to update from *how* to update: learn where two networks disagree."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from bltm.core.records import FitResult
from bltm.engine.batches import Batch
from bltm.engine.forgetting import check_share
from bltm.engine.job import Job
from bltm.engine.pairs import conclude_pair, fit_pair, pair_logits, plan_pair
from bltm.engine.protocol import CT200, CYCLE
from bltm.engine.schedule import PlannedStage
from bltm.engine.stage import Modules, Step
from bltm.losses import cross_entropy
from bltm.losses.small_loss import weighted_mean
from bltm.methods.base import NoisyLabelClassifier

STAGE = "decoupling"
PRESETS = {"default": CYCLE, "paper": CT200}


@dataclass(eq=False, repr=False, kw_only=True)
class DecouplingClassifier(NoisyLabelClassifier):
    """Two networks, each trained by cross-entropy on the examples that they predict differently.

    Parameters
    ----------
    warm_up
        Share of the training, from its start, in which both learn from all examples.

    References
    ----------
    Malach and Shalev-Shwartz (2017), Decoupling "when to update" from "how to update", NeurIPS.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> DecouplingClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    couples_batch = "the loss is a mean over the examples of the whole batch that differ"

    warm_up: float = 0.0

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the one stage."""
        check_share("warm_up", self.warm_up)
        return [plan_pair(STAGE, self._schedule(PRESETS), n)]

    def _fit(self, job: Job) -> FitResult:
        (planned,) = self.plan(len(job.split.train))
        pair = fit_pair(job, STAGE, planned.schedule, disagreement_step(self.warm_up))
        return conclude_pair(job, pair)


def disagreement_step(warm_up: float) -> Step:
    """Return the step that learns from examples on which the networks disagree.

    Parameters
    ----------
    warm_up
        Share of the training in which all examples count as such.
    """

    def step(modules: Modules, batch: Batch) -> torch.Tensor | None:
        first, second = pair_logits(modules, batch)
        moment = batch.moment
        learned = first.argmax(dim=1) != second.argmax(dim=1)
        if moment.epoch < warm_up * moment.epochs:
            learned = torch.ones_like(learned)
        if not learned.any():
            return None
        losses = cross_entropy(first, batch.y) + cross_entropy(second, batch.y)
        return weighted_mean(losses[learned], batch.weight[learned])

    return step
