"""Co-teaching+: Co-teaching among the examples on which the two networks disagree."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from bltm.core.records import FitResult
from bltm.engine.batches import Batch
from bltm.engine.forgetting import Forgetting, check_share
from bltm.engine.job import Job
from bltm.engine.pairs import conclude_pair, exchange_step, fit_pair, pair_logits, plan_pair
from bltm.engine.schedule import PlannedStage, Schedule
from bltm.engine.stage import Modules, Step
from bltm.losses import cross_entropy
from bltm.losses.small_loss import exchange_loss
from bltm.methods.small_loss import SmallLossClassifier

STAGE = "coteaching_plus"
WARM_UPS = {"default": 0.5, "paper": 0.1}


@dataclass(eq=False, repr=False, kw_only=True)
class CoTeachingPlusClassifier(SmallLossClassifier):
    """Two networks that exchange small losses, after a while only where they disagree.

    Parameters
    ----------
    noise_rate, ramp, exponent, forget
        How much of each batch is left out; see :class:`SmallLossClassifier`.
    warm_up
        Share of the training, from its start, that is Co-teaching on whole batches; None takes the
        preset's (a half, or 20 of 200 epochs for "paper").
    double_softmax
        Whether the losses among disagreements are cross-entropies of probabilities taken for
        logits, as in the authors' code. It is wrong, and here to repeat what they did.

    References
    ----------
    Yu et al. (2019), How does Disagreement Help Generalization against Label Corruption?, ICML.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> CoTeachingPlusClassifier(noise_rate=0.1, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    warm_up: float | None = None
    double_softmax: bool = False

    def _planned(self, n: int, schedule: Schedule) -> PlannedStage:
        check_share("warm_up", self._warm_up())
        return plan_pair(STAGE, schedule, n)

    def _fit_kept(
        self, job: Job, schedule: Schedule, forgetting: Forgetting, findings: dict[str, object]
    ) -> FitResult:
        step = exchange_disagreement_step(forgetting, self._warm_up(), self.double_softmax)
        return conclude_pair(job, fit_pair(job, STAGE, schedule, step), findings)

    def _warm_up(self) -> float:
        return self._chosen(WARM_UPS) if self.warm_up is None else self.warm_up


def exchange_disagreement_step(
    forgetting: Forgetting, warm_up: float, double_softmax: bool = False
) -> Step:
    """Return the step that exchanges small losses where the networks disagree.

    Parameters
    ----------
    forgetting
        How much of a batch, or of its disagreements, is kept.
    warm_up
        Share of the training in which whole batches are exchanged.
    double_softmax
        Whether probabilities are taken for logits.
    """
    exchange_all = exchange_step(forgetting.keep)

    def step(modules: Modules, batch: Batch) -> torch.Tensor | None:
        moment = batch.moment
        if moment.epoch < warm_up * moment.epochs:
            return exchange_all(modules, batch)
        first, second = pair_logits(modules, batch)
        differ = first.argmax(dim=1) != second.argmax(dim=1)
        if not differ.any():
            return None
        first, second, labels = first[differ], second[differ], batch.y[differ]
        trusted = batch.extras.get("trusted")
        if double_softmax:
            first, second = first.softmax(dim=1), second.softmax(dim=1)
        return exchange_loss(
            cross_entropy(first, labels),
            cross_entropy(second, labels),
            batch.weight[differ],
            forgetting.keep(moment),
            None if trusted is None else trusted[differ],
        )

    return step
