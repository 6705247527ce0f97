"""Labels that the user knows to be right."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from bltm.core.errors import InputError
from bltm.core.records import Collected, Posterior
from bltm.engine.class_transition import counted_matrix, surest_matrix
from bltm.engine.job import Job
from bltm.engine.schedule import Schedule
from bltm.engine.transition_model import TransitionModel, column_of_given_label
from bltm.methods.bltm.collect import COLLECTORS, collect
from bltm.methods.bltm.learn_transition import learn_transition
from bltm.methods.bltm.presets import DEFAULT
from bltm.nets.transition import make_transition_network
from engine.helpers import blobs, tiny_job, weights_of

from .helpers import quick_bltm, sample


def test_trusted_examples_are_collected_with_their_own_label() -> None:
    trusted = np.arange(60) % 4 == 0
    job = tiny_job(trusted=trusted)
    wrong = (job.data.labels + 1) % 3
    posterior = Posterior(np.eye(3, dtype=np.float32)[wrong], True, "wrong on purpose")
    collected = collect(job, "collect", posterior, COLLECTORS["cross-fitted"], 0.65)
    bayes = dict(zip(collected.indices.tolist(), collected.bayes_labels.tolist(), strict=True))
    for index in job.split.train.tolist():
        expected = job.data.labels[index] if trusted[index] else wrong[index]
        assert bayes[index] == expected


def test_trusted_examples_are_collected_where_nothing_else_is() -> None:
    job = tiny_job(trusted=np.arange(60) == 5)
    unsure = Posterior(np.full((60, 3), 1 / 3, dtype=np.float32), True, "unsure")
    with pytest.warns(match="classes have fewer than"):
        collected = collect(job, "collect", unsure, COLLECTORS["cross-fitted"], 0.65)
    assert collected.indices.tolist() == [5]


def test_the_column_of_a_trusted_label_is_the_identitys() -> None:
    trusted = np.arange(60) % 2 == 0
    job = tiny_job(trusted=trusted)
    network = make_transition_network("mlp", (4,), 3)
    columns = column_of_given_label(job, TransitionModel(network)).exp()
    labels = torch.from_numpy(job.data.labels)
    assert torch.equal(columns[trusted], torch.eye(3)[labels[trusted]])
    with torch.no_grad():
        T = network.matrix(network.features(torch.from_numpy(blobs(60)[0])))
    expected = T[torch.arange(60), :, labels]
    torch.testing.assert_close(columns[~trusted], expected[~trusted])


def test_trusted_examples_do_not_teach_the_transition_network() -> None:
    """Their labels were checked, so they say nothing of how labels go wrong."""
    recipe = replace(DEFAULT, transition=Schedule(2, 0.01, batch_size=16))
    trusted = np.arange(60) % 3 == 0
    job = tiny_job(trusted=trusted)
    base = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    index = job.split.train
    networks = []
    for kept in (index, index[~trusted[index]]):
        collected = Collected(kept, job.data.labels[kept], 0.65, np.zeros(3, np.int64), "all")
        model = learn_transition(job, recipe, "transition", collected, base, None)
        networks.append(weights_of(model))
    assert networks[0] == networks[1]


@pytest.mark.parametrize("matrix", [counted_matrix, surest_matrix])
def test_trusted_examples_are_not_counted_in_the_class_matrix(
    matrix: Callable[[Job, Posterior], np.ndarray],
) -> None:
    trusted = np.arange(60) % 3 == 0
    job = tiny_job(trusted=trusted)
    probs = np.random.default_rng(0).dirichlet(np.ones(3), 60).astype(np.float32)
    base = matrix(job, Posterior(probs, True, ""))
    probs[trusted] = 1 / 3
    np.testing.assert_array_equal(matrix(job, Posterior(probs, True, "")), base)


def test_trusting_right_labels_helps_and_every_trusted_label_is_learned() -> None:
    """Over data sets and models: a single one gains anything between a quarter and a half."""
    gains, learned = [], []
    for seed in range(4):
        data = sample(200, seed)
        third = np.flatnonzero(data.y_bayes == 2)
        noisy = data.y_noisy.copy()
        noisy[third] = np.where(np.arange(len(third)) % 5 < 3, 0, 2)  # most of its labels are wrong
        trusted = np.arange(200) % 3 == 0
        checked = np.where(trusted, data.y_bayes, noisy)
        plain = quick_bltm(epochs=10, random_state=seed).fit(data.x, noisy)
        helped = quick_bltm(epochs=10, random_state=seed).fit(data.x, checked, trusted=trusted)
        before, after = ((model.predict(data.x) == data.y_bayes) for model in (plain, helped))
        gains.append(after[~trusted].mean() - before[~trusted].mean())
        learned.append(after[trusted].mean())
    assert np.mean(gains) > 0.1
    assert min(learned) > 0.9


def test_all_labels_may_be_trusted() -> None:
    data = sample()
    model = quick_bltm(epochs=8).fit(data.x, data.y_bayes, trusted=np.ones(120, dtype=bool))
    assert (model.predict(data.x) == data.y_bayes).mean() > 0.8
    assert model.findings_["noise_rate"] == pytest.approx(0.0, abs=1e-6)
    T = np.asarray(model.predict_transition(data.x))
    assert np.isfinite(T).all()
    assert (T.argmax(axis=2) == np.arange(3)).all()


@pytest.mark.parametrize("mask", [np.ones(5, dtype=bool), np.ones(120), ["yes"] * 120])
def test_a_mask_that_is_none_is_refused(mask: object) -> None:
    data = sample()
    with pytest.raises(InputError, match="trusted: needs a boolean for each of 120 examples"):
        quick_bltm().fit(data.x, data.y_noisy, trusted=mask)


def test_a_mask_goes_with_weights_of_zero() -> None:
    data = sample()
    weights, trusted = np.ones(120), np.zeros(120, dtype=bool)
    weights[:30], trusted[30:60] = 0.0, True
    model = quick_bltm().fit(data.x, data.y_noisy, sample_weight=weights, trusted=trusted)
    other = quick_bltm().fit(data.x[30:], data.y_noisy[30:], trusted=trusted[30:])
    np.testing.assert_array_equal(model.predict_proba(data.x), other.predict_proba(data.x))
