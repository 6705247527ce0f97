"""Counted matrices: confident learning against a loop, orientation, classes without examples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bltm.core.matrix import check_transition
from bltm.transition import class_transition, confident_joint, counted_transition


def slow_joint(
    probs: NDArray[np.float64], labels: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    n, n_classes = probs.shape
    thresholds = []
    for j in range(n_classes):
        mine = [k for k in range(n) if labels[k] == j]
        mass = sum(weights[k] for k in mine)
        thresholds.append(sum(weights[k] * probs[k, j] for k in mine) / mass if mass else 1.0)
    counts = np.zeros((n_classes, n_classes))
    for k in range(n):
        qualified = [j for j in range(n_classes) if probs[k, j] >= thresholds[j] - 1e-9]
        if qualified:
            counts[labels[k], max(qualified, key=lambda j: (probs[k, j], -j))] += weights[k]
    joint = np.zeros((n_classes, n_classes))
    for i in range(n_classes):
        mass = sum(weights[k] for k in range(n) if labels[k] == i)
        if counts[i].sum() == 0:
            counts[i, i] = 1
        joint[i] = counts[i] / counts[i].sum() * mass
    return joint / weights.sum()


def random_case(
    seed: int, n: int, n_classes: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(n_classes, 0.5), n)
    return probs, rng.integers(n_classes, size=n), rng.uniform(0.1, 2.0, n)


cases = st.builds(random_case, st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 5))


@settings(max_examples=60, deadline=None)
@given(cases)
def test_joint_equals_the_loop_and_keeps_label_frequencies(
    case: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]],
) -> None:
    probs, labels, weights = case
    joint = confident_joint(probs, labels, weights)
    np.testing.assert_allclose(joint, slow_joint(probs, labels, weights), atol=1e-12)
    frequencies = np.bincount(labels, weights, probs.shape[1]) / weights.sum()
    np.testing.assert_allclose(joint.sum(), 1.0)
    np.testing.assert_allclose(joint.sum(axis=1), frequencies)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_hot_true_probabilities_reproduce_the_contingency_table(dtype: type) -> None:
    rng = np.random.default_rng(0)
    right, given_labels = rng.integers(4, size=200), rng.integers(3, size=200)
    table = np.zeros((4, 4))
    for i, j in zip(given_labels, right, strict=True):
        table[i, j] += 1
    joint = confident_joint(np.eye(4, dtype=dtype)[right], given_labels)
    np.testing.assert_allclose(joint, table / 200, atol=1e-15)


def test_weights_count_like_repetitions() -> None:
    probs, labels, _ = random_case(5, 30, 3)
    repeats = np.random.default_rng(1).integers(0, 4, 30)
    repeats[:3] = 1
    np.testing.assert_allclose(
        class_transition(probs, labels, repeats.astype(float)),
        class_transition(np.repeat(probs, repeats, axis=0), np.repeat(labels, repeats)),
    )


def test_transition_is_oriented_from_right_label_to_given_label() -> None:
    # Of the examples that are 0, a third were given label 1; all that are 1 kept theirs.
    right = np.array([0] * 300 + [1] * 300)
    given_labels = np.array([0] * 200 + [1] * 100 + [1] * 300)
    T = class_transition(np.eye(2)[right], given_labels, prior_strength=1e-9)
    np.testing.assert_allclose(T, [[2 / 3, 1 / 3], [0, 1]], atol=1e-6)
    counted = counted_transition(right, given_labels, 2, prior_strength=1e-9)
    np.testing.assert_allclose(counted, T, atol=1e-6)


def test_class_transition_recovers_a_known_matrix() -> None:
    rng = np.random.default_rng(2)
    T = np.array([[0.7, 0.2, 0.1], [0.05, 0.9, 0.05], [0.1, 0.3, 0.6]])
    right = rng.integers(3, size=30_000)
    labels = (T[right].cumsum(axis=1) < rng.random((30_000, 1))).sum(axis=1)
    sharp = 0.96 * np.eye(3)[right] + 0.04 * rng.dirichlet(np.ones(3), len(right))
    np.testing.assert_allclose(class_transition(sharp @ T, labels), T, atol=0.02)


@settings(max_examples=40, deadline=None)
@given(cases, st.sampled_from([0.1, 10.0, 1000.0]))
def test_transitions_are_row_stochastic_and_strictly_positive(
    case: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]], strength: float
) -> None:
    probs, labels, weights = case
    n_classes = probs.shape[1]
    for T in (
        class_transition(probs, labels, weights, strength),
        counted_transition(labels[::-1], labels, n_classes, weights, strength),
    ):
        assert T.dtype == np.float64
        check_transition(T)
        assert (T > 0).all()


def test_a_class_nobody_was_given_falls_back_to_the_pooled_row() -> None:
    right = np.array([0] * 100 + [1] * 100)
    given_labels = np.array([0] * 80 + [1] * 20 + [1] * 80 + [0] * 20)
    T = counted_transition(right, given_labels, 3)
    np.testing.assert_allclose(T[2], [0.1, 0.1, 0.8], atol=1e-12)
    by_probs = class_transition(np.eye(3)[right], given_labels)
    np.testing.assert_allclose(by_probs, T, atol=1e-12)


def test_two_examples_hardly_move_a_row_and_many_decide_it() -> None:
    clean = np.repeat(np.arange(2), 500)
    for count, low, high in ((2, 0.7, 0.95), (5000, 0.0, 0.01)):
        bayes = np.concatenate([clean, np.full(count, 2)])
        noisy = np.concatenate([clean, np.zeros(count, dtype=np.int64)])
        assert low < counted_transition(bayes, noisy, 3)[2, 2] < high


def test_without_examples_the_prior_leans_on_the_diagonal() -> None:
    empty = np.zeros(0, dtype=np.int64)
    T = counted_transition(empty, empty, 4)
    check_transition(T)
    assert (T.diagonal() >= 0.5).all()
