"""Cross-entropy on the labels as they are: the baseline that every method is compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from bltm.core.errors import InputError
from bltm.core.records import FitResult, Posterior
from bltm.engine.job import Job
from bltm.engine.posteriors import in_sample_posterior
from bltm.engine.schedule import PlannedStage, Schedule
from bltm.engine.supervised import fit_cross_entropy
from bltm.methods.base import NoisyLabelClassifier

PRESETS = {
    "default": Schedule(
        12, 2e-3, "adamw", "one-cycle", weight_decay=1e-2, min_steps=200, select="accuracy"
    ),
    # The schedule that the loss-based methods of the paper's tables share.
    "paper": Schedule(100, 0.01, "sgd", "steps", (40, 80), weight_decay=1e-4, select="accuracy"),
}


class CrossEntropyClassifier(NoisyLabelClassifier):
    """A network trained by cross-entropy on the noisy labels, selected on noisy validation data.

    Parameters
    ----------
    net
        "auto", the name of a network, or a function from the number of outputs to a module.
    preset
        "default", or "paper" for the schedule of the paper's baselines.
    epochs, batch_size, lr
        Override the preset's.
    weights
        File of weights to start from.
    validation_fraction
        Share of the noisy examples that is held out to select the epoch.
    classes
        All classes, where some may be absent from the labels.
    image_size
        Side to which image files are resized.
    device, precision
        Where and how to compute: "auto", "cpu", "cuda", "mps"; "32-true", "bf16-mixed".
    random_state
        Seed of all random streams.
    verbose
        1 for progress.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> CrossEntropyClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        net: str | Callable[[int], nn.Module] = "auto",
        *,
        preset: str = "default",
        epochs: int | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        weights: str | Path | None = None,
        validation_fraction: float = 0.1,
        classes: Sequence[Any] | None = None,
        image_size: int | None = None,
        device: str = "auto",
        precision: str = "32-true",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.net = net
        self.preset = preset
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weights = weights
        self.validation_fraction = validation_fraction
        self.classes = classes
        self.image_size = image_size
        self.device = device
        self.precision = precision
        self.random_state = random_state
        self.verbose = verbose

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the one stage."""
        return [PlannedStage("cross_entropy", self._schedule(), n)]

    def _schedule(self) -> Schedule:
        if self.preset not in PRESETS:
            raise InputError("preset", f"unknown: {self.preset!r}", f"Use {' or '.join(PRESETS)}.")
        return PRESETS[self.preset].overridden(self.epochs, self.batch_size, self.lr)

    def _fit(self, job: Job) -> FitResult:
        classifier = fit_cross_entropy(job, "cross_entropy", self._schedule())
        posterior = job.bench.record(
            "posterior", Posterior, lambda: in_sample_posterior(job, classifier)
        )
        predicted = posterior.probs[job.split.all].argmax(axis=1)
        return FitResult(
            classifier,
            posterior=posterior,
            findings={"predicted_classes": len(np.unique(predicted))},
        )
