"""DivideMix as an estimator: warm up, then divide and mix, epoch by epoch."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bltm.core.errors import InputError
from bltm.core.records import FitResult, IntArray, Suspicion
from bltm.engine.batches import Moment
from bltm.engine.conclusion import conclude
from bltm.engine.job import Job
from bltm.engine.noise_rate import check_noise_rate, find_noise_rate, plan_noise_rate
from bltm.engine.protocol import CYCLE, LENGTHS
from bltm.engine.schedule import PlannedStage, Schedule
from bltm.engine.stage import Modules
from bltm.methods.base import NoisyLabelClassifier
from bltm.methods.dividemix.divide import clean_probabilities, deal
from bltm.methods.dividemix.mix import (
    CLEAN,
    NETWORKS,
    MixStep,
    ensemble_score,
    warm_up_step,
)
from bltm.nets.ensemble import Ensemble

WARM_UP, MAIN = "warm_up", "divide_and_mix"
PRIORS = ("labels", "uniform")


@dataclass(frozen=True)
class Recipe:
    """What a preset fixes.

    Attributes
    ----------
    warm_up, main
        Schedules of both stages. Half of the paper's batches is labelled, so its 64 are our 128.
    ramp
        Share of the main stage in which the weight of the unlabelled loss rises.
    augmented_warm_up
        Whether the warm-up augments too. In a short one a network that has to learn the changes as
        well is late with the hard classes, and their losses then pass for those of wrong labels.
    equal_parts
        Whether a batch has as many unlabelled examples as labelled ones, however often they have to
        come, and an epoch is one pass over the labelled; else it is one pass over all examples.
    """

    warm_up: Schedule
    main: Schedule
    ramp: float
    augmented_warm_up: bool
    equal_parts: bool


_PUBLISHED = Schedule(10, 0.02, "sgd", weight_decay=5e-4)

PRESETS = {
    "default": Recipe(
        warm_up=replace(CYCLE, epochs=6, lengths=(), select="last"),
        # The shortest of the common lengths would not fit into the budget beside the others.
        main=replace(CYCLE, lengths=LENGTHS[1:]),
        ramp=0.25,
        augmented_warm_up=False,
        equal_parts=False,
    ),
    "paper": Recipe(
        warm_up=_PUBLISHED,
        main=replace(_PUBLISHED, epochs=290, decay="steps", milestones=(140,), select="accuracy"),
        ramp=16 / 290,
        augmented_warm_up=True,
        equal_parts=True,
    ),
}


def usual_lambda_u(noise_rate: float, structured: bool) -> float:
    """Return the weight of the unlabelled loss for a share of wrong labels.

    The published settings for symmetric noise on CIFAR-10 have 0 at 20 % and 25 at 50 % and 80 %;
    for noise that depends on the class (40 %) and on real images (Clothing1M) they have 0. Between
    two of them we go in a line.

    Parameters
    ----------
    noise_rate
        Share of wrong labels.
    structured
        Whether noise depends on class or instance.

    Examples
    --------
    >>> [round(usual_lambda_u(rate, False), 1) for rate in (0.1, 0.2, 0.35, 0.5, 0.8)]
    [0.0, 0.0, 12.5, 25.0, 25.0]
    >>> [usual_lambda_u(rate, True) for rate in (0.4, 0.5, 0.8)]
    [0.0, 0.0, 25.0]
    """
    none, all_of_it = (0.5, 0.8) if structured else (0.2, 0.5)
    return 25.0 * min(1.0, max(0.0, (noise_rate - none) / (all_of_it - none)))


@dataclass(eq=False, repr=False, kw_only=True)
class DivideMixClassifier(NoisyLabelClassifier):
    """Two networks that tell each other which labels to drop, and guess those that they drop.

    Before each epoch both networks divide the examples by their losses; each then learns from the
    division that the other made, from clean labels as they are (refined by its own prediction) and
    from the rest as if unlabelled, by MixMatch. The classifier is the mean of both networks'
    logits.

    Parameters
    ----------
    noise_rate
        Share of wrong labels, on which the weight of the unlabelled loss depends; None estimates
        it.
    lambda_u
        That weight itself; None takes 0 up to a noise rate of 50 %, 25 from 80 % on, and a line
        between; without ``confidence_penalty`` 0 up to 20 % and 25 from 50 % on.
    alpha
        Of the Beta distribution of MixUp's coefficient.
    temperature
        Of the sharpening of refined and guessed labels.
    threshold
        An example keeps its label where the probability that it is clean is above this.
    prior
        What the mean prediction is held to: the frequencies of the given "labels", or "uniform" as
        in the paper, which is wrong for classes of different size.
    confidence_penalty
        Whether the warm-up rewards entropy: yes where noise depends on class or instance, no where
        it is symmetric.
    augment
        "auto" is "crop-flip" for images and none for anything else. Where mirrored images are
        wrong, as for digits and letters, "crop" is right.
    net, preset, epochs, batch_size, lr, weights, validation_fraction, classes, image_size
        As for every method; see :class:`NoisyLabelClassifier`, also for the rest.

    References
    ----------
    Li, Socher, Hoi (2020), DivideMix: Learning with Noisy Labels as Semi-supervised Learning, ICLR.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DivideMixClassifier(noise_rate=0.1, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    couples_batch = "examples of a batch are mixed with each other"

    augment: str = "auto"
    noise_rate: float | None = None
    lambda_u: float | None = None
    alpha: float = 4.0
    temperature: float = 0.5
    threshold: float = 0.5
    prior: str = "labels"
    confidence_penalty: bool = True

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the stages, as if all examples were images, and for the paper's preset clean.

        An example of an epoch of the main stage is learned by two networks, each from two views
        of it. Forward passes that only guess labels do not count.
        """
        recipe = self._recipe()
        stages = []
        if self.lambda_u is None:
            stages += plan_noise_rate(n, self.noise_rate, self.epochs, self.batch_size)
        views = 1 if self.augment == "none" else 2
        parts = 2 if recipe.equal_parts else 1
        return [
            *stages,
            PlannedStage(WARM_UP, recipe.warm_up, n, len(NETWORKS)),
            PlannedStage(MAIN, recipe.main, n, len(NETWORKS) * views * parts),
        ]

    def _fit(self, job: Job) -> FitResult:
        recipe = self._recipe()
        lambda_u, findings = self._weight_of_unlabelled(job)
        networks = {name: job.new_classifier(name) for name in NETWORKS}
        step = partial(warm_up_step, self.confidence_penalty)
        job.train(
            WARM_UP,
            networks,
            step,
            recipe.warm_up,
            passes=len(NETWORKS),
            augment=job.augment if recipe.augmented_warm_up else None,
        )
        self._divide_and_mix(job, recipe, networks, lambda_u)
        everyone = np.arange(len(job.data))
        w = np.stack(
            [self._clean(job, networks[name], everyone, name) for name in NETWORKS], axis=1
        )
        labelled = (w[job.split.train] > self.threshold).mean(axis=0)
        return conclude(
            job,
            Ensemble(networks.values()),
            suspicion=Suspicion(
                1.0 - w.mean(axis=1), "probability", "1 - mean w of both networks' loss mixtures"
            ),
            findings={**findings, "lambda_u": lambda_u, "labelled_share": labelled.tolist()},
        )

    def _divide_and_mix(
        self, job: Job, recipe: Recipe, networks: dict[str, nn.Module], lambda_u: float
    ) -> None:
        """Train both networks in one stage, the first in the first half of each epoch."""
        train = job.split.train
        size = recipe.main.candidates(len(train))[0].batch_size

        def divide(modules: Modules, moment: Moment) -> None:
            for number, name in enumerate(NETWORKS):
                w = self._clean(job, modules[name], train, name, moment.epoch)
                moment.memory[CLEAN][torch.from_numpy(train), number] = torch.from_numpy(w)

        def batches(moment: Moment) -> list[torch.Tensor]:
            clean = moment.memory[CLEAN][torch.from_numpy(train)].numpy() > self.threshold
            n_clean = clean.sum(axis=0)
            n_noisy = len(train) - n_clean
            if recipe.equal_parts:
                n_noisy = np.where(n_noisy > 0, n_clean, 0)
            steps = math.ceil((n_clean + n_noisy).max() / size)
            dealt = []
            for number, name in enumerate(NETWORKS):
                mask, rng = (
                    clean[:, 1 - number],
                    job.bench.stream(MAIN, "order", name, moment.epoch),
                )
                dealt += deal(train[mask], train[~mask], steps, int(n_noisy[1 - number]), rng)
            return dealt

        step = MixStep(
            prior=self._prior(job),
            lambda_u=lambda_u,
            ramp=recipe.ramp,
            alpha=self.alpha,
            temperature=self.temperature,
            threshold=self.threshold,
            augment=job.augment,
        )
        job.train(
            MAIN,
            networks,
            step,
            recipe.main,
            score=ensemble_score,
            memory={CLEAN: torch.ones(len(job.data), len(NETWORKS))},
            before_epoch=divide,
            batches=batches,
            # The step makes its own views.
            augment=None,
            passes=1 if job.augment is None else 2,
        )

    def _clean(
        self, job: Job, network: nn.Module, index: IntArray, *names: str | int
    ) -> NDArray[np.float32]:
        """Return w of some examples by a network."""
        seed = int(job.bench.stream(MAIN, "mixture", *names).integers(2**31))
        return clean_probabilities(job, network, index, self.threshold, seed)

    def _weight_of_unlabelled(self, job: Job) -> tuple[float, dict[str, Any]]:
        if self.lambda_u is not None:
            return float(self.lambda_u), {}
        rate = find_noise_rate(job, self.noise_rate, self.epochs, self.batch_size)
        return usual_lambda_u(rate.value, self.confidence_penalty), rate.findings()

    def _prior(self, job: Job) -> torch.Tensor:
        """Return the class frequencies that the mean prediction is held to."""
        task, counts = job.training(), torch.ones(job.data.n_classes)
        if self.prior == "labels":
            labels, weights = task.labels[task.index], task.weights[task.index]
            counts = torch.bincount(labels, weights, minlength=len(counts))
        return (counts / counts.sum()).to(job.bench.device, torch.float32)

    def _recipe(self) -> Recipe:
        """Return the preset with the user's changes, after a look at all parameters."""
        for name in ("alpha", "temperature"):
            value = getattr(self, name)
            if not 0.0 < value < math.inf:
                raise InputError(name, f"must be above 0 and finite, got {value}")
        if not 0.0 < self.threshold < 1.0:
            raise InputError("threshold", f"must lie between 0 and 1, got {self.threshold}")
        if self.lambda_u is not None and not 0.0 <= self.lambda_u < math.inf:
            raise InputError(
                "lambda_u",
                f"must be finite and not negative, got {self.lambda_u}",
                "None derives it from the noise rate.",
            )
        if self.prior not in PRIORS:
            raise InputError(
                "prior", f"unknown: {self.prior!r}", f"Use one of {', '.join(PRIORS)}."
            )
        check_noise_rate(self.noise_rate)
        recipe = self._chosen(PRESETS)
        return replace(
            recipe,
            warm_up=self._overridden(recipe.warm_up),
            main=self._overridden(recipe.main),
        )
