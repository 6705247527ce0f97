"""Step 4 of Algorithm 1 (section 4.4): train the classifier with forward correction.

Minimises Eq. 5, the mean of ``-log (f(x) · T*(x))[noisy label]`` over all noisy examples, with the
transition network fixed; from the second round on perhaps with half of T*(x) (``moderate``). Of
T*(x) this needs the column of the given label only: C numbers for each example, computed once.

Eq. 5 is about as small where a class is never predicted and its labels are taken for those of
others that went wrong. So each class is held to a least share of the predictions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from bltm.core.records import Posterior
from bltm.engine.batches import Batch, Moment
from bltm.engine.correction import fit_corrected
from bltm.engine.devices import all_sum
from bltm.engine.job import Job
from bltm.engine.stage import Modules, Step
from bltm.engine.transition_model import Corrected, Transition
from bltm.losses import forward_nll, lost_classes
from bltm.methods.bltm.presets import Recipe

# What the bound on lost classes counts in the loss, beside Eq. 5.
WEIGHT = 0.8
# So many examples for each class, on average, tell what is predicted. A batch that has fewer lacks
# classes by chance, and is taken together with those before it.
ENOUGH = 12
PREDICTED = "predicted"


def correct(
    job: Job,
    recipe: Recipe,
    stage: str,
    transition: Transition,
    warm: nn.Module | None,
    columns: torch.Tensor | None = None,
) -> Corrected:
    """Train a classifier of Bayes labels.

    Parameters
    ----------
    job, recipe, stage
        The fit, its recipe, and the stage's name.
    transition
        T*(x), fixed.
    warm
        The network to start from, or None for a random start.
    columns
        Columns of T*(x) that have not seen the labels, where ``redirect`` has made such.
    """
    bounded: dict[str, Any] = {}
    if recipe.least_shares:
        memory = {PREDICTED: torch.zeros(job.data.n_classes)}
        bounded = {"step": bounded_step(job, recipe), "memory": memory}
    return fit_corrected(
        job,
        stage,
        recipe.classifier,
        transition,
        warm,
        share=recipe.correction,
        columns=columns,
        **bounded,
    )


def least_shares(job: Job, recipe: Recipe, posterior: Posterior) -> tuple[float, ...]:
    """Return the share of the predictions that each class is held to.

    It is a part of the class's share of the given labels, or of the labels that are likeliest by
    the noisy posterior, whichever is less. A rare class gets many labels that belong to others, but
    is seldom likeliest.
    """
    if recipe.least_share == 0.0:
        return ()
    train = job.split.train
    weights, n_classes = job.data.weights[train], job.data.n_classes
    shares = [
        np.bincount(labels, weights, n_classes) / weights.sum()
        for labels in (job.data.labels[train], posterior.probs[train].argmax(axis=1))
    ]
    return tuple((recipe.least_share * np.minimum(*shares)).tolist())


def bounded_step(job: Job, recipe: Recipe) -> Step:
    """Return the step of Eq. 5 and of the bound that no class is lost."""
    fabric, least = job.bench.fabric, torch.tensor(recipe.least_shares, device=job.bench.device)
    batch_size = recipe.classifier.fitted_to(len(job.split.train)).batch_size
    pace = min(1.0, batch_size / (ENOUGH * job.data.n_classes))

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        logits = modules["classifier"](batch.x)
        probs = logits.softmax(dim=1)
        total = torch.cat([batch.weight @ probs.detach(), batch.weight.sum()[None]])
        total = all_sum(fabric, total)
        mean = recent(batch.moment, total[:-1] / total[-1], pace)
        lost = lost_classes(probs, mean, least)
        return forward_nll(logits, batch.extras["columns"]) + WEIGHT * lost

    return step


def recent(moment: Moment, mean: torch.Tensor, pace: float) -> torch.Tensor:
    """Return the mean prediction of the last batches from that of a batch, shape (C,).

    It moves towards that of each batch by a share of ``pace``, and starts with the first.
    """
    if moment.epoch > 0 or moment.position > 0:
        mean = moment.memory[PREDICTED].to(mean.device).lerp(mean, pace)
    moment.memory[PREDICTED] = mean
    return mean
