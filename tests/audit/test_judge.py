"""The posterior of the right label, against plain Python."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.audit.problems import instance_dependent

from bltm.audit.judge import judge
from bltm.audit.transitions import ClassTransition, MatrixTransition
from bltm.core.posterior import right_label_posterior
from bltm.core.tempering import Tempering


def by_hand(f: list[float], column: list[float]) -> list[float]:
    products = [a * b for a, b in zip(f, column, strict=True)]
    total = sum(products)
    return [p / total for p in products] if total > 0 else list(f)


def matrices(T: np.ndarray) -> MatrixTransition:
    return MatrixTransition(lambda index: T[index], len(T), T.shape[1])


def test_the_posterior_is_that_of_bayes_rule() -> None:
    problem = instance_dependent(200, 4, 0.3)
    found = judge(problem.labels, problem.f, matrices(problem.T), top_k=4)
    for n, label in enumerate(problem.labels):
        expected = by_hand(problem.f[n].tolist(), problem.T[n, :, label].tolist())
        assert found.p_right[n] == pytest.approx(expected[label], abs=1e-5)
        assert found.p_wrong[n] == pytest.approx(1 - expected[label], abs=1e-5)
        order = sorted(range(4), key=lambda i: -expected[i])
        assert expected[found.suggested[n]] == pytest.approx(expected[order[0]], abs=1e-6)
        ranked = [expected[i] for i in found.top[n]]
        assert ranked == pytest.approx(sorted(expected, reverse=True), abs=1e-5)
        assert found.top_probs[n] == pytest.approx(ranked, abs=1e-5)
    likelihood = (problem.f * problem.T[np.arange(200), :, problem.labels]).sum(axis=1)
    assert found.likelihood == pytest.approx(likelihood, abs=1e-5)


@given(st.integers(0, 10_000), st.integers(2, 40))
def test_rows_are_distributions_in_any_case(seed: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    f = rng.dirichlet(np.full(n_classes, 0.05), 20).astype(np.float32)
    T = rng.dirichlet(np.full(n_classes, 0.05), n_classes)
    labels = rng.integers(0, n_classes, 20)
    found = judge(labels, f, ClassTransition(T), top_k=n_classes)
    assert np.isfinite(found.p_right).all()
    assert found.top_probs.sum(axis=1) == pytest.approx(np.ones(20), abs=1e-4)
    assert (np.diff(found.top_probs, axis=1) <= 1e-6).all()
    assert (np.sort(found.top, axis=1) == np.arange(n_classes)).all()
    assert found.joint.sum() == pytest.approx(20, rel=1e-4)


def test_where_f_and_t_exclude_each_other_f_alone_tells() -> None:
    right, likelihood = right_label_posterior(
        np.array([[0.7, 0.3, 0.0]], np.float32), np.array([[0.0, 0.0, 1.0]], np.float32)
    )
    assert right[0] == pytest.approx([0.7, 0.3, 0.0])
    assert likelihood[0] == 0


def test_tiny_products_keep_their_proportion() -> None:
    f = np.array([[1.0, 1e-30]], np.float32)
    right, _ = right_label_posterior(f, np.array([[2e-38, 1e-8]], np.float32))
    expected = np.array([2e-38, 1e-38])
    assert right[0] == pytest.approx(expected / expected.sum(), rel=0.02)


@pytest.mark.parametrize("n_classes", [3, 50])
def test_the_given_label_is_suggested_when_no_other_is_more_probable(n_classes: int) -> None:
    f = np.full((n_classes, n_classes), 1.0 / n_classes)
    labels = np.arange(n_classes)
    found = judge(labels, f, ClassTransition(np.full_like(f, 1.0 / n_classes)))
    assert (found.suggested == labels).all()


def test_trusted_labels_are_right() -> None:
    problem = instance_dependent(50, 3, 0.4)
    trusted = problem.wrong
    found = judge(problem.labels, problem.f, matrices(problem.T), trusted=trusted)
    assert (found.p_wrong[trusted] == 0).all()
    assert (found.suggested[trusted] == problem.labels[trusted]).all()
    assert found.p_wrong[~trusted].max() > 0


def test_many_classes_are_judged_as_few_are() -> None:
    """Longer rows take another way to the largest entries and to the joint."""
    rng = np.random.default_rng(3)
    f = rng.dirichlet(np.full(80, 0.02), 300)
    T = 0.8 * np.eye(80) + 0.2 * rng.dirichlet(np.ones(80), 80)
    labels = rng.integers(0, 80, 300)
    found = judge(labels, f, ClassTransition(T), top_k=80)
    expected = f * T[:, labels].T
    expected /= expected.sum(axis=1, keepdims=True)
    ranked = -np.sort(-expected, axis=1)
    assert found.top_probs == pytest.approx(ranked, abs=1e-5)
    joint = np.zeros((80, 80))
    np.add.at(joint.T, labels, expected)
    assert found.joint == pytest.approx(joint, abs=1e-3)


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = instance_dependent(100, 3, 0.3)
    whole = judge(problem.labels, problem.f, matrices(problem.T), weights=np.arange(100.0))
    monkeypatch.setattr("bltm.core.blocks.BLOCK_ENTRIES", 21)
    parts = judge(problem.labels, problem.f, matrices(problem.T), weights=np.arange(100.0))
    for name in ("p_right", "suggested", "top", "top_probs", "likelihood"):
        assert (getattr(whole, name) == getattr(parts, name)).all()
    assert whole.joint == pytest.approx(parts.joint, rel=1e-4)


def test_the_likelihood_is_that_of_t_however_far_it_is_trusted() -> None:
    problem = instance_dependent(100, 3, 0.3)
    whole = judge(problem.labels, problem.f, matrices(problem.T), top_k=3)
    half = judge(
        problem.labels, problem.f, matrices(problem.T), tempering=Tempering(0.5, 0.7), top_k=3
    )
    assert (half.likelihood == whole.likelihood).all()
    for n, label in enumerate(problem.labels.tolist()):
        column = [
            entry**0.5 * (1.0 if i == label else math.exp(0.7))
            for i, entry in enumerate(problem.T[n, :, label].tolist())
        ]
        expected = by_hand(problem.f[n].tolist(), column)
        assert half.p_right[n] == pytest.approx(expected[label], abs=1e-5)
        ranked = [expected[i] for i in half.top[n]]
        assert half.top_probs[n] == pytest.approx(ranked, abs=1e-5)
    same = judge(problem.labels, problem.f, matrices(problem.T), tempering=Tempering(1.0), top_k=3)
    assert (same.p_right == whole.p_right).all()
    assert (same.top_probs == whole.top_probs).all()


def test_known_doubt_is_shared_by_f_among_the_other_labels() -> None:
    f = np.array([[0.6, 0.3, 0.1], [1.0, 0.0, 0.0]], np.float32)
    found = judge(np.array([0, 0]), f, None, suspicion=np.array([0.8, 0.5], np.float32), top_k=3)
    assert found.p_wrong == pytest.approx([0.8, 0.5])
    assert found.top[0].tolist() == [1, 0, 2] or found.top[0].tolist() == [1, 2, 0]
    assert found.top_probs[0] == pytest.approx([0.6, 0.2, 0.2], abs=1e-6)
    assert found.top_probs[1] == pytest.approx([0.5, 0.25, 0.25], abs=1e-6)
