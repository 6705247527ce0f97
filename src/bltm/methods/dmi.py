"""Determinant-based mutual information (L_DMI), from a network trained by cross-entropy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import nn

from bltm.core.errors import InputError
from bltm.core.records import FitResult
from bltm.engine.batches import Batch
from bltm.engine.conclusion import conclude
from bltm.engine.job import Job
from bltm.engine.predict import predict
from bltm.engine.protocol import CYCLE, S100
from bltm.engine.schedule import PlannedStage, Schedule
from bltm.engine.stage import Modules
from bltm.engine.supervised import fit_cross_entropy, noisy_label_score
from bltm.losses import dmi_loss, label_joint
from bltm.methods.base import NoisyLabelClassifier

START, STAGE = "cross_entropy", "dmi"


@dataclass(frozen=True)
class Recipe:
    """How to train by cross-entropy, how by the determinant, and how much to smooth."""

    cross_entropy: Schedule
    dmi: Schedule
    smoothing: float


PRESETS = {
    "default": Recipe(
        CYCLE,
        Schedule(
            8,
            1e-3,
            "adamw",
            "cosine",
            weight_decay=1e-2,
            batch_size=256,
            select="accuracy",
            keep_start=True,
        ),
        smoothing=0.1,
    ),
    "paper": Recipe(
        replace(S100, epochs=120, lr=0.1, batch_size=256),
        Schedule(100, 1e-6, weight_decay=1e-4, batch_size=256, select="accuracy", keep_start=True),
        smoothing=0.0,
    ),
}


@dataclass(eq=False, repr=False, kw_only=True)
class DMIClassifier(NoisyLabelClassifier):
    """A network trained by cross-entropy, then by ``-log |det U|`` of labels and predictions.

    U is the joint distribution of given labels and predictions in a batch. A batch in which a class
    is missing has a singular U and nothing to teach; therefore U is mixed with a share of the same
    distribution over all training examples, as the network of the first stage predicts them. Noise
    that does not depend on the input multiplies both by the same matrix, so that the loss is as
    robust as without.

    Parameters
    ----------
    smoothing
        Share of the distribution over all training examples, from 0 (as published) to below 1.
        None takes the preset's: 0.1, and 0 for "paper".
    net, preset, epochs, batch_size, lr, augment, weights, validation_fraction, classes, image_size
        As for every method; see :class:`NoisyLabelClassifier`, also for the rest.

    References
    ----------
    Xu et al. (2019), L_DMI: A Novel Information-theoretic Loss Function for Training Deep Nets
    Robust to Label Noise, NeurIPS.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> DMIClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    couples_batch = "its loss is the determinant of a matrix that is summed over the whole batch"

    smoothing: float | None = None

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the two stages."""
        recipe = self._recipe()
        return [PlannedStage(START, recipe.cross_entropy, n), PlannedStage(STAGE, recipe.dmi, n)]

    def _fit(self, job: Job) -> FitResult:
        recipe = self._recipe()
        classifier = fit_cross_entropy(job, START, recipe.cross_entropy)
        overall = training_joint(job, classifier)

        def step(modules: Modules, batch: Batch) -> torch.Tensor | None:
            joint = label_joint(modules["classifier"](batch.x), batch.y, batch.weight)
            joint = joint.lerp(overall, recipe.smoothing)
            if bool(((overall.sum(1) > 0) & (joint.sum(1) == 0)).any()):
                return None
            loss = dmi_loss(joint)
            return loss if bool(loss.isfinite()) else None

        job.train(STAGE, {"classifier": classifier}, step, recipe.dmi, score=noisy_label_score)
        return conclude(job, classifier)

    def _recipe(self) -> Recipe:
        """Return the preset with the user's changes."""
        recipe = self._chosen(PRESETS)
        smoothing = recipe.smoothing if self.smoothing is None else self.smoothing
        if not 0.0 <= smoothing < 1.0:
            raise InputError(
                "smoothing", f"must be at least 0 and below 1, got {smoothing}", "Use 0.1."
            )
        return Recipe(
            self._overridden(recipe.cross_entropy), self._overridden(recipe.dmi), smoothing
        )


def training_joint(job: Job, classifier: nn.Module) -> torch.Tensor:
    """Return the joint distribution of given labels and predictions in the training split."""
    train = job.split.train
    logits = predict(classifier, job.data.examples, train, job.bench.fabric)
    task = job.training()
    joint = label_joint(logits, task.labels[train], task.weights[train])
    return joint.to(job.bench.device)
