"""Matrices of class-dependent noise, and how labels are drawn from them."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bltm.core.matrix import check_transition
from bltm.noise import (
    ASYMMETRIC_MAPS,
    make_noise,
    map_matrix,
    pair_matrix,
    superclass_map,
    symmetric_matrix,
)
from bltm.noise.class_conditional import exact_counts
from bltm.noise.matrices import CIFAR100_SUPERCLASSES

REPEATABLE = settings(derandomize=True, deadline=None)

BALANCED = np.arange(50_000) % 10


def empirical(y: Any, y_noisy: Any) -> Any:
    counts = np.zeros((10, 10))
    np.add.at(counts, (y, y_noisy), 1)
    return counts / counts.sum(axis=1, keepdims=True)


@REPEATABLE
@given(n_classes=st.integers(2, 30), rate=st.floats(0, 1), inclusive=st.booleans())
def test_symmetric_matrix_is_stochastic_and_has_the_rate(
    n_classes: int, rate: float, inclusive: bool
):
    T = check_transition(symmetric_matrix(n_classes, rate, inclusive), atol=1e-12)
    wrong = rate * (n_classes - 1) / n_classes if inclusive else rate
    np.testing.assert_allclose(1 - np.diag(T), wrong, atol=1e-12)
    off = T[~np.eye(n_classes, dtype=bool)]
    np.testing.assert_allclose(off, wrong / (n_classes - 1), atol=1e-12)


@REPEATABLE
@given(n_classes=st.integers(2, 30), rate=st.floats(0, 0.4999))
def test_pair_matrix_moves_each_class_to_the_next(n_classes: int, rate: float):
    T = check_transition(pair_matrix(n_classes, rate), atol=1e-12)
    for c in range(n_classes):
        assert T[c, (c + 1) % n_classes] == rate
        assert T[c, c] == 1 - rate


@REPEATABLE
@given(
    data=st.data(),
    sizes=st.lists(st.integers(0, 200), min_size=3, max_size=3),
)
def test_exact_counts_keep_sums_and_miss_by_less_than_one(data: Any, sizes: list[int]):
    weights = data.draw(
        st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=3, max_size=3)
    )
    T = np.array([row if sum(row) else [1, 0, 0] for row in weights], dtype=float)
    T /= T.sum(axis=1, keepdims=True)
    counts = exact_counts(T, np.array(sizes))
    np.testing.assert_array_equal(counts.sum(axis=1), sizes)
    assert (np.abs(counts - T * np.array(sizes)[:, None]) < 1).all()
    assert (counts[T == 0] == 0).all()


@pytest.mark.parametrize(("name", "affected"), [("cifar10", 5), ("fashion-mnist", 4), ("mnist", 5)])
def test_global_rate_of_a_map_is_the_share_of_affected_classes(name: str, affected: int):
    noisy = make_noise(None, BALANCED, "asymmetric", 0.4, 0, mapping=name)
    assert (np.diag(noisy.T) < 1).sum() == affected
    assert noisy.meta["expected_rate"] == pytest.approx(0.4 * affected / 10)
    assert abs(noisy.meta["realised_rate"] - 0.04 * affected) < 0.01


def test_global_rate_is_weighted_by_the_class_frequencies():
    y = np.repeat([0, 2, 9], [600, 300, 100])
    noisy = make_noise(None, y, "asymmetric", 0.4, 0, n_classes=10, mapping="svhn")
    assert noisy.meta["expected_rate"] == pytest.approx(0.4 * 0.3)


def test_map_is_applied_to_clean_labels_not_in_place():
    rate = 0.4
    noisy = make_noise(None, BALANCED, "asymmetric", rate, 0, mapping="cifar10")
    found = empirical(BALANCED, noisy.y_noisy)
    assert np.abs(found - noisy.T).max() < 4 * np.sqrt(0.24 / 5000)
    assert noisy.T[3, 3] == pytest.approx(0.6)

    in_place = BALANCED.copy()
    rng = np.random.default_rng(0)
    for source, target in ASYMMETRIC_MAPS["cifar10"].targets.items():
        members = np.flatnonzero(in_place == source)
        in_place[members[rng.random(len(members)) < rate]] = target
    wrong = empirical(BALANCED, in_place)
    assert wrong[3, 3] == pytest.approx(0.756, abs=0.03)
    assert np.abs(wrong - noisy.T).max() > 4 * np.sqrt(0.24 / 5000)


def test_maps_are_the_published_ones():
    assert ASYMMETRIC_MAPS["cifar10"].targets == {9: 1, 2: 0, 3: 5, 5: 3, 4: 7}
    assert ASYMMETRIC_MAPS["fashion-mnist"].targets == {0: 6, 2: 4, 5: 7, 7: 5}
    assert ASYMMETRIC_MAPS["mnist"].targets == {7: 1, 2: 7, 5: 6, 6: 5, 3: 8}
    assert ASYMMETRIC_MAPS["svhn"].targets == ASYMMETRIC_MAPS["mnist"].targets


def test_cifar100_map_goes_round_within_each_true_superclass():
    assert set(Counter(CIFAR100_SUPERCLASSES).values()) == {5}
    targets = ASYMMETRIC_MAPS["cifar100"].targets
    assert sorted(targets) == sorted(targets.values()) == list(range(100))
    for source, target in targets.items():
        assert CIFAR100_SUPERCLASSES[source] == CIFAR100_SUPERCLASSES[target]
        here = source
        for _ in range(5):
            here = targets[here]
        assert here == source
    # beaver, dolphin, otter, seal, whale: not consecutive numbers
    assert [targets[c] for c in (4, 30, 55, 72, 95)] == [30, 55, 72, 95, 4]


def test_class_alone_in_its_superclass_keeps_its_label():
    assert superclass_map([0, 0, 1]) == {0: 1, 1: 0}


def test_exact_draws_have_exact_counts_and_random_places():
    y = np.repeat(np.arange(4), 250)
    first = make_noise(None, y, "symmetric", 0.3, 0, draws="exact")
    second = make_noise(None, y, "symmetric", 0.3, 1, draws="exact")
    for noisy in (first, second):
        for c in range(4):
            counts = np.bincount(noisy.y_noisy[y == c], minlength=4)
            np.testing.assert_array_equal(counts, np.where(np.arange(4) == c, 175, 25))
    assert (first.y_noisy != second.y_noisy).any()
    assert first.meta["realised_rate"] == 0.3


def test_exact_draws_hit_each_example_equally_often():
    y = np.array([0] * 5 + [1] * 5)
    hits = sum(
        make_noise(None, y, "symmetric", 0.4, seed, draws="exact").y_noisy != y
        for seed in range(500)
    )
    assert (np.abs(hits - 200) < 4 * np.sqrt(500 * 0.24)).all()


def test_matrix_with_rounding_in_its_sums_is_renormalised():
    T = [[0.3333333, 0.6666666], [0.0, 1.0]]
    noisy = make_noise(None, [0, 1], "matrix", None, 0, T=T)
    np.testing.assert_allclose(noisy.row.sum(axis=1), 1, rtol=0, atol=1e-15)


def test_map_matrix_leaves_other_classes_alone():
    T = map_matrix(4, 0.3, {1: 2})
    np.testing.assert_array_equal(T[[0, 2, 3]], np.eye(4)[[0, 2, 3]])
