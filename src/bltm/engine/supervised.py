"""Training by cross-entropy on the labels as they are: a method of its own, a step of others."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from bltm.engine.batches import Batch
from bltm.engine.job import Job
from bltm.engine.schedule import Schedule
from bltm.engine.stage import Modules
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
    classifier = job.new_classifier(stage)
    job.train(
        stage, {"classifier": classifier}, cross_entropy_step, schedule, score=noisy_label_score
    )
    return classifier
