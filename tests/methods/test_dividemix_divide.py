"""The first half of DivideMix: losses, their mixture, and the batches of an epoch."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from bltm.methods.dividemix.divide import LossMixture, clean_probabilities, deal, losses_of
from engine.helpers import tiny_job, weights_of


def two_kinds(n_clean: int = 3000, n_noisy: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Losses of clean and of noisy labels, and which are which."""
    rng = np.random.default_rng(0)
    losses = np.concatenate([rng.normal(0.1, 0.03, n_clean), rng.normal(0.8, 0.08, n_noisy)])
    return losses, np.arange(n_clean + n_noisy) < n_clean


@pytest.mark.parametrize("seed", range(5))
def test_the_mixture_tells_two_kinds_of_losses_apart_whatever_the_seed(seed: int) -> None:
    losses, clean = two_kinds()
    w = LossMixture.fit(losses, seed).clean_probability(losses)
    assert ((w > 0.5) == clean).mean() >= 0.999


def test_the_scale_of_losses_does_not_matter() -> None:
    losses, _ = two_kinds()
    w = LossMixture.fit(losses, 0).clean_probability(losses)
    other = 7.0 * losses + 3.0
    np.testing.assert_allclose(
        LossMixture.fit(other, 0).clean_probability(other), w, rtol=0, atol=1e-6
    )


def test_losses_beyond_those_of_training_count_as_the_outermost() -> None:
    losses, _ = two_kinds()
    mixture = LossMixture.fit(losses, 0)
    inner = mixture.clean_probability(np.array([losses.min(), losses.max()]))
    outer = mixture.clean_probability(np.array([-100.0, 100.0]))
    np.testing.assert_array_equal(outer, inner)


@pytest.mark.parametrize(
    "losses", [[0.3] * 20, [0.3], [0.1, np.nan, 0.2], [0.1, np.inf, 0.2]], ids=str
)
def test_where_losses_tell_nothing_every_label_is_clean(losses: list[float]) -> None:
    values = np.array(losses)
    assert (LossMixture.fit(values, 0).clean_probability(values) == 1.0).all()


@pytest.mark.parametrize("losses", [[0.1, 2.0], [0.1] * 9 + [3.0], [0.0, 0.0, 1e-12]], ids=str)
def test_few_or_equal_losses_are_divided_without_a_warning(losses: list[float]) -> None:
    values = np.array(losses)
    w = LossMixture.fit(values, 0).clean_probability(values)
    assert w.dtype == np.float32
    assert w[0] > 0.5
    assert w[-1] < 0.5


def network(n_outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, n_outputs)
    )


def test_losses_are_those_of_evaluation_mode_and_leave_the_network_as_it_was() -> None:
    job = tiny_job(n=41, net=network)
    classifier = job.new_classifier("some").train()
    before = weights_of(classifier)
    index = np.array([40, 3, 7])
    found = losses_of(job, classifier, index)
    assert weights_of(classifier) == before
    assert classifier.training
    frozen = copy.deepcopy(classifier).eval()
    for row, loss in zip(index, found, strict=True):
        x = job.data.examples.values[row : row + 1]  # type: ignore[attr-defined]
        log_probs = functional.log_softmax(frozen(x), dim=1)[0]
        assert loss == pytest.approx(-float(log_probs[job.data.labels[row]].detach()), abs=1e-5)


def test_the_mixture_is_fitted_to_training_examples_and_asked_about_all() -> None:
    job = tiny_job(n=60)
    classifier = job.new_classifier("some")
    everyone = np.arange(60)
    losses = losses_of(job, classifier, everyone)
    expected = LossMixture.fit(losses[job.split.train], 5).clean_probability(losses)
    w = clean_probabilities(job, classifier, everyone, 0.5, 5)
    assert len(job.split.train) < 60
    np.testing.assert_array_equal(w, expected)
    part = clean_probabilities(job, classifier, job.split.train, 0.5, 5)
    np.testing.assert_allclose(part, w[job.split.train], atol=1e-5)


def test_trusted_labels_are_clean() -> None:
    trusted = np.arange(60) % 2 == 0
    job = tiny_job(n=60, trusted=trusted)
    classifier = job.new_classifier("some")
    w = clean_probabilities(job, classifier, np.arange(60), 0.5, 0)
    assert (w[trusted] == 1.0).all()
    assert (w[~trusted] < 1.0).any()


def test_where_no_label_would_be_clean_all_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: LossMixture, losses: np.ndarray) -> np.ndarray:
        return np.full(len(losses), 0.5, dtype=np.float32)

    monkeypatch.setattr(LossMixture, "clean_probability", none)
    job = tiny_job(n=60)
    w = clean_probabilities(job, job.new_classifier("some"), job.split.train, 0.5, 0)
    assert (w == 1.0).all()


@given(st.integers(1, 40), st.integers(0, 40), st.integers(1, 12))
def test_an_epoch_goes_once_over_all_examples(n_clean: int, n_noisy: int, steps: int) -> None:
    clean, noisy = np.arange(n_clean), np.arange(n_clean, n_clean + n_noisy)
    batches = deal(clean, noisy, steps, n_noisy, np.random.default_rng(0))
    assert len(batches) == steps
    everything = torch.cat(batches).tolist()
    if n_clean >= steps:
        assert sorted(everything) == list(range(n_clean + n_noisy))
    sizes = [len(batch) for batch in batches]
    assert max(sizes) - min(sizes) <= 2
    for batch in batches:
        # Each has a labelled example, and those come first.
        assert batch[0] < n_clean
        labelled = batch < n_clean
        assert (labelled.int().diff() <= 0).all()


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 4))
def test_unlabelled_examples_come_again_in_turn_where_there_are_too_few(
    n_clean: int, n_noisy: int, steps: int
) -> None:
    clean, noisy = np.arange(n_clean), np.arange(n_clean, n_clean + n_noisy)
    batches = deal(clean, noisy, steps, n_clean, np.random.default_rng(0))
    everything = torch.cat(batches)
    counts = np.bincount(everything[everything >= n_clean] - n_clean, minlength=n_noisy)
    assert counts.sum() == n_clean
    assert np.ptp(counts) <= 1


def test_the_order_is_drawn_anew_by_each_stream_and_the_same_by_the_same() -> None:
    def order(seed: int) -> list[int]:
        batches = deal(np.arange(30), np.arange(30, 60), 3, 30, np.random.default_rng(seed))
        return torch.cat(batches).tolist()

    assert order(0) == order(0) != order(1)
