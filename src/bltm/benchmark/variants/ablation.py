"""BLTM cut short: what its collected examples are worth without the transition network.

The appendix of the paper compares BLTM with a classifier that is trained on the collected examples
alone, and with one that is trained on the whole noisy set after that classifier has relabelled it.
Its table of the collection needs no classifier at all. Warm-up and collection are those of BLTM's
first round, with its presets, rules and thresholds; the second round of the default preset rests on
a corrected classifier and has no part in this.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from bltm.core.errors import InputError
from bltm.core.records import Collected, FitResult, IntArray, Posterior
from bltm.engine.batches import Batch
from bltm.engine.conclusion import conclude
from bltm.engine.correction import start_classifier
from bltm.engine.job import Job
from bltm.engine.posteriors import network_probs
from bltm.engine.schedule import PlannedStage, Schedule
from bltm.engine.stage import Modules
from bltm.engine.supervised import noisy_label_score
from bltm.losses import cross_entropy
from bltm.methods.bltm import BLTMClassifier, Collector
from bltm.methods.bltm.collect import collect
from bltm.methods.bltm.presets import Recipe
from bltm.methods.bltm.warm_up import unseen_posterior, warm_up

COLLECT, COLLECTED, RELABELLED = "round-1/collect", "collected", "relabelled"


@dataclass(eq=False, repr=False, kw_only=True)
class CollectionOnly(BLTMClassifier):
    """Warm up, collect, and stop there.

    The classifier is what the warm-up leaves: its network, or, where the posteriors are
    cross-fitted and no single network is, that of the last fold. It is there because an estimator
    has one; what counts is ``collected_`` and ``posterior_``.
    """

    revision: bool = field(default=False, init=False)
    rounds: int | None = field(default=None, init=False)
    posterior: Any = field(default=None, init=False)

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the warm-up."""
        recipe, collector, _ = self._recipe()
        if not collector.out_of_sample:
            return [PlannedStage("warm_up", recipe.warm_up, n)]
        return [
            PlannedStage(f"warm_up/fold-{number + 1}", recipe.warm_up, n - n // recipe.folds)
            for number in range(recipe.folds)
        ]

    def _recipe(self) -> tuple[Recipe, Collector, float]:
        recipe, collector, threshold = super()._recipe()
        # Nothing starts from the warmed-up network here.
        return replace(recipe, start_from_warm_up=False), collector, threshold

    def _fit(self, job: Job) -> FitResult:
        recipe, collector, threshold = self._suited_recipe(job)
        classifier: nn.Module | None
        if collector.out_of_sample:
            remembering = _Remembering(**vars(job))
            posterior = unseen_posterior(remembering, recipe)
            classifier = remembering.networks[-1]
        else:
            posterior, classifier = warm_up(job, recipe, out_of_sample=False)
            assert classifier is not None
        collected = collect(job, COLLECT, posterior, collector, threshold)
        return _concluded(job, classifier, posterior, collected)


@dataclass(eq=False, repr=False, kw_only=True)
class CollectedOnly(BLTMClassifier):
    """Train a classifier by cross-entropy on the collected examples with their inferred labels.

    It has the schedule of BLTM's classifier and starts where that starts: at random, or from the
    warmed-up network with the presets that do so. Lengths and epochs are selected by noisy
    validation labels with the classifier as it is, for there is no T to bridge the two.

    Parameters
    ----------
    relabel
        Whether the classifier then relabels the whole training set, and another one, started like
        the first, is trained on those labels.
    """

    revision: bool = field(default=False, init=False)
    rounds: int | None = field(default=None, init=False)
    relabel: bool = False

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the training stages, as if every training example were collected."""
        recipe, _, _ = self._recipe()
        stages = [stage for stage in super().plan(n) if stage.stage.startswith("warm_up")]
        stages.append(PlannedStage(COLLECTED, recipe.classifier, n))
        if self.relabel:
            stages.append(PlannedStage(RELABELLED, recipe.classifier, n))
        return stages

    def _fit(self, job: Job) -> FitResult:
        recipe, collector, threshold = self._suited_recipe(job)
        posterior, warm = warm_up(job, recipe, collector.out_of_sample, self.posterior)
        start = warm if recipe.start_from_warm_up else None
        collected = collect(job, COLLECT, posterior, collector, threshold)
        _check_amount(job, collected)
        labels = job.data.labels.copy()
        labels[collected.indices] = collected.bayes_labels
        classifier = fit_labels(job, COLLECTED, recipe.classifier, start, labels, collected.indices)
        if self.relabel:
            found = network_probs(job, classifier).argmax(axis=1)
            labels = np.where(job.data.trusted, job.data.labels, found)
            classifier = fit_labels(
                job, RELABELLED, recipe.classifier, start, labels, job.split.train
            )
        return _concluded(job, classifier, posterior, collected)


def fit_labels(
    job: Job,
    stage: str,
    schedule: Schedule,
    start: nn.Module | None,
    labels: IntArray,
    index: IntArray,
) -> nn.Module:
    """Train a classifier by cross-entropy on labels that are not the given ones.

    Parameters
    ----------
    job, stage, schedule
        The fit, the stage's name, and how long.
    start
        The network to start from, or None for a random start.
    labels
        Label of each of the N examples.
    index
        The examples to train on.
    """

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        return cross_entropy(modules["classifier"](batch.x), batch.extras["labels"])

    classifier = start_classifier(job, stage, start)
    job.train(
        stage,
        {"classifier": classifier},
        step,
        schedule,
        score=noisy_label_score,
        extras={"labels": torch.from_numpy(labels)},
        index=index,
    )
    return classifier


@dataclass(frozen=True)
class _Remembering(Job):
    """A job that remembers the classifiers it made, in their order."""

    networks: list[nn.Module] = field(default_factory=list)

    def new_classifier(self, name: str) -> nn.Module:
        self.networks.append(super().new_classifier(name))
        return self.networks[-1]


def _check_amount(job: Job, collected: Collected) -> None:
    """Refuse a collection that no classifier can be trained on."""
    count = len(collected)
    if count < 2 * job.bench.fabric.world_size:
        raise InputError(
            "rho_max",
            f"leaves too little to train on: {f'only {count}' if count else 'none'} of "
            f"{len(job.split.train)} examples have a noisy posterior above the threshold "
            f"{collected.threshold:g}",
            "Lower rho_max, or use collector='covering'.",
        )


def _concluded(
    job: Job, classifier: nn.Module, posterior: Posterior, collected: Collected
) -> FitResult:
    findings = {"collected": len(collected), "coverage": collected.coverage.tolist()}
    return conclude(job, classifier, posterior=posterior, collected=collected, findings=findings)
