"""Training by cross-entropy on the labels as they are: a method of its own, a step of others."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from bltm.engine.batches import Batch
from bltm.engine.job import Job
from bltm.engine.schedule import Schedule
from bltm.engine.stage import Modules, Step
from bltm.losses import cross_entropy


def cross_entropy_step(modules: Modules, batch: Batch) -> torch.Tensor:
    """Return the cross-entropy of each example's noisy label."""
    return cross_entropy(modules["classifier"](batch.x), batch.y)


def noisy_label_score(modules: Modules, batch: Batch) -> torch.Tensor:
    """Return log-probabilities of noisy labels, for a network trained on noisy labels."""
    logits: torch.Tensor = modules["classifier"](batch.x)
    return functional.log_softmax(logits, dim=1)


def fit_cross_entropy(job: Job, stage: str, schedule: Schedule) -> nn.Module:
    """Train a new network on the noisy labels of the training split."""
    return fit_network(job, stage, schedule, cross_entropy_step)


def fit_network(job: Job, stage: str, schedule: Schedule, step: Step, **options: Any) -> nn.Module:
    """Train a new network with a loss of its own; it is selected as one of noisy labels.

    Parameters
    ----------
    job, stage, schedule
        The fit, the stage's name, and how long.
    step
        Gives the loss.
    **options
        Further arguments of ``job.train``.
    """
    classifier = job.new_classifier(stage)
    modules = {"classifier": classifier}
    job.train(stage, modules, step, schedule, score=noisy_label_score, **options)
    return classifier
