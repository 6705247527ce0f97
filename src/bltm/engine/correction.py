"""Train a classifier of right labels through a known transition, by forward correction (Eq. 5)."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn import functional

from bltm.engine.batches import Batch
from bltm.engine.job import Job
from bltm.engine.schedule import Schedule
from bltm.engine.selection import Score
from bltm.engine.stage import Modules, Step
from bltm.engine.transition_model import Corrected, Transition, column_of_given_label
from bltm.losses import forward_nll


def fit_corrected(
    job: Job,
    stage: str,
    schedule: Schedule,
    transition: Transition,
    start: nn.Module | None,
    step: Step | None = None,
) -> Corrected:
    """Train a classifier of right labels with the transition fixed.

    Parameters
    ----------
    job, stage, schedule
        The fit, the stage's name, and how long.
    transition
        T or T(x), fixed.
    start
        The network to start from, or None for a random start.
    step
        Gives the loss from the extras "columns", the columns of the given labels; Eq. 5 by default.
    """
    classifier = start_classifier(job, stage, start)
    columns = column_of_given_label(job, transition)
    job.train(
        stage,
        {"classifier": classifier},
        step or forward_step,
        schedule,
        score=corrected_score(transition),
        extras={"columns": columns},
    )
    return Corrected(classifier, transition, columns)


def start_classifier(job: Job, stage: str, start: nn.Module | None) -> nn.Module:
    """Return a copy of the network to start from, or a new one."""
    return job.new_classifier(stage) if start is None else copy.deepcopy(start)


def forward_step(modules: Modules, batch: Batch) -> torch.Tensor:
    """Return Eq. 5 for each example."""
    return forward_nll(modules["classifier"](batch.x), batch.extras["columns"])


def corrected_score(transition: Transition) -> Score:
    """Return the score of a classifier of right labels on *noisy* labels: log (f(x) · T(x))."""

    def score(modules: Modules, batch: Batch) -> torch.Tensor:
        log_probs = functional.log_softmax(modules["classifier"](batch.x), dim=1)
        return transition.log_noisy(batch.x, log_probs)

    return score
