"""Development cells, and the stages of BLTM that trials on them share, for choosing a recipe.

A cell has noisy training images and other images to judge by. Both come from the training files of
a data set, so test sets have no part in a choice. Methods see the job of a cell, which holds images
and noisy labels; the right labels, the rows of T(x) that the noisy ones were drawn from and the
development part are for the judge.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import beta
from sklearn.metrics import average_precision_score
from torch import nn

from bltm.audit.unmixing import make_unmix
from bltm.core.matrix import sample_rows
from bltm.core.posterior import right_label_posterior
from bltm.core.random import stream
from bltm.core.records import Collected, Examples, FloatArray, IntArray, Posterior, Split
from bltm.core.tempering import POWER
from bltm.data.registry import load_dataset
from bltm.data.source import Source
from bltm.data.splits import split_noisy
from bltm.engine.class_transition import counted_matrix, doubted_examples
from bltm.engine.correction import fit_corrected
from bltm.engine.devices import make_fabric
from bltm.engine.job import Job
from bltm.engine.posteriors import cross_fitted, cross_fitted_posterior, network_probs
from bltm.engine.predict import predict
from bltm.engine.schedule import Schedule
from bltm.engine.store import DirectoryStore
from bltm.engine.supervised import fit_cross_entropy
from bltm.engine.transition_model import Corrected, Transition
from bltm.engine.tuning import keep_memory
from bltm.engine.workbench import Workbench
from bltm.methods.bltm.collect import COLLECTORS, collect, threshold_of
from bltm.methods.bltm.estimator import belief
from bltm.methods.bltm.learn_transition import learn_transition
from bltm.methods.bltm.presets import RHO_MAX, Recipe
from bltm.methods.inputs import noisy_data
from bltm.noise import NoisyLabels, make_noise
from bltm.noise.record import assemble
from bltm.transition.surest import SUREST, Counted, surest_transition
from harness import rater_rows

DATA = ("fashion-mnist", "cifar10")
NOISES = ("instance", "rater")
NET = "compact"
HELD_OUT = 10_000
CLASSES = 10
# Published grids have the seeds below.
FIRST_SEED = 100
# The rater learns from this many other images for each image of the cell, and doubts itself.
RATER_IMAGES, RATER_TEMPERATURE = 2, 1.5
# Steps on inverted posteriors of noisy labels, and on classifiers of right labels.
FIRST_EM_STEPS, EM_STEPS = 5, 20
# No entry of a matrix is below.
LEAST = 1e-5
# A bound on the noise that is counted, instead of a threshold.
ESTIMATED = "estimated"
Bound = float | str | None
Probs = NDArray[np.float32]
Result = TypeVar("Result")


class Cell(NamedTuple):
    """Which data, which noise, how much of it, and the seed of all draws."""

    data: str
    noise: str
    rate: float
    seed: int

    @classmethod
    def parse(cls, text: str) -> Cell:
        """Read ``data:noise:rate:seed``, for a command line."""
        try:
            data, noise, rate, seed = text.split(":")
            cell = cls(data, noise, float(rate), int(seed))
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r} is not data:noise:rate:seed") from error
        if data not in DATA or noise not in NOISES or cell.seed < FIRST_SEED:
            raise argparse.ArgumentTypeError(
                f"{text!r}: data is one of {DATA}, noise one of {NOISES}, seeds are from "
                f"{FIRST_SEED} on"
            )
        return cell

    def __str__(self) -> str:
        return f"{self.data}:{self.noise}:{self.rate:g}:{self.seed}"


@dataclass(frozen=True)
class Drawn:
    """Labels and the rows they were drawn from."""

    labels: IntArray
    row: FloatArray


@dataclass(frozen=True, eq=False)
class Development:
    """A development cell.

    Attributes
    ----------
    job
        All that methods see.
    right, noise
        The right labels of the training images, and how the noisy ones were made.
    held_out, held_out_labels
        The development part.
    """

    job: Job
    right: IntArray
    noise: NoisyLabels
    held_out: Examples
    held_out_labels: IntArray

    @classmethod
    def open(cls, cell: Cell, images: int, directory: Path, rater: Schedule) -> Development:
        """Make a cell, with its trained stages in a directory.

        Parameters
        ----------
        cell
            Which one.
        images
            Number of training images.
        directory
            Where stages are kept, and taken from when they are there.
        rater
            Schedule of the network that gives labels as a person does, for that noise.
        """
        keep_memory()
        directory.mkdir(parents=True, exist_ok=True)
        store = DirectoryStore(directory, directory / "history.jsonl")
        bench = Workbench(make_fabric(), cell.seed, store)
        files = load_dataset(cell.data).train
        first_held_out = len(files) - HELD_OUT
        order = stream(cell.seed, "development", "images").permutation(first_held_out)
        train, others = files.take(np.sort(order[:images])), files.take(order[images:])
        right = _codes(train)
        if cell.noise == "rater":
            noise = rater_noise(
                train, others.take(range(RATER_IMAGES * images)), cell, bench, rater
            )
        else:
            noise = make_noise(train.inputs, right, cell.noise, cell.rate, cell.seed, CLASSES)
        noisy = replace(train, labels=noise.y_noisy)
        data, encoder = noisy_data(noisy, range(CLASSES), None, None, None)
        job = Job(data, split_noisy(data, 0.1, cell.seed), bench, NET)
        held_out = files.take(range(first_held_out, len(files)))
        return cls(job, right, noise, encoder.encode(held_out), _codes(held_out))

    def probs(self, network: nn.Module) -> Probs:
        """Return a network's probabilities for the development part."""
        index = np.arange(len(self.held_out))
        logits = predict(network, self.held_out, index, self.job.bench.fabric)
        return torch.softmax(logits, dim=1).numpy()

    def accuracy(self, predictions: nn.Module | Probs) -> float:
        """Return the accuracy of a network, or of probabilities, on the development part."""
        probs = self.probs(predictions) if isinstance(predictions, nn.Module) else predictions
        return float((probs.argmax(axis=1) == self.held_out_labels).mean())

    def class_error(self, matrix: FloatArray) -> float:
        """Return the mean ℓ1 distance of one matrix's rows from those labels were drawn from."""
        return float(np.abs(matrix[self.right] - self.noise.row).sum(axis=1).mean())

    def row_error(self, transition: Transition) -> float:
        """Return the mean ℓ1 distance of the used rows of T(x) from those of the labels."""
        right = torch.from_numpy(self.right)
        rows = self.job.outputs(
            transition, lambda x, index: transition.rows(x, right[index].to(x.device))
        )
        return float(np.abs(rows.numpy() - self.noise.row).sum(axis=1).mean())

    def judge(self, f: Probs, columns: Probs | None) -> dict[str, float]:
        """Return how well f, and the columns of T(x) of the given labels, find the wrong ones.

        ``average_precision`` ranks by f·T, ``average_precision_tempered`` by f·T^⅓ and
        ``average_precision_alone`` by f; ``noise_rate`` is the estimate, all on the training split.
        ``noisy_nll`` is the mean negative log-likelihood of the noisy labels of the validation
        split. Without a T, f is taken for the posterior of noisy labels.
        """
        train, validation = self.job.split.train, self.job.split.validation
        labels, everyone = self.job.data.labels, np.arange(len(f))
        wrong = (labels != self.right)[train]
        alone = likelihood = f[everyone, labels]
        found, ranks = {}, {"average_precision_alone": -alone[train]}
        if columns is not None:
            right, likelihood = right_label_posterior(f, columns)
            suspicion = ranks["average_precision"] = 1.0 - right[everyone, labels][train]
            found["noise_rate"] = float(suspicion.mean())
            tempered, _ = right_label_posterior(f, columns**POWER)
            ranks["average_precision_tempered"] = 1.0 - tempered[everyone, labels][train]
        if wrong.any():
            found |= {k: float(average_precision_score(wrong, rank)) for k, rank in ranks.items()}
        found["noisy_nll"] = -float(np.log(np.maximum(likelihood[validation], 1e-9)).mean())
        return found


def rater_noise(
    train: Source, others: Source, cell: Cell, bench: Workbench, schedule: Schedule
) -> NoisyLabels:
    """Return labels that are made like a person's, wrong where images are hard.

    A network that was trained on other images gives the label with its own uncertainty, mixed with
    the right label so that the expected share of wrong ones is the rate.
    """
    right = _codes(train)

    def draw() -> Drawn:
        data, encoder = noisy_data(others, range(CLASSES), None, None, None)
        every = np.arange(len(data))
        network = fit_cross_entropy(
            Job(data, Split(every, every[:0]), bench, NET), "rater", schedule
        )
        logits = predict(network, encoder.encode(train), np.arange(len(train)), bench.fabric)
        own = softmax(logits.double().numpy() / RATER_TEMPERATURE, axis=1)
        row = rater_rows(own, right, cell.rate)
        return Drawn(sample_rows(row, stream(cell.seed, "rater", "labels")), row)

    # Kept, for another machine's rounding would draw other labels than the stages have seen.
    drawn = bench.record("rater/labels", Drawn, draw)
    return assemble(
        model="rater",
        rate=cell.rate,
        seed=cell.seed,
        y=right,
        y_noisy=drawn.labels,
        row=drawn.row,
        options={},
        transition_of=None,
    )


def _codes(source: Source) -> IntArray:
    labels: Any = source.labels
    return np.asarray(labels, dtype=np.int64)


def scaled(schedule: Schedule, factor: float) -> Schedule:
    """Return a schedule that is longer or shorter by a factor."""
    if factor == 1.0:
        return schedule
    return schedule.overridden(max(1, round(factor * schedule.epochs)))


def once(method: Callable[..., Result]) -> Callable[..., Result]:
    """Keep what a method of ``Trials`` returns, for a round asks for all the rounds before it."""

    @wraps(method)
    def found(self: Trials, *arguments: Any) -> Result:
        key = (method.__name__, *arguments)
        if key not in self.memory:
            self.memory[key] = method(self, *arguments)
        result: Result = self.memory[key]
        return result

    return found


@dataclass(frozen=True, eq=False)
class EstimatedCollector:
    """The paper's rule with a threshold ``(1 + rho_max) / 2`` for each class, from its own bound.

    Above it the bound of class y alone, ``sup P(noisy = y | Y ≠ y, x)``, makes y the Bayes label.
    """

    bounds: FloatArray
    name: str = ESTIMATED
    out_of_sample: bool = True

    def __call__(self, probs: Probs, threshold: float) -> tuple[IntArray, IntArray]:
        """Return positions and Bayes labels; the one threshold is not used."""
        likeliest = probs.argmax(axis=1)
        positions = np.flatnonzero(probs.max(axis=1) > (1.0 + self.bounds[likeliest]) / 2.0)
        return positions, likeliest[positions]


def noise_bounds(counted: Counted) -> FloatArray:
    """Return for each label an upper limit of how often a class that is not its own is given it.

    The largest over classes of the upper ends of 95 % intervals (Clopper and Pearson), as if all
    classes had been counted equally often; how much the rate differs within a class is not known.
    """
    n = counted.n / CLASSES
    flips = np.where(np.eye(CLASSES, dtype=bool), 0.0, n * counted.T)
    return np.asarray(beta.ppf(0.975, flips + 1.0, n - flips).max(axis=0))


@dataclass(frozen=True, eq=False)
class Trials:
    """The stages of one development cell that variants share, each trained once."""

    dev: Development
    recipe: Recipe
    memory: dict[Any, Any] = field(default_factory=dict)

    @property
    def job(self) -> Job:
        """Return the fit."""
        return self.dev.job

    @once
    def posterior(self, factor: float = 1.0) -> Posterior:
        """Return cross-fitted noisy posteriors after a warm-up of the usual length or another."""
        schedule = scaled(self.recipe.warm_up, factor)
        name = f"warm-up-{schedule.epochs}"
        return self.job.bench.record(
            f"{name}/posterior",
            Posterior,
            lambda: cross_fitted_posterior(self.job, name, schedule, self.recipe.folds),
        )

    def surest(self, posterior: Posterior, share: float = SUREST) -> Counted:
        """Return T counted where the posterior is surest."""
        index = doubted_examples(self.job)
        probs, data = posterior.probs[index], self.job.data
        return surest_transition(
            probs.argmax(axis=1),
            probs.max(axis=1),
            data.labels[index],
            data.n_classes,
            data.weights[index],
            share=share,
        )

    def em_from_surest(self, posterior: Posterior) -> FloatArray:
        """Return T counted where the posterior is surest, after steps of EM."""
        index, counted = doubted_examples(self.job), self.surest(posterior)
        f = make_unmix(counted)(posterior.probs[index].copy())
        return em_steps(f, self.job.data.labels[index], counted.T, FIRST_EM_STEPS)

    @once
    def evidence(self, base: str, number: int) -> Posterior:
        """Return what a round starts from: noisy posteriors, or the classifier before it."""
        if number == 1:
            return self.posterior()
        if base == "em":
            return self.out_of_sample(base, number - 1)
        previous = self.correct(base, number - 1).classifier
        return belief(self.job, f"{base}-{number}/belief", previous)

    @once
    def matrix(self, base: str, number: int) -> FloatArray:
        """Return the class-dependent matrix under T*(x) of a round."""
        evidence = self.evidence(base, number)
        if base == "confident":
            return counted_matrix(self.job, evidence)
        if base == "surest":
            return self.surest(evidence).T
        if number == 1:
            return self.em_from_surest(evidence)
        index, before = doubted_examples(self.job), self.matrix(base, number - 1)
        return em_steps(evidence.probs[index], self.job.data.labels[index], before, EM_STEPS)

    @once
    def transition(
        self, base: str, number: int, penalty: tuple[float, float] | None = None
    ) -> Transition:
        """Return T*(x) of a round, with another penalty if one is given."""
        recipe, stage = self.recipe, f"{base}-{number}/transition"
        if penalty is not None:
            recipe = replace(recipe, penalty=penalty)
            stage += "-{:g}-{:g}".format(*penalty)
        collected, matrix = self.collected(base, number), self.matrix(base, number)
        return learn_transition(self.job, recipe, stage, collected, matrix, None)

    @once
    def collected(self, base: str, number: int, bound: Bound = None) -> Collected:
        """Return what a round collects, at its usual threshold or another."""
        first, stage = number == 1, f"{base}-{number}/collect"
        collector = COLLECTORS[self.recipe.collector if first else "in-sample"]
        threshold = threshold_of(RHO_MAX["default"]) if first else self.recipe.sure
        if bound is not None:
            stage += f"-{bound}"
        if bound == ESTIMATED:
            collector = EstimatedCollector(noise_bounds(self.surest(self.posterior())))
        elif bound is not None:
            threshold = float(bound)
        return collect(self.job, stage, self.evidence(base, number), collector, threshold)

    @once
    def correct(
        self, base: str, number: int, start: int = 0, schedule: Schedule | None = None
    ) -> Corrected:
        """Return the classifier of a round, from one of several starts."""
        schedule = schedule or self.recipe.classifier
        stage = f"{base}-{number}/correct-{schedule.epochs}-{start}"
        return fit_corrected(self.job, stage, schedule, self.transition(base, number), None)

    def out_of_sample(self, base: str, number: int) -> Posterior:
        """Return what classifiers of a round make of examples whose labels they have not seen."""
        stage, transition = f"{base}-{number}/unseen", self.transition(base, number)
        # Rounds with EM rest on these, and are not to cost more than the others.
        schedule = scaled(self.recipe.classifier, 0.5 if base == "em" else 1.0)

        def judge(rest: Job, name: str) -> Probs:
            fitted = fit_corrected(rest, name, schedule, transition, None)
            return network_probs(rest, fitted.classifier)

        return self.job.bench.record(
            stage, Posterior, lambda: cross_fitted(self.job, stage, self.recipe.folds, judge)
        )


def em_steps(f: Probs, labels: IntArray, T: FloatArray, steps: int) -> FloatArray:
    """Return T after steps of EM, given classifiers of the right labels."""
    given = np.eye(len(T))[labels]
    for _ in range(steps):
        right, _ = right_label_posterior(f, T.T[labels].astype(np.float32))
        T = right.T.astype(np.float64) @ given
        T = np.maximum(T / np.maximum(T.sum(axis=1, keepdims=True), LEAST), LEAST)
        T /= T.sum(axis=1, keepdims=True)
    return T
