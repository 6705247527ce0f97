"""Cross-fitted posteriors never judge an example by a model that saw its label."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from torch import nn

from bltm.core.errors import InputError
from bltm.core.records import NoisyData, Posterior, Split
from bltm.data.splits import merge_duplicates, split_noisy
from bltm.engine.job import Job
from bltm.engine.posteriors import (
    averaged_posterior,
    calibrated,
    cross_fitted_posterior,
    in_sample_posterior,
    mean_over_epochs,
    model_posterior,
    network_probs,
)
from bltm.engine.schedule import Schedule
from bltm.engine.stage import Stage
from bltm.engine.supervised import fit_cross_entropy
from bltm.engine.workbench import Workbench

from .helpers import FABRIC, blobs, noisy_data, tiny_job

N, C = 120, 4
LONG = Schedule(1, 5.0, momentum=0.0, batch_size=8)


class OnePerInput(nn.Module):
    """Learns the label of each input by heart, and nothing about any other input."""

    def __init__(self, n_outputs: int) -> None:
        super().__init__()
        self.table = nn.Embedding(N, n_outputs)
        nn.init.zeros_(self.table.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.table(x[:, 0].long())  # type: ignore[no-any-return]


class ByHeart(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The same as a scikit-learn classifier."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "ByHeart":
        self.classes_ = np.unique(y)
        self.seen_ = {row.tobytes() for row in X}
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        known = np.array([row.tobytes() in self.seen_ for row in X])
        uniform = np.full((len(X), len(self.classes_)), 1 / len(self.classes_))
        return np.where(known[:, None], np.eye(len(self.classes_))[0], uniform)


def random_labels(copies: bool) -> NoisyData:
    """Inputs are numbers, labels pure chance; with copies, each input occurs twice or thrice."""
    rng = np.random.default_rng(0)
    number = rng.integers(N // 3, size=N) if copies else np.arange(N)
    labels = rng.integers(C, size=N)
    data = noisy_data(number[:, None].astype(np.float32), labels, C)
    weights = merge_duplicates(data.labels, data.weights, data.group)
    return noisy_data(number[:, None].astype(np.float32), labels, C, weights)


def job_of(data: NoisyData, net: Any = OnePerInput) -> Job:
    split = split_noisy(data, 0.1, 0)
    return Job(data, split, Workbench(fabric=FABRIC, seed=0), net)


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("estimate", [cross_fitted_posterior, averaged_posterior])
def test_cross_fitted_networks_know_nothing_of_the_labels_they_judge(
    estimate: Callable[..., Posterior], copies: bool
) -> None:
    job = job_of(random_labels(copies))
    posterior = estimate(job, "warm_up", LONG, 3)
    assert posterior.out_of_sample
    np.testing.assert_allclose(posterior.probs, 1 / C, atol=1e-6)


def test_in_sample_posteriors_know_them_and_say_so() -> None:
    job = job_of(random_labels(copies=False))
    posterior = in_sample_posterior(job, fit_cross_entropy(job, "warm_up", LONG))
    assert not posterior.out_of_sample
    own = posterior.probs[np.arange(N), job.data.labels]
    assert own[job.split.train].min() > 0.3
    np.testing.assert_allclose(own[job.split.validation], 1 / C, atol=1e-6)


@pytest.mark.parametrize("copies", [False, True])
def test_a_cross_fitted_model_knows_nothing_of_the_labels_it_judges(copies: bool) -> None:
    job = job_of(random_labels(copies))
    posterior = model_posterior(job, ByHeart(), 3)
    assert posterior.out_of_sample
    assert "ByHeart" in posterior.source
    np.testing.assert_allclose(posterior.probs, 1 / C, atol=1e-6)
    in_sample = model_posterior(job, ByHeart(), None)
    assert not in_sample.out_of_sample
    assert (in_sample.probs[job.split.train, 0] == 1.0).all()


def test_the_mean_over_epochs_is_that_of_the_network_after_each_of_them() -> None:
    job = tiny_job(90)
    after_each = []

    def watch(stage: Stage, epoch: int) -> None:
        after_each.append(network_probs(job, stage.modules["classifier"]))

    job.bench.watch = watch
    mean = mean_over_epochs(job, "warm_up", Schedule(4, 0.1, batch_size=16))
    assert len(after_each) == 4
    unseen = job.split.validation
    np.testing.assert_allclose(mean[unseen], np.mean(after_each, axis=0)[unseen], atol=1e-6)
    assert (mean[job.split.train] == 0.0).all()


@pytest.mark.parametrize("power", [0.5, 2.0])
def test_a_calibrated_posterior_has_the_temperature_of_the_labels(power: float) -> None:
    rng = np.random.default_rng(0)
    true = rng.dirichlet(np.ones(3), size=4000)
    labels = (rng.random((4000, 1)) > true.cumsum(axis=1)).sum(axis=1)
    job = job_of(noisy_data(np.arange(4000)[:, None].astype(np.float32), labels, 3))
    said = true**power / (true**power).sum(axis=1, keepdims=True)
    found = calibrated(job, Posterior(said.astype(np.float32), True, "a test"))
    assert (found.out_of_sample, found.source) == (True, "a test")
    assert np.abs(found.probs - true).mean() < 0.15 * np.abs(said - true).mean()


def test_labels_that_are_trusted_have_no_say_in_the_calibration() -> None:
    job = tiny_job(90, trusted=np.arange(90) < 45)
    probs = np.random.default_rng(0).dirichlet(np.ones(3), size=90).astype(np.float32)
    posterior = Posterior(probs, True, "a test")
    labels = job.data.labels.copy()
    labels[:45] = (labels[:45] + 1) % 3
    other = replace(job, data=replace(job.data, labels=labels))
    np.testing.assert_array_equal(
        calibrated(job, posterior).probs, calibrated(other, posterior).probs
    )
    all_trusted = tiny_job(90, trusted=np.ones(90, dtype=bool))
    assert calibrated(all_trusted, posterior) is posterior


def test_the_nearest_neighbour_agrees_with_random_labels_by_chance_only() -> None:
    data = random_labels(copies=False)
    job = job_of(data)
    train = job.split.train
    cross_fitted, in_sample = (
        model_posterior(job, KNeighborsClassifier(1), k).probs.argmax(axis=1) == data.labels
        for k in (3, None)
    )
    assert cross_fitted[train].mean() < 0.45
    assert in_sample[train].all()


def test_every_example_gets_a_distribution_also_those_outside_the_training_split() -> None:
    job = tiny_job(90)
    for posterior in (
        cross_fitted_posterior(job, "warm_up", Schedule(2, 0.1, batch_size=16), 3),
        averaged_posterior(job, "averaged", Schedule(2, 0.1, batch_size=16), 3),
        model_posterior(job, LogisticRegression(), 3),
        model_posterior(job, LogisticRegression(), None),
    ):
        assert posterior.probs.shape == (90, 3)
        assert posterior.probs.dtype == np.float32
        np.testing.assert_allclose(posterior.probs.sum(axis=1), 1.0, atol=1e-5)
        assert len(job.split.validation) > 0


def test_a_model_that_misses_a_class_gives_it_no_probability() -> None:
    x, labels = blobs(60)
    data = noisy_data(x, labels, 5)
    job = Job(data, Split(np.arange(60), np.arange(0)), Workbench(FABRIC, 0), "mlp")
    probs = model_posterior(job, LogisticRegression(), 3).probs
    assert probs.shape == (60, 5)
    assert (probs[:, 3:] == 0).all()


def test_weights_reach_the_model() -> None:
    x, labels = blobs(60)
    labels[:30] = 0
    weights = np.where(np.arange(60) < 30, 1e-3, 1.0)
    probs = []
    for given in (weights, np.ones(60)):
        data = noisy_data(x, labels, 3, given)
        job = Job(data, Split(np.arange(60), np.arange(0)), Workbench(FABRIC, 0), "mlp")
        probs.append(model_posterior(job, LogisticRegression(), None).probs[:, 0].mean())
    assert probs[0] < probs[1] - 0.1


def test_a_model_that_takes_no_weights_sees_copies() -> None:
    """Merged copies have a weight; a pipeline or a nearest-neighbour model takes none."""
    data = noisy_data(
        np.zeros((3, 1), dtype=np.float32), np.array([0, 1, 2]), 3, np.array([5, 2, 1.0])
    )
    job = Job(data, Split(np.arange(3), np.arange(0)), Workbench(FABRIC, 0), "mlp")
    probs = model_posterior(job, KNeighborsClassifier(8), None).probs
    np.testing.assert_allclose(probs, [[0.625, 0.25, 0.125]] * 3)
    data = noisy_data(np.zeros((2, 1), dtype=np.float32), np.array([0, 1]), 2, np.array([0.5, 1.0]))
    job = Job(data, Split(np.arange(2), np.arange(0)), Workbench(FABRIC, 0), "mlp")
    with pytest.raises(InputError, match="KNeighborsClassifier takes no sample_weight"):
        model_posterior(job, KNeighborsClassifier(1), None)


def test_a_model_without_probabilities_is_refused() -> None:
    from sklearn.svm import LinearSVC

    with pytest.raises(InputError, match="LinearSVC has no predict_proba"):
        model_posterior(tiny_job(), LinearSVC(), 3)


def test_the_users_model_is_left_unfitted() -> None:
    model = LogisticRegression()
    model_posterior(tiny_job(), model, 3)
    assert not hasattr(model, "classes_")


def test_a_copy_of_an_example_does_not_change_the_rounding_of_others() -> None:
    """Products of matrices round differently for another number of rows."""
    x, labels = blobs(60)
    nets, found = [], []
    for copies in (0, 7):
        data = noisy_data(
            np.concatenate([x, x[:copies]]),
            np.concatenate([labels, labels[:copies]]),
            3,
            np.concatenate([np.ones(60), np.zeros(copies)]),
        )
        job = Job(data, Split(np.arange(50), np.arange(50, 60)), Workbench(FABRIC, 0), "mlp")
        nets.append(job.new_classifier("net"))
        found.append(network_probs(job, nets[-1]))
    assert found[1].shape == (67, 3)
    np.testing.assert_array_equal(found[1][:60], found[0])
    np.testing.assert_allclose(found[1][60:], found[0][:7], atol=1e-6)
