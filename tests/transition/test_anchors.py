"""Anchor points: the published rule, and the mistakes that public copies of it make."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bltm.transition import anchor_indices, anchor_transition


def posteriors(seed: int, n: int = 200, n_classes: int = 4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(0.5 * np.ones(n_classes), n)


def slow_anchor(H: np.ndarray, i: int, percentile: float) -> int:
    """The published rule in plain words, on a copy."""
    values = sorted(H[:, i].tolist())
    place = percentile / 100 * (len(values) - 1)
    threshold = values[int(np.ceil(round(place, 9)))]
    below = [n for n in range(len(H)) if H[n, i] < threshold]
    return max(below, key=lambda n: H[n, i])


@given(st.integers(0, 1000), st.integers(2, 6))
def test_with_perfect_anchors_the_unfiltered_estimate_is_t(seed: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    T = rng.dirichlet(np.ones(n_classes), n_classes) + 2.0 * np.eye(n_classes)
    T /= T.sum(axis=1, keepdims=True)
    clean = np.concatenate([rng.dirichlet(np.ones(n_classes), 30), np.eye(n_classes)])
    H = clean[rng.permutation(len(clean))] @ T
    # A mixture of rows has no larger entry in a column than the largest row.
    np.testing.assert_allclose(anchor_transition(H, filtered=False), T, atol=1e-12)


@pytest.mark.parametrize("percentile", [90.0, 97.0, 98.5, 99.0])
def test_filtered_anchors_follow_the_published_rule(percentile: float) -> None:
    H = posteriors(0)
    expected = [slow_anchor(H, i, percentile) for i in range(4)]
    assert anchor_indices(H, [percentile])[:, 0].tolist() == expected
    T = anchor_transition(H, percentile=percentile)
    np.testing.assert_allclose(T, H[expected], atol=1e-12)


def test_filtering_one_class_does_not_change_the_rows_of_another() -> None:
    """Public code sets the outliers of a class to zero in a view of the posteriors."""
    H = posteriors(1)
    H[:, 0] = np.linspace(0.0, 0.6, len(H))
    H[:, 1:] *= (1 - H[:, :1]) / H[:, 1:].sum(axis=1, keepdims=True)
    before = H.copy()
    H.setflags(write=False)
    T = anchor_transition(H)
    np.testing.assert_array_equal(H, before)
    for i in range(4):
        np.testing.assert_allclose(T[i], H[slow_anchor(H, i, 97.0)])
    assert (T > 0).all()


def test_rows_are_normalised_and_columns_left_alone() -> None:
    """Division by row sums without keepdims scales columns instead."""
    H = np.array([[0.6, 0.2], [0.1, 0.3]])  # rows sum to 0.8 and 0.4
    T = anchor_transition(H, filtered=False)
    np.testing.assert_allclose(T, [[0.75, 0.25], [0.25, 0.75]])
    np.testing.assert_allclose(T.sum(axis=1), 1.0, atol=1e-12)


@given(st.integers(0, 1000), st.integers(1, 40), st.integers(2, 5), st.booleans())
def test_rows_sum_to_one_for_any_number_of_examples(
    seed: int, n: int, n_classes: int, filtered: bool
) -> None:
    H = posteriors(seed, n, n_classes).astype(np.float32)
    T = anchor_transition(H, filtered)
    assert T.dtype == np.float64
    assert (T >= 0).all()
    np.testing.assert_allclose(T.sum(axis=1), 1.0, atol=1e-12)


def test_where_nobody_is_below_the_percentile_the_largest_is_taken() -> None:
    H = np.array([[0.7, 0.3]] * 5)
    assert anchor_indices(H, [97.0]).tolist() == [[0], [0]]
    assert anchor_indices(H[:1], [97.0, 99.0]).tolist() == [[0, 0], [0, 0]]


def test_a_class_rarer_than_what_is_passed_over_keeps_its_own_anchor() -> None:
    """Or its row would be that of another class, and the two could not be told apart."""
    H = np.concatenate([np.full((99, 2), [0.9, 0.1]), [[0.2, 0.8]]])
    H[:99, 1] += np.linspace(0, 0.01, 99)
    np.testing.assert_allclose(anchor_transition(H)[1], [0.2, 0.8])


def test_a_hundred_classes_are_not_filtered() -> None:
    rng = np.random.default_rng(0)
    H = np.full((1000, 100), 0.3 / 99)
    H[np.arange(1000), np.arange(1000) % 100] = 0.7 + 0.01 * rng.random(1000)
    np.testing.assert_array_equal(anchor_transition(H), anchor_transition(H, filtered=False))


def test_anchors_of_several_percentiles_are_those_of_each() -> None:
    H = posteriors(2)
    together = anchor_indices(H, [90.0, 95.0, 97.5])
    assert together.shape == (4, 3)
    for number, percentile in enumerate((90.0, 95.0, 97.5)):
        np.testing.assert_array_equal(together[:, [number]], anchor_indices(H, [percentile]))
