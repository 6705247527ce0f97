"""Generalised cross-entropy, plain or truncated.

Truncated, training alternates between the network and the set of labels it learns from: a label
whose probability is at most the threshold k costs ``L_q(k)``, whatever the network says of it, and
so has no gradient. Which labels these are is decided anew from time to time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from bltm.core.errors import InputError
from bltm.core.records import FitResult
from bltm.engine.batches import Batch, Moment
from bltm.engine.conclusion import conclude
from bltm.engine.job import Job
from bltm.engine.predict import predict
from bltm.engine.protocol import CYCLE, S100
from bltm.engine.schedule import PlannedStage
from bltm.engine.stage import Modules
from bltm.engine.supervised import fit_network, noisy_label_score
from bltm.losses import generalised_cross_entropy, truncated_gce
from bltm.methods.base import NoisyLabelClassifier

STAGE = "gce"
PRESETS = {"default": CYCLE, "paper": replace(S100, epochs=120)}


@dataclass(eq=False, repr=False, kw_only=True)
class GCEClassifier(NoisyLabelClassifier):
    """A network trained by generalised cross-entropy, ``(1 - p_y^q) / q``.

    Parameters
    ----------
    q
        Between cross-entropy (towards 0) and the mean absolute error (1).
    truncated
        Whether labels that the network finds unlikely are left out, from a third of the training
        on and decided anew every twelfth of it.
    threshold
        Probability up to which a label is left out.
    net, preset, epochs, batch_size, lr, augment, weights, validation_fraction, classes, image_size
        As for every method; see :class:`NoisyLabelClassifier`, also for the rest.

    References
    ----------
    Zhang, Sabuncu (2018), Generalized Cross Entropy Loss for Training Deep Neural Networks with
    Noisy Labels, NeurIPS.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> GCEClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    q: float = 0.7
    truncated: bool = False
    threshold: float = 0.5

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the one stage."""
        self._check()
        return [PlannedStage(STAGE, self._schedule(PRESETS), n)]

    def _fit(self, job: Job) -> FitResult:
        self._check()
        classifier = job.new_classifier(STAGE)

        def step(modules: Modules, batch: Batch) -> torch.Tensor:
            logits = modules["classifier"](batch.x)
            if not self.truncated:
                return generalised_cross_entropy(logits, batch.y, self.q)
            kept = batch.moment.memory["kept"][batch.index].to(logits.device)
            return truncated_gce(logits, batch.y, kept, self.q, self.threshold)

        def prune(modules: Modules, moment: Moment) -> None:
            if is_pruning_epoch(moment.epoch, moment.epochs):
                # The bare network, not the wrapped one: the processes have different numbers of
                # batches to judge, and must not wait for each other.
                moment.memory["kept"][job.split.train] = self._kept(job, classifier)

        options: dict[str, Any] = {}
        if self.truncated:
            kept = torch.ones(len(job.data), dtype=torch.bool)
            options = {"memory": {"kept": kept}, "before_epoch": prune}
        schedule = self._schedule(PRESETS)
        outcome = job.train(
            STAGE,
            {"classifier": classifier},
            step,
            schedule,
            score=noisy_label_score,
            **options,
        )
        findings = {}
        if self.truncated:
            kept = outcome.memory["kept"][job.split.train]
            findings["left_out"] = 1.0 - float(kept.float().mean())
        settled = job.settled(schedule, STAGE)
        return conclude(
            job,
            classifier,
            # Which examples a truncated loss keeps is decided on the way, for all of them.
            refit=None
            if self.truncated
            else lambda rest, name: fit_network(rest, name, settled, step),
            findings=findings,
        )

    def _kept(self, job: Job, classifier: nn.Module) -> torch.Tensor:
        """Return which examples of the training split the network learns from."""
        train = job.split.train
        logits = predict(classifier, job.data.examples, train, job.bench.fabric)
        likely = likely_labels(logits, torch.from_numpy(job.data.labels[train]), self.threshold)
        return likely | torch.from_numpy(job.data.trusted[train])

    def _check(self) -> None:
        if not 0.0 < self.q <= 1.0:
            raise InputError("q", f"must lie above 0 and be at most 1, got {self.q}", "Use 0.7.")
        if not 0.0 <= self.threshold < 1.0:
            raise InputError(
                "threshold", f"must be at least 0 and below 1, got {self.threshold}", "Use 0.5."
            )


def is_pruning_epoch(epoch: int, epochs: int) -> bool:
    """Tell whether labels are chosen anew before an epoch, counted from 0.

    Examples
    --------
    >>> [epoch for epoch in range(120) if is_pruning_epoch(epoch, 120)]
    [40, 50, 60, 70, 80, 90, 100, 110]
    >>> [epoch for epoch in range(3) if is_pruning_epoch(epoch, 3)]
    [1, 2]
    """
    since = epoch - math.ceil(epochs / 3)
    return since >= 0 and since % max(1, round(epochs / 12)) == 0


def likely_labels(logits: torch.Tensor, labels: torch.Tensor, threshold: float) -> torch.Tensor:
    """Return which labels are more probable than the threshold, shape (B,).

    Where that is none of a class's labels, the network has not learned the class yet: all of them
    stay, or it never would.

    Examples
    --------
    >>> logits = torch.tensor([[3.0, 0.0], [0.0, 3.0], [3.0, 0.0]])
    >>> likely_labels(logits, torch.tensor([0, 0, 1]), 0.5)
    tensor([ True, False,  True])
    """
    likely = logits.softmax(-1).gather(1, labels[:, None]).squeeze(1) > threshold
    learned = torch.bincount(labels[likely], minlength=logits.shape[1]) > 0
    return likely | ~learned[labels]
