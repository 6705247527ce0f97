"""Two networks that learn from each other in one stage.

The networks start from weights of their own and see the same batches. One optimiser serves both,
since no loss of the one has a gradient in the other. They are exchangeable: the first network is
the one that is selected on noisy validation data and that predicts, and its expected accuracy is
the mean of both, which the papers report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from bltm.core.errors import InputError
from bltm.core.records import FitResult
from bltm.engine.batches import Batch, Moment
from bltm.engine.conclusion import conclude, disagreement
from bltm.engine.forgetting import trusted_mask
from bltm.engine.job import Job
from bltm.engine.posteriors import Fit, network_probs
from bltm.engine.schedule import PlannedStage, Schedule
from bltm.engine.stage import Modules, Step
from bltm.engine.supervised import noisy_label_score
from bltm.engine.workbench import Outcome
from bltm.losses import cross_entropy
from bltm.losses.small_loss import exchange_loss

PASSES = 2.0


@dataclass(frozen=True)
class Pair:
    """Two trained networks, how their training went, and how to train the first of such a pair."""

    classifier: nn.Module
    peer: nn.Module
    outcome: Outcome
    refit: Fit


def fit_pair(job: Job, stage: str, schedule: Schedule, step: Step) -> Pair:
    """Train two new networks, "classifier" and "peer" of the step, on the training split.

    Batches carry the mask "trusted" as an extra where there are labels known to be right.
    """
    modules = {
        "classifier": job.new_classifier(stage),
        "peer": job.new_classifier(f"{stage}/peer"),
    }
    _check_start(job, modules)
    outcome = job.train(
        stage,
        modules,
        step,
        schedule,
        score=noisy_label_score,
        extras=trusted_mask(job),
        passes=PASSES,
    )
    settled = job.settled(schedule, stage)

    def refit(rest: Job, name: str) -> nn.Module:
        return fit_pair(rest, name, settled, step).classifier

    return Pair(modules["classifier"], modules["peer"], outcome, refit)


def plan_pair(stage: str, schedule: Schedule, n: int) -> PlannedStage:
    """Return the stage that :func:`fit_pair` takes."""
    return PlannedStage(stage, schedule, n, PASSES)


def pair_logits(modules: Modules, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what both networks make of a batch."""
    return modules["classifier"](batch.x), modules["peer"](batch.x)


def exchange_step(keep: Callable[[Moment], float]) -> Step:
    """Return the step of Co-teaching: each network learns from the small losses of the other.

    Parameters
    ----------
    keep
        Gives the share of a batch that is kept at a moment of training.
    """

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        first, second = pair_logits(modules, batch)
        return exchange_loss(
            cross_entropy(first, batch.y),
            cross_entropy(second, batch.y),
            batch.weight,
            keep(batch.moment),
            batch.extras.get("trusted"),
        )

    return step


def conclude_pair(job: Job, pair: Pair, findings: dict[str, Any] | None = None) -> FitResult:
    """Return the result of two networks: the first predicts, and both judge the given labels."""
    suspicion = None
    if job.audit_folds == 0:
        probs = [network_probs(job, network) for network in (pair.classifier, pair.peer)]
        suspicion = disagreement(
            np.mean(probs, axis=0, dtype=np.float32),
            job.data.labels,
            "1 - f(x)[given label], mean of two networks, in sample",
        )
    return conclude(job, pair.classifier, refit=pair.refit, suspicion=suspicion, findings=findings)


def _check_start(job: Job, modules: Modules) -> None:
    first, second = (list(module.parameters()) for module in modules.values())
    if all(torch.equal(one, other) for one, other in zip(first, second, strict=True)):
        raise InputError(
            "net" if job.weights is None else "weights",
            "gives two networks the same start, and networks that are equal teach each other "
            "nothing",
            "Start at least the head (fc) from random weights.",
        )
