"""Joint optimisation: the network and the labels it learns from are refined in turn.

First the network is trained, and from some epoch on the label of an example is the mean of what
the network said of it in the epochs before. Then a new network is trained on the refined labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from bltm.core.errors import InputError
from bltm.core.records import FitResult, FloatArray, Suspicion
from bltm.engine.batches import Batch
from bltm.engine.conclusion import conclude, disagreement
from bltm.engine.job import Job
from bltm.engine.posteriors import network_probs
from bltm.engine.protocol import CYCLE, S100
from bltm.engine.schedule import PlannedStage, Schedule
from bltm.engine.stage import Modules
from bltm.engine.supervised import noisy_label_score
from bltm.losses import entropy, prior_cross_entropy, soft_cross_entropy
from bltm.methods.base import NoisyLabelClassifier

REFINE, RETRAIN = "refine", "retrain"
PRIORS = ("labels", "uniform")


@dataclass(frozen=True)
class Recipe:
    """Schedules of the two stages, and the settings that the user may override."""

    refine: Schedule
    retrain: Schedule
    alpha: float
    beta: float
    window: int
    begin: float


PRESETS = {
    # The refined labels are those of the last epochs, and so must be the figures by which noisy
    # validation data chooses the length.
    "default": Recipe(
        replace(CYCLE, select="last"), CYCLE, alpha=0.4, beta=0.2, window=3, begin=0.4
    ),
    "paper": Recipe(
        Schedule(200, 0.08, weight_decay=1e-4),
        replace(S100, epochs=120, lr=0.2),
        alpha=1.2,
        beta=0.8,
        window=10,
        begin=0.35,
    ),
}


@dataclass(eq=False, repr=False, kw_only=True)
class JointClassifier(NoisyLabelClassifier):
    """Refine soft labels and a network in turn, then train a new network on the labels.

    Parameters
    ----------
    alpha
        Weight of ``-Σ_k prior_k log(mean p_k)``, which keeps all classes in use.
    beta
        Weight of the entropy of the predictions, which makes soft labels decided.
    window
        Number of epochs whose predictions are averaged.
    begin
        Share of the epochs that learn from the labels as given.
    prior
        Class frequencies that predictions are held to: those of the "labels", or "uniform".
    net, preset, epochs, batch_size, lr, augment, weights, validation_fraction, classes, image_size
        As for every method; see :class:`NoisyLabelClassifier`, also for the rest.

    Notes
    -----
    ``None`` for ``alpha``, ``beta``, ``window`` and ``begin`` takes the preset's.

    References
    ----------
    Tanaka et al. (2018), Joint Optimization Framework for Learning with Noisy Labels, CVPR.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> JointClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    couples_batch = "its loss holds the mean prediction of the whole batch to the class frequencies"

    alpha: float | None = None
    beta: float | None = None
    window: int | None = None
    begin: float | None = None
    prior: str = "labels"

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the two stages."""
        recipe = self._recipe()
        return [
            PlannedStage(REFINE, recipe.refine, n),
            PlannedStage(RETRAIN, recipe.retrain, n),
        ]

    def _fit(self, job: Job) -> FitResult:
        recipe = self._recipe()
        soft_labels = refine(job, recipe, class_prior(job, self.prior))
        classifier = retrain(job, recipe, soft_labels)
        train = job.split.train
        changed = soft_labels[train].argmax(1).numpy() != job.data.labels[train]
        return conclude(
            job,
            classifier,
            suspicion=refined_doubt(job, soft_labels, classifier),
            findings={"changed_labels": float(changed.mean())},
        )

    def _recipe(self) -> Recipe:
        """Return the preset with the user's changes."""
        recipe = self._chosen(PRESETS)
        given: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("alpha", "beta", "window", "begin")
            if getattr(self, name) is not None
        }
        for name in ("alpha", "beta"):
            if not given.get(name, 0.0) >= 0.0:
                raise InputError(name, f"must not be negative, got {given[name]}")
        window = given.get("window", 1)
        if not (isinstance(window, (int, np.integer)) and window >= 1):
            raise InputError("window", f"must be a whole number of epochs, 1 or more, got {window}")
        if not 0.0 <= given.get("begin", 0.0) <= 1.0:
            raise InputError("begin", f"must lie in [0, 1], got {given['begin']}", "Use 0.4.")
        if self.prior not in PRIORS:
            raise InputError(
                "prior", f"unknown: {self.prior!r}", f"Use one of {', '.join(PRIORS)}."
            )
        return replace(
            recipe,
            refine=self._overridden(recipe.refine),
            retrain=self._overridden(recipe.retrain),
            **given,
        )


def refine(job: Job, recipe: Recipe, prior: torch.Tensor) -> torch.Tensor:
    """Train a network and its labels in turn; return soft labels of all N examples, shape (N, C).

    Examples outside the training split, and those whose label is trusted, keep the given label.

    Parameters
    ----------
    job, recipe
        The fit and its settings.
    prior
        Class frequencies, shape (C,).
    """
    given = one_hot_labels(job)

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        logits = modules["classifier"](batch.x)
        moment = batch.moment
        predictions = moment.memory["predictions"]
        targets = batch.extras["given"]
        # Read before this epoch's prediction takes the place of the oldest.
        if moment.epoch >= max(1, round(recipe.begin * moment.epochs)):
            refined = mean_prediction(predictions[batch.index], moment.epoch)
            targets = targets.where(batch.extras["fixed"][:, None], refined.to(targets.device))
        said = logits.detach().softmax(-1).float().cpu()
        predictions[batch.index, moment.epoch % recipe.window] = said
        return (
            soft_cross_entropy(logits, targets)
            + recipe.alpha * prior_cross_entropy(logits, prior, batch.weight)
            + recipe.beta * entropy(logits)
        )

    fixed = torch.from_numpy(job.data.trusted)
    outcome = job.train(
        REFINE,
        {"classifier": job.new_classifier(REFINE)},
        step,
        recipe.refine,
        score=noisy_label_score,
        extras={"given": given, "fixed": fixed},
        memory={"predictions": torch.zeros(len(given), recipe.window, job.data.n_classes)},
    )
    if outcome.epochs == 0:
        return given
    refined = mean_prediction(outcome.memory["predictions"], outcome.epochs)
    fixed = fixed.clone()
    fixed[np.setdiff1d(np.arange(len(given)), job.split.train)] = True
    return given.where(fixed[:, None], refined)


def retrain(job: Job, recipe: Recipe, soft_labels: torch.Tensor) -> nn.Module:
    """Train a new network on soft labels of the training split."""

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        return soft_cross_entropy(modules["classifier"](batch.x), batch.extras["soft_labels"])

    classifier = job.new_classifier(RETRAIN)
    job.train(
        RETRAIN,
        {"classifier": classifier},
        step,
        recipe.retrain,
        score=noisy_label_score,
        extras={"soft_labels": soft_labels},
    )
    return classifier


def mean_prediction(predictions: torch.Tensor, epochs: int) -> torch.Tensor:
    """Return the mean of the last predictions of each example, shape (B, C).

    Parameters
    ----------
    predictions
        A ring of as many epochs as are averaged, shape (B, window, C): that of epoch e is in place
        ``e % window``.
    epochs
        How many epochs are done; while they are fewer than the window, the rest of it is empty.

    Examples
    --------
    >>> ring = torch.tensor([[[0.2, 0.8], [0.6, 0.4], [0.0, 0.0]]])
    >>> mean_prediction(ring, 2)
    tensor([[0.4000, 0.6000]])
    """
    return predictions[:, :epochs].mean(1)


def one_hot_labels(job: Job) -> torch.Tensor:
    """Return the given labels of all N examples, shape (N, C)."""
    return functional.one_hot(torch.from_numpy(job.data.labels), job.data.n_classes).float()


def class_prior(job: Job, prior: str) -> torch.Tensor:
    """Return the class frequencies that predictions are held to, shape (C,)."""
    n_classes, train = job.data.n_classes, job.split.train
    mass: FloatArray = np.ones(n_classes)
    if prior == "labels":
        labels, weights = job.data.labels[train], job.data.weights[train]
        mass = np.asarray(np.bincount(labels, weights, n_classes), dtype=np.float64)
    return torch.from_numpy(mass / mass.sum()).float().to(job.bench.device)


def refined_doubt(job: Job, soft_labels: torch.Tensor, classifier: nn.Module) -> Suspicion:
    """Return how little of the refined label is left for the given one.

    A score, not a probability: the entropy term pushes the refined labels towards 0 and 1.
    Examples that were held out have no refined label, and the classifier speaks for them.
    """
    labels = job.data.labels
    doubt = disagreement(soft_labels.numpy(), labels).values
    others = np.setdiff1d(np.arange(len(labels)), job.split.train)
    if len(others):
        doubt[others] = disagreement(network_probs(job, classifier), labels).values[others]
    return Suspicion(doubt, "score", "1 - refined label[given label]")
