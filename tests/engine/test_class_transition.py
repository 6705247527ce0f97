"""T for all x: given, read off at anchors, or counted, and from which examples."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bltm.core.errors import InputError
from bltm.core.records import Posterior
from bltm.engine.class_transition import (
    anchor_matrix,
    counted_matrix,
    find_class_transition,
    plan_class_transition,
    surest_matrix,
)
from bltm.engine.schedule import Schedule
from bltm.transition import anchor_transition, class_transition

from .helpers import MemoryStore, tiny_job

SHORT = Schedule(2, 0.01, "adam", batch_size=16, select="accuracy")
GIVEN = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.0, 0.0, 1.0]]


def posterior(n: int = 60, n_classes: int = 3) -> Posterior:
    probs = np.random.default_rng(0).dirichlet(np.ones(n_classes), n)
    return Posterior(probs.astype(np.float32), False, "drawn")


@pytest.mark.parametrize("given", [GIVEN, np.array(GIVEN), tuple(map(tuple, GIVEN))])
def test_a_matrix_that_is_known_is_taken_and_nothing_is_trained(given: object) -> None:
    job = tiny_job()
    estimate = find_class_transition(job, given, SHORT)
    torch.testing.assert_close(estimate.transition.matrix, torch.tensor(GIVEN))
    assert estimate.findings() == {"transition_source": "given"}
    assert estimate.network is None
    assert estimate.posterior is None
    assert job.bench.outcomes == []
    assert plan_class_transition(50, given, SHORT) == []


def test_a_network_to_start_from_is_trained_where_it_is_needed() -> None:
    job = tiny_job()
    estimate = find_class_transition(job, GIVEN, SHORT, need_network=True)
    assert estimate.network is not None
    assert [outcome.stage for outcome in job.bench.outcomes] == ["estimate"]
    assert [s.stage for s in plan_class_transition(50, GIVEN, SHORT, True)] == ["estimate"]


@pytest.mark.parametrize("name", ["anchor", "counted"])
def test_estimates_rest_on_the_posteriors_of_the_training_examples(name: str) -> None:
    job = tiny_job()
    estimate = find_class_transition(job, name, SHORT)
    assert estimate.posterior is not None
    index = job.split.train
    probs = estimate.posterior.probs[index]
    expected = (
        anchor_transition(probs)
        if name == "anchor"
        else class_transition(probs, job.data.labels[index])
    )
    np.testing.assert_allclose(estimate.transition.matrix, expected, atol=1e-6)
    assert estimate.findings() == {"transition_source": name}
    assert [s.stage for s in plan_class_transition(50, name, SHORT)] == ["estimate"]
    assert not any(p.requires_grad for p in estimate.transition.parameters())


@pytest.mark.parametrize("matrix", [anchor_matrix, counted_matrix])
def test_trusted_and_held_out_examples_say_nothing_of_t(matrix: object) -> None:
    trusted = np.arange(60) % 3 == 0
    job = tiny_job(trusted=trusted)
    believed = posterior()
    before = matrix(job, believed)  # type: ignore[operator]
    probs = believed.probs.copy()
    probs[trusted] = np.eye(3)[0]
    probs[job.split.validation] = np.eye(3)[1]
    after = matrix(job, replace(believed, probs=probs))  # type: ignore[operator]
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("matrix", [anchor_matrix, counted_matrix])
def test_where_all_labels_are_trusted_they_are_right(matrix: object) -> None:
    job = tiny_job(trusted=np.ones(60, dtype=bool))
    T = matrix(job, posterior())  # type: ignore[operator]
    assert (T.diagonal() > 0.95).all()


@pytest.mark.parametrize("checked", [False, True])
def test_only_checked_labels_can_say_that_most_labels_of_a_class_are_wrong(
    checked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bltm.engine.class_transition.FEWEST_COUNTED", 0)
    trusted = np.arange(60) < 3 * checked
    job = tiny_job(trusted=trusted)
    job = replace(job, data=replace(job.data, labels=np.zeros(60, dtype=np.int64)))
    sure = np.full((60, 3), 0.01, dtype=np.float32)
    sure[np.arange(60), np.arange(60) % 3] = 0.98
    T = surest_matrix(job, Posterior(sure, True, "sure"))
    assert T[0, 0] > 0.8
    assert (T[1, 1] < T[1, 0]) == (T[2, 2] < T[2, 0]) == checked


def test_a_class_of_few_counted_examples_is_not_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = tiny_job()
    labels = np.where(np.arange(60) % 3 == 1, np.arange(60) % 2, np.arange(60) % 3)
    job = replace(job, data=replace(job.data, labels=labels))
    sure = np.full((60, 3), 0.01, dtype=np.float32)
    sure[np.arange(60), np.arange(60) % 3] = 0.98
    spread = []
    for least in (0, 15):
        monkeypatch.setattr("bltm.engine.class_transition.FEWEST_COUNTED", least)
        spread.append(np.ptp(surest_matrix(job, Posterior(sure, True, "sure")).diagonal()))
    assert spread[0] > 0.2
    assert spread[1] < 0.05


def test_the_anchor_row_of_an_absent_class_is_the_identitys() -> None:
    """An anchor of another class would make the two indistinguishable."""
    job = tiny_job()
    job = replace(job, data=replace(job.data, classes=np.arange(4)))
    T = anchor_matrix(job, posterior(n_classes=4))
    assert T[3].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert (T[:3] > 0).all()


def test_posteriors_are_left_as_they_are() -> None:
    believed = posterior()
    before = believed.probs.copy()
    anchor_matrix(tiny_job(), believed)
    np.testing.assert_array_equal(believed.probs, before)


def test_an_estimate_that_is_finished_is_not_made_again() -> None:
    store = MemoryStore()
    first = find_class_transition(tiny_job(store=store), "anchor", SHORT)
    saved = list(store.saved)
    again = find_class_transition(tiny_job(store=store), "anchor", SHORT)
    assert store.saved == saved
    assert torch.equal(first.transition.matrix, again.transition.matrix)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("anchors", "transition: unknown: 'anchors'. Use one of anchor, counted, or give a matrix"),
        ([[0.5, 0.5]], "needs shape"),
        ([[0.9, 0.3], [0.1, 0.7]], "transpose the matrix"),
        (np.full((4, 2, 2), 0.5), r"needs shape \(C, C\), got \(4, 2, 2\)"),
        (np.eye(2), r"has shape \(2, 2\) but there are 3 classes"),
    ],
)
def test_what_is_no_transition_is_refused(choice: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_class_transition(tiny_job(), choice, SHORT)  # type: ignore[arg-type]
