"""One matrix T for all x: given by the user, or estimated with a network of noisy labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import nn

from bltm.core.errors import InputError
from bltm.core.matrix import check_transition
from bltm.core.records import FloatArray, IntArray, Posterior
from bltm.engine.job import Job
from bltm.engine.posteriors import in_sample_posterior
from bltm.engine.schedule import PlannedStage, Schedule
from bltm.engine.supervised import fit_cross_entropy
from bltm.engine.transition_model import ClassTransition
from bltm.transition.anchors import anchor_transition
from bltm.transition.counting import class_transition, counted_transition
from bltm.transition.surest import right_ahead, surest_transition

STAGE = "estimate"
PUBLISHED = Schedule(20, 0.01, momentum=0.0, weight_decay=1e-4, select="accuracy")
"""Schedule of the network of the estimate in T-Revision and in the Reweight that comes with it."""

ESTIMATORS = ("anchor", "counted")
# Counted examples that a typical class has where classes are told apart.
FEWEST_COUNTED = 15


@dataclass(frozen=True)
class ClassEstimate:
    """T, and where it is from.

    Attributes
    ----------
    transition
        T for all x.
    source
        "anchor", "counted" or "given".
    network, posterior
        The network that the estimate rests on, and its noisy posteriors; None where there is none.
    """

    transition: ClassTransition
    source: str
    network: nn.Module | None = None
    posterior: Posterior | None = None

    def findings(self) -> dict[str, Any]:
        """Return what the result says of it."""
        return {"transition_source": self.source}


def check_transition_choice(choice: str | ArrayLike) -> FloatArray | None:
    """Return the matrix that the user gave, or None for the name of an estimator."""
    if isinstance(choice, str):
        if choice not in ESTIMATORS:
            raise InputError(
                "transition",
                f"unknown: {choice!r}",
                f"Use one of {', '.join(ESTIMATORS)}, or give a matrix (C, C).",
            )
        return None
    matrix = check_transition(choice, "transition", atol=1e-4)
    if matrix.ndim != 2:
        raise InputError("transition", f"needs shape (C, C), got {matrix.shape}")
    return matrix


def find_class_transition(
    job: Job, choice: str | ArrayLike, schedule: Schedule, need_network: bool = False
) -> ClassEstimate:
    """Return T as the user gave it, or estimated.

    The estimate rests on the posteriors of a network that is trained by cross-entropy on the noisy
    labels and selected on noisy validation data.

    Parameters
    ----------
    job
        The fit.
    choice
        "anchor" or "counted", or a matrix.
    schedule
        Of the network.
    need_network
        Whether the network is asked for even where T was given.
    """
    given = check_transition_choice(choice)
    n_classes = job.data.n_classes
    if given is not None and len(given) != n_classes:
        raise InputError("transition", f"has shape {given.shape} but there are {n_classes} classes")
    network, posterior = None, None
    if given is None or need_network:
        network = fit_cross_entropy(job, STAGE, schedule)
        posterior = estimated_posterior(job, network)
    if given is not None:
        return ClassEstimate(_transition(given), "given", network, posterior)
    assert posterior is not None
    matrix = anchor_matrix if choice == "anchor" else counted_matrix
    return ClassEstimate(_transition(matrix(job, posterior)), str(choice), network, posterior)


def plan_class_transition(
    n: int, choice: str | ArrayLike, schedule: Schedule, need_network: bool = False
) -> list[PlannedStage]:
    """Return the stages that the estimate takes."""
    given = check_transition_choice(choice)
    return [PlannedStage(STAGE, schedule, n)] if given is None or need_network else []


def estimated_posterior(job: Job, network: nn.Module) -> Posterior:
    """Return the noisy posteriors of all examples by the network of the estimate."""
    return job.bench.record("posterior", Posterior, lambda: in_sample_posterior(job, network))


def doubted_examples(job: Job) -> IntArray:
    """Return the training examples whose labels were not checked: they tell how labels go wrong."""
    return job.split.train[~job.data.trusted[job.split.train]]


def anchor_matrix(job: Job, posterior: Posterior) -> FloatArray:
    """Return T of the anchor points among the training examples."""
    index = doubted_examples(job)
    if len(index) == 0:
        return checked_matrix(job)
    matrix = anchor_transition(posterior.probs[index])
    absent = absent_classes(job)
    # Its anchor point would be an example of another class, and the two could not be told apart.
    matrix[absent] = np.eye(len(matrix))[absent]
    return matrix


def counted_matrix(job: Job, posterior: Posterior) -> FloatArray:
    """Return T as confident learning counts it on the training examples."""
    index = doubted_examples(job)
    if len(index) == 0:
        return checked_matrix(job)
    return class_transition(posterior.probs[index], job.data.labels[index], job.data.weights[index])


def surest_matrix(job: Job, posterior: Posterior) -> FloatArray:
    """Return T as counted on the training examples of which the posterior is surest.

    With few examples the posterior is wrong even where it is surest, in ways that differ from class
    to class; together the classes are counted well enough.

    A posterior that rests on the noisy labels alone cannot know a class whose labels are mostly
    wrong, so the right label is held to be ahead of any wrong one. Labels that were checked can
    tell such a class.
    """
    index = doubted_examples(job)
    if len(index) == 0:
        return checked_matrix(job)
    probs = posterior.probs[index]
    labels, weights = job.data.labels[index], job.data.weights[index]
    counted = surest_transition(
        probs.argmax(axis=1),
        probs.max(axis=1),
        labels,
        job.data.n_classes,
        weights,
        least=FEWEST_COUNTED,
    )
    return counted.T if job.data.trusted.any() else right_ahead(counted.T)


def checked_matrix(job: Job) -> FloatArray:
    """Return T where every label was checked: all there is to count is that they are right."""
    labels = job.data.labels[job.split.train]
    return counted_transition(labels, labels, job.data.n_classes)


def absent_classes(job: Job) -> IntArray:
    """Return the classes that no training example was given."""
    counts = np.bincount(job.data.labels[job.split.train], minlength=job.data.n_classes)
    return np.flatnonzero(counts == 0)


def _transition(matrix: FloatArray) -> ClassTransition:
    return ClassTransition(torch.from_numpy(matrix)).requires_grad_(False).eval()
