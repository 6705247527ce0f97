import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bltm.core.errors import InputError
from bltm.core.records import NoisyData
from bltm.data import folds, merge_duplicates, split_noisy
from bltm.data.examples import VectorExamples


def noisy(labels, group, weights=None, trusted=None, n_classes=None) -> NoisyData:
    n = len(labels)
    return NoisyData(
        examples=VectorExamples(torch.zeros(n, 1)),
        labels=np.asarray(labels, dtype=np.int64),
        classes=np.arange(n_classes or max(labels) + 1),
        weights=np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64),
        trusted=np.zeros(n, bool) if trusted is None else np.asarray(trusted),
        group=np.asarray(group, dtype=np.int64),
        ids=np.array([f"example {i}" for i in range(n)], dtype=object),
    )


def drawn(seed: int, n: int = 400, n_groups: int = 300) -> NoisyData:
    rng = np.random.default_rng(seed)
    return noisy(rng.integers(0, 4, n), rng.integers(0, n_groups, n), n_classes=4)


def shuffled(data: NoisyData, order: np.ndarray) -> NoisyData:
    return NoisyData(
        data.examples, data.labels[order], data.classes, data.weights[order],
        data.trusted[order], data.group[order], data.ids[order],
    )  # fmt: skip


@given(st.integers(0, 50), st.sampled_from([0.05, 0.1, 0.3, 0.5]))
@settings(max_examples=30, deadline=None)
def test_split_covers_everything_once_and_keeps_groups_whole(seed: int, fraction: float) -> None:
    data = drawn(seed)
    split = split_noisy(data, fraction, seed)
    assert sorted(split.all) == list(range(len(data)))
    assert not set(data.group[split.train]) & set(data.group[split.validation])
    assert abs(len(split.validation) - fraction * len(data)) < 0.1 * len(data) * fraction + 12


def test_split_is_stratified_by_noisy_label() -> None:
    labels = np.repeat([0, 1, 2], [500, 300, 20])
    data = noisy(labels, np.arange(820))
    counts = np.bincount(data.labels[split_noisy(data, 0.1, 0).validation])
    assert abs(counts - [50, 30, 2]).max() <= 1


@given(st.integers(0, 20))
@settings(max_examples=20, deadline=None)
def test_split_and_folds_keep_ids_together_through_shuffling(seed: int) -> None:
    data = drawn(seed, n=200, n_groups=190)
    weights = merge_duplicates(data.labels, data.weights, data.group)
    order = np.random.default_rng(seed).permutation(len(data))
    other = shuffled(data, order)
    merged = merge_duplicates(other.labels, other.weights, other.group)

    def content(d: NoisyData, w, index) -> list:
        return list(zip(d.group[index], d.labels[index], w[index], strict=True))

    first = split_noisy(noisy(data.labels, data.group, weights), 0.1, 3)
    second = split_noisy(noisy(other.labels, other.group, merged), 0.1, 3)
    assert content(data, weights, first.train) == content(other, merged, second.train)
    assert content(data, weights, first.validation) == content(other, merged, second.validation)
    np.testing.assert_array_equal(folds(data, first.train, 5, 1), folds(other, second.train, 5, 1))


def test_split_leaves_out_weight_zero_and_comes_in_canonical_order() -> None:
    rng = np.random.default_rng(0)
    data = noisy(rng.integers(0, 2, 100), rng.permutation(100), weights=np.arange(100) % 4 > 0)
    split = split_noisy(data, 0.2, 0)
    assert set(split.all) == set(np.flatnonzero(data.weights))
    for part in (split.train, split.validation):
        assert (np.diff(data.group[part]) > 0).all()


def test_split_of_few_examples_has_no_validation_part() -> None:
    assert len(split_noisy(noisy([0, 1] * 24, range(48)), 0.1, 0).validation) == 0
    assert len(split_noisy(noisy([0, 1] * 25, range(50)), 0.1, 0).validation) == 5


def test_trusted_and_single_examples_stay_in_training() -> None:
    labels = [0] * 60 + [1] * 60 + [2]
    trusted = np.arange(121) < 40
    data = noisy(labels, range(121), trusted=trusted)
    for seed in range(10):
        split = split_noisy(data, 0.5, seed)
        assert set(np.flatnonzero(trusted)) <= set(split.train)
        assert 120 in split.train


def test_split_depends_on_the_seed_and_rejects_odd_fractions() -> None:
    data = drawn(0)
    first, again, other = (split_noisy(data, 0.1, seed).validation for seed in (0, 0, 1))
    assert first.tolist() == again.tolist() != other.tolist()
    with pytest.raises(InputError, match="validation_fraction"):
        split_noisy(data, 0.9, 0)
    assert len(split_noisy(data, 0.0, 0).validation) == 0


@given(st.integers(0, 30), st.integers(1, 7))
@settings(max_examples=30, deadline=None)
def test_folds_are_whole_groups_never_empty_and_stratified(seed: int, k: int) -> None:
    data = drawn(seed, n=300, n_groups=100)
    index = np.random.default_rng(seed).permutation(300)[:200]
    fold = folds(data, index, k, seed)
    assert set(fold) == set(range(k))
    assert len({(g, f) for g, f in zip(data.group[index], fold, strict=True)}) == len(
        set(data.group[index])
    )
    distinct = noisy(data.labels, np.arange(300))
    fold = folds(distinct, index, k, seed)
    for label in range(4):
        counts = np.bincount(fold[data.labels[index] == label], minlength=k)
        assert counts.max() - counts.min() <= 1


def test_folds_are_fewer_when_there_are_few_inputs() -> None:
    first, other, copy = folds(noisy([0, 1, 0], [5, 9, 5]), np.arange(3), 5, 0)
    assert first == copy
    assert {first, other} == {0, 1}
    assert len(folds(noisy([0], [0]), np.arange(0), 3, 0)) == 0
    with pytest.raises(InputError, match="at least one fold"):
        folds(noisy([0], [0]), np.arange(1), 0, 0)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.floats(0, 5)), max_size=20))
def test_merging_keeps_the_total_weight_of_each_pair_on_one_example(rows: list) -> None:
    labels, group = (np.array([r[i] for r in rows], dtype=np.int64) for i in (0, 1))
    weights = np.array([r[2] for r in rows], dtype=np.float64)
    merged = merge_duplicates(labels, weights, group)
    for pair in {(r[0], r[1]) for r in rows}:
        mine = (labels == pair[0]) & (group == pair[1])
        assert (merged[mine] > 0).sum() <= 1
        assert merged[mine].sum() == pytest.approx(weights[mine].sum())


@given(st.permutations(range(6)))
def test_merged_weights_are_the_same_to_the_last_bit_in_any_order(order: list) -> None:
    weights = np.array([0.1, 0.2, 0.3, 0.7, 1e-9, 3e7])
    zeros = np.zeros(6, dtype=np.int64)
    total = merge_duplicates(zeros, weights, zeros).sum()
    assert merge_duplicates(zeros, weights[order], zeros).sum() == total


def test_the_example_that_stays_is_used_and_trusted_if_one_is() -> None:
    zeros = np.zeros(4, dtype=np.int64)
    weights = np.array([0.0, 1.0, 1.0, 0.0])
    trusted = np.array([False, False, True, True])
    assert merge_duplicates(zeros, weights, zeros).tolist() == [0, 2, 0, 0]
    assert merge_duplicates(zeros, weights, zeros, trusted).tolist() == [0, 0, 2, 0]
