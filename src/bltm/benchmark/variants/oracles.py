"""Forward correction with a transition that was not estimated: bounds for methods that have to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bltm.benchmark.variants.truth import Truth
from bltm.core.errors import InputError
from bltm.core.matrix import log_entries
from bltm.core.posterior import right_label_posterior
from bltm.core.records import FitResult, IntArray, Suspicion
from bltm.engine.batches import Batch, in_batches
from bltm.engine.conclusion import conclude
from bltm.engine.correction import forward_step
from bltm.engine.job import Job
from bltm.engine.posteriors import network_probs
from bltm.engine.predict import BATCH
from bltm.engine.schedule import PlannedStage
from bltm.engine.selection import Score
from bltm.engine.stage import Modules
from bltm.losses import noisy_log_probs
from bltm.methods.base import NoisyLabelClassifier
from bltm.methods.forward import PRESETS, ForwardClassifier
from bltm.noise.record import NoisyLabels


def class_oracle(truth: Truth, **parameters: Any) -> ForwardClassifier:
    """Return forward correction with the true class-dependent matrix.

    Where noise depends on the example this is the mean of the rows that the labels of each class
    were drawn from: the best that one matrix for all examples can be. Where people gave the labels
    it is counted.
    """
    return ForwardClassifier(transition=truth.T, **parameters)


@dataclass(eq=False, repr=False, kw_only=True)
class InstanceOracle(NoisyLabelClassifier):
    """Forward correction (Eq. 5) with the true T(x) of each example.

    Network and schedule are those of :class:`ForwardClassifier`. The true T(x) is known for the
    training examples only, so there is no ``transition_`` to ask about others.

    Parameters
    ----------
    truth
        What the benchmark knows of the training examples.
    """

    truth: Truth | None = None

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the one stage."""
        return [PlannedStage("correct", self._schedule(PRESETS), n)]

    def _fit(self, job: Job) -> FitResult:
        if self.truth is None:
            raise InputError("truth", "an oracle needs the true T(x)")
        noise = self.truth.noise_of(job.data)
        classifier = job.new_classifier("correct")
        columns = true_columns(noise, job.data.labels)
        job.train(
            "correct",
            {"classifier": classifier},
            forward_step,
            self._schedule(PRESETS),
            score=true_score(noise),
            extras={"columns": columns},
        )
        right, _ = right_label_posterior(network_probs(job, classifier), columns.exp().numpy())
        given = right[np.arange(len(right)), job.data.labels]
        suspicion = Suspicion(1.0 - given, "probability", "1 - P(given label | x, given label)")
        return conclude(job, classifier, suspicion=suspicion)


def true_columns(noise: NoisyLabels, labels: IntArray) -> torch.Tensor:
    """Return log T(x)[:, given label] of all N examples, shape (N, C), batch by batch."""
    columns = [
        noise.transition(batch)[np.arange(len(batch)), :, labels[batch]]
        for batch in (part.numpy() for part in in_batches(torch.arange(len(labels)), BATCH))
    ]
    return log_entries(torch.from_numpy(np.concatenate(columns)).float())


def true_score(noise: NoisyLabels) -> Score:
    """Return the score of a classifier of right labels on noisy labels: log (f(x) · T(x))."""

    def score(modules: Modules, batch: Batch) -> torch.Tensor:
        T = torch.from_numpy(noise.transition(batch.index.numpy())).float().to(batch.x.device)
        return noisy_log_probs(modules["classifier"](batch.x), T)

    return score
