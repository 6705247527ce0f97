"""Where labels go when they go wrong, against scikit-learn and the formula."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from bltm.transition.destinations import learn_destinations

OWN = 1


def flips(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, labels other than the class's own that depend on them, and weights."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 3))
    scores = x @ rng.standard_normal((3, 4)) + rng.gumbel(size=(n, 4))
    scores[:, OWN] = -np.inf
    return x, scores.argmax(axis=1), rng.random(n)


def flat(n: int) -> np.ndarray:
    """A belief that knows nothing."""
    belief = np.zeros((n, 4))
    belief[:, OWN] = -np.inf
    return belief


@pytest.mark.parametrize("penalty", [0.5, 5.0])
def test_without_a_belief_it_is_logistic_regression(penalty: float) -> None:
    x, labels, weights = flips()
    found = learn_destinations(x, labels, weights, flat(len(x)), penalty, np.zeros((4, 4)))
    ones = np.column_stack([x, np.ones(len(x))])
    model = LogisticRegression(C=0.5 / penalty, fit_intercept=False, tol=1e-8, max_iter=1000)
    expected = model.fit(ones, labels, sample_weight=weights).predict_log_proba(ones)
    others = [0, 2, 3]
    np.testing.assert_allclose(
        log_softmax(ones @ found[others].T, axis=1), expected, atol=0.03, rtol=0
    )
    assert not found[OWN].any()


def test_what_is_believed_already_is_not_learned_again() -> None:
    x, labels, weights = flips()
    first = learn_destinations(x, labels, weights, flat(len(x)), 0.1, np.zeros((4, 4)))
    belief = flat(len(x)) + np.column_stack([x, np.ones(len(x))]) @ first.T
    again = learn_destinations(x, labels, weights, belief, 0.1, np.zeros((4, 4)))
    assert np.abs(again).max() < 0.1 * np.abs(first).max()


def test_a_strong_penalty_leaves_the_belief_and_weights_of_zero_do_not_count() -> None:
    x, labels, weights = flips()
    held = learn_destinations(x, labels, weights, flat(len(x)), 1e6, np.zeros((4, 4)))
    assert np.abs(held).max() < 1e-3
    weights[200:] = 0.0
    some = learn_destinations(x, labels, weights, flat(len(x)), 1.0, np.zeros((4, 4)))
    half = learn_destinations(
        x[:200], labels[:200], weights[:200], flat(200), 1.0, np.zeros((4, 4))
    )
    np.testing.assert_allclose(some, half, atol=1e-2)


def test_no_wrong_label_leaves_weights_at_zero() -> None:
    nothing = learn_destinations(
        np.zeros((0, 3)), np.zeros(0, dtype=int), np.zeros(0), flat(0), 1.0, np.zeros((4, 4))
    )
    assert not nothing.any()
