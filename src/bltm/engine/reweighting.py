"""Train a classifier of right labels by importance reweighting, with T fixed or revised."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn
from torch.nn import functional

from bltm.engine.batches import Batch
from bltm.engine.correction import fit_corrected, start_classifier
from bltm.engine.job import Job
from bltm.engine.parts_transition import PartsTransition
from bltm.engine.protocol import CYCLE
from bltm.engine.schedule import Schedule
from bltm.engine.stage import Modules
from bltm.engine.transition_model import (
    ClassTransition,
    Corrected,
    Transition,
    column_of_given_label,
)
from bltm.losses import reweighted_cross_entropy
from bltm.transition.parts import mixed_log_columns, mixed_log_noisy
from bltm.transition.revision import Revision

REVISION = replace(
    CYCLE, epochs=2, lr=2e-4, lengths=(), min_steps=20, select="loss", keep_start=True
)
"""A short revision that has to show itself better than none on noisy validation data."""

REVISION_RATE = 5.0
"""Factor on the learning rate of ΔT in it."""

PUBLISHED_REVISION = Schedule(200, 5e-7, "adam", weight_decay=1e-4, select="accuracy")
"""The revision of T-Revision and, with fewer epochs, of PTD-V."""


def fit_reweighted(
    job: Job, stage: str, schedule: Schedule, transition: Transition, start: nn.Module | None
) -> Corrected:
    """Train a classifier on reweighted cross-entropy; arguments are those of ``fit_corrected``."""
    return fit_corrected(job, stage, schedule, transition, start, reweighted_step)


def reweighted_step(modules: Modules, batch: Batch) -> torch.Tensor:
    """Return the reweighted cross-entropy of each example, its weight taken as a constant."""
    logits = modules["classifier"](batch.x)
    return reweighted_cross_entropy(logits, batch.extras["columns"], batch.y)


def fit_revised(
    job: Job,
    stage: str,
    schedule: Schedule,
    transition: ClassTransition | PartsTransition,
    start: nn.Module,
    rate: float,
) -> Corrected:
    """Train a classifier on reweighted cross-entropy together with an offset ΔT of the transition.

    T(x) is replaced by ``rownorm(max(T(x) + ΔT, 0))``. The weights of the loss are not taken as
    constants: it is through them that ΔT learns.

    Parameters
    ----------
    job, stage, schedule
        The fit, the stage's name, and how long.
    transition
        T or T(x) before the revision.
    start
        The classifier to start from.
    rate
        Factor on the learning rate of ΔT.
    """
    classifier = start_classifier(job, stage, start)
    revision = job.bench.new(f"{stage}/offset", lambda: Revision(job.data.n_classes))
    assert isinstance(revision, Revision)
    weights, matrices = as_mixture(job, transition)
    identity = torch.eye(job.data.n_classes, device=job.bench.device).log()

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        revised = modules["revision"](matrices)
        columns = mixed_log_columns(batch.extras["weights"], revised, batch.y)
        columns = torch.where(batch.extras["trusted"][:, None], identity[batch.y], columns)
        logits = modules["classifier"](batch.x)
        return reweighted_cross_entropy(logits, columns, batch.y, detach=False)

    def score(modules: Modules, batch: Batch) -> torch.Tensor:
        log_probs = functional.log_softmax(modules["classifier"](batch.x), dim=1)
        return mixed_log_noisy(batch.extras["weights"], modules["revision"](matrices), log_probs)

    job.train(
        stage,
        {"classifier": classifier, "revision": revision},
        step,
        schedule,
        score=score,
        extras={"weights": weights, "trusted": torch.from_numpy(job.data.trusted)},
        rates={"revision": rate},
    )
    revised = revised_transition(transition, revision).requires_grad_(False).eval()
    return Corrected(classifier, revised, column_of_given_label(job, revised))


def as_mixture(
    job: Job, transition: ClassTransition | PartsTransition
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return T(x) of all N examples as weights (N, r) of matrices (r, C, C); for one T, r is 1."""
    device = job.bench.device
    if isinstance(transition, ClassTransition):
        return torch.ones(len(job.data), 1), transition.T[None].to(device)
    weights = job.outputs(transition, lambda x, _: transition.coefficients(x))
    return weights, transition.matrices.to(device)


def revised_transition(
    transition: ClassTransition | PartsTransition, revision: Revision
) -> Transition:
    """Return the transition with a revision."""
    if isinstance(transition, ClassTransition):
        return ClassTransition(transition.T, revision)
    return PartsTransition(transition.trunk, transition.parts, transition.matrices, revision)
