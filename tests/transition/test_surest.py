"""T counted where predictions are surest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.audit.problems import class_dependent, pair, symmetric

from bltm.core.matrix import sample_rows
from bltm.transition import class_transition
from bltm.transition.surest import right_ahead, surest, surest_transition


def test_the_counted_matrix_is_the_true_one_where_predictions_are_sure() -> None:
    T = pair(5, 0.3)
    problem = class_dependent(20_000, T, blur=0.05)
    likeliest, height = problem.noisy.argmax(axis=1), problem.noisy.max(axis=1)
    counted = surest_transition(likeliest, height, problem.labels, 5)
    assert np.abs(counted.T - T).max() < 0.04
    assert counted.T.sum(axis=1) == pytest.approx(np.ones(5))
    assert counted.n == pytest.approx(4000, abs=10)


def test_rows_borrow_from_each_other_only_what_they_share() -> None:
    """Few examples of a class: a common pattern helps it, a peculiar one is kept."""
    rng = np.random.default_rng(0)
    for kind, entry in ((symmetric, (5, 0)), (pair, (4, 5))):
        T = kind(6, 0.3)
        right = np.concatenate([rng.integers(0, 5, 20_000), np.full(60, 5)])
        labels = np.array([rng.choice(6, p=T[i]) for i in right])
        counted = surest_transition(right, rng.random(len(right)), labels, 6)
        assert counted.T[entry] == pytest.approx(T[entry], abs=0.05)
        assert (counted.common.mean() > 0.5) == (kind is symmetric)


def test_a_class_without_predictions_gets_what_the_others_have_in_common() -> None:
    counted = surest_transition(np.zeros(100, int), np.ones(100), np.zeros(100, int), 3)
    assert np.isfinite(counted.T).all()
    assert (counted.T > 0).all()
    assert (counted.T.argmax(axis=1) == np.arange(3)).all()


def test_each_class_has_its_surest_predictions() -> None:
    likeliest = np.array([0] * 100 + [1] * 5)
    chosen = surest(likeliest, np.arange(105.0), 3)
    assert chosen.tolist() == list(range(80, 105))


def test_classes_that_are_hard_to_tell_apart_hardly_pass_for_noise() -> None:
    """No label is corrupted: examples are as ambiguous as their posteriors say."""
    rng = np.random.default_rng(0)
    n = 6000
    leaning, height = rng.integers(0, 2, n), rng.uniform(0.5, 1.0, n)
    f = np.where(np.eye(2, dtype=bool)[leaning], height[:, None], 1.0 - height[:, None])
    labels = np.where(rng.random(n) < height, leaning, 1 - leaning)
    assert surest_transition(leaning, height, labels, 2).rates.max() < 0.07
    assert (1.0 - np.diag(class_transition(f, labels))).min() > 0.1


@given(st.integers(2, 8), st.floats(1.0, 2.0), st.integers(0, 2**32 - 1))
def test_the_right_label_is_ahead_in_every_row(n_classes: int, lead: float, seed: int) -> None:
    T = np.random.default_rng(seed).dirichlet(np.full(n_classes, 0.3), n_classes)
    ahead = right_ahead(T, lead)
    np.testing.assert_allclose(ahead.sum(axis=1), 1.0)
    for row, before, right in zip(ahead, T, range(n_classes), strict=True):
        wrong, wrong_before = np.delete(row, right), np.delete(before, right)
        assert row[right] >= lead * wrong.max() - 1e-12
        if before[right] >= lead * wrong_before.max():
            np.testing.assert_array_equal(row, before)
        else:
            # Flips go where they went.
            np.testing.assert_allclose(wrong * wrong_before.sum(), wrong_before * wrong.sum())
            assert row[right] == pytest.approx(lead * wrong.max())


def test_with_few_counted_examples_classes_share_one_rate_and_one_pattern() -> None:
    rng = np.random.default_rng(0)
    T = np.array([[0.95, 0.05, 0.0], [0.0, 0.6, 0.4], [0.1, 0.1, 0.8]])
    right = np.repeat([0, 1, 2], 400)
    labels, height = sample_rows(T[right], rng), rng.random(1200)
    apart = surest_transition(right, height, labels, 3, least=80)
    together = surest_transition(right, height, labels, 3, least=81)
    assert np.ptp(apart.rates) > 0.2
    assert np.ptp(together.rates) < 0.05
    assert together.rates.mean() == pytest.approx(apart.rates.mean(), abs=0.02)
    flips = together.T / together.rates[:, None]
    assert flips[0, 1] / flips[0, 2] == pytest.approx(
        together.pattern[1] / together.pattern[2], rel=0.15
    )
