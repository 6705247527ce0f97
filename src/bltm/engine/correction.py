"""Train a classifier of right labels through a known transition, by forward correction (Eq. 5)."""

from __future__ import annotations

import copy
from math import log
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from bltm.core.matrix import towards_identity
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
    share: float = 1.0,
    columns: torch.Tensor | None = None,
    **options: Any,
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
    share
        Labels are taken to have come through ``(1 - share) I + share T(x)``.
    columns
        The columns of the given labels, shape (N, C), where they are not those of the transition
        but of others that have not seen the labels.
    **options
        Further fields of :class:`Stage`.
    """
    classifier = start_classifier(job, stage, start)
    if columns is None:
        columns = column_of_given_label(job, transition)
    job.train(
        stage,
        {"classifier": classifier},
        step or forward_step,
        schedule,
        score=corrected_score(transition, share),
        extras={
            "columns": towards_identity(columns, torch.from_numpy(job.data.labels), share),
        },
        **options,
    )
    return Corrected(classifier, transition, columns)


def start_classifier(job: Job, stage: str, start: nn.Module | None) -> nn.Module:
    """Return a copy of the network to start from, or a new one."""
    return job.new_classifier(stage) if start is None else copy.deepcopy(start)


def forward_step(modules: Modules, batch: Batch) -> torch.Tensor:
    """Return Eq. 5 for each example."""
    return forward_nll(modules["classifier"](batch.x), batch.extras["columns"])


def corrected_score(transition: Transition, share: float = 1.0) -> Score:
    """Return the score of a classifier of right labels on *noisy* labels: log (f(x) · T(x)).

    With a share below one, T(x) is drawn towards the identity by the rest.
    """

    def score(modules: Modules, batch: Batch) -> torch.Tensor:
        log_probs = functional.log_softmax(modules["classifier"](batch.x), dim=1)
        return mixed_score(log_probs, transition.log_noisy(batch.x, log_probs), share)

    return score


def mixed_score(log_probs: torch.Tensor, log_noisy: torch.Tensor, share: float) -> torch.Tensor:
    """Return ``log ((1 - share) f + share f · T)``, shape (B, C).

    Examples
    --------
    >>> f, noisy = torch.tensor([[0.9, 0.1]]), torch.tensor([[0.5, 0.5]])
    >>> mixed_score(f.log(), noisy.log(), 0.5).exp()
    tensor([[0.7000, 0.3000]])
    """
    if share == 1.0:
        return log_noisy
    return torch.logaddexp(log_probs + log(1.0 - share), log_noisy + log(share))
