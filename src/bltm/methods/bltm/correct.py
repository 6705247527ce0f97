"""Step 4 of Algorithm 1 (section 4.4): train the classifier with forward correction.

Minimises Eq. 5, the mean of ``-log (f(x) · T*(x))[noisy label]`` over all noisy examples, with the
transition network fixed. Of T*(x) this needs the column of the given label only: C numbers for
each example, computed once.
"""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn import functional

from bltm.engine.batches import Batch
from bltm.engine.job import Job
from bltm.engine.loop import Modules
from bltm.engine.selection import Score
from bltm.engine.transition_model import Corrected, TransitionModel, column_of_given_label
from bltm.losses import forward_nll
from bltm.methods.bltm.presets import Recipe


def correct(
    job: Job, recipe: Recipe, stage: str, transition: TransitionModel, warm: nn.Module | None
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
    """
    classifier = start_classifier(job, stage, warm)
    columns = column_of_given_label(job, transition)
    job.bench.fit(
        stage,
        {"classifier": classifier},
        forward_step,
        job.training({"columns": columns}),
        recipe.classifier,
        score=corrected_score(transition),
        validation=job.validation(),
    )
    return Corrected(classifier, transition, columns)


def start_classifier(job: Job, stage: str, warm: nn.Module | None) -> nn.Module:
    """Return a copy of the warmed-up network, or a new one."""
    return job.new_classifier(stage) if warm is None else copy.deepcopy(warm)


def forward_step(modules: Modules, batch: Batch) -> torch.Tensor:
    """Return Eq. 5 for each example."""
    return forward_nll(modules["classifier"](batch.x), batch.extras["columns"])


def corrected_score(transition: TransitionModel) -> Score:
    """Return the score of a classifier of Bayes labels on *noisy* labels: log (f(x) · T*(x))."""

    def score(modules: Modules, batch: Batch) -> torch.Tensor:
        log_probs = functional.log_softmax(modules["classifier"](batch.x), dim=1)
        return transition.log_noisy(batch.x, log_probs)

    return score
