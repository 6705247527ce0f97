"""PMD noise: the three margins, both scalings, the bisection, out-of-fold posteriors."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from bltm.core.errors import InputError
from bltm.noise import make_noise, out_of_fold_posterior
from bltm.noise.pmd import KINDS, SCALES, factor_for_rate, flip_probability

REPEATABLE = settings(derandomize=True, deadline=None)

TAU = {
    "I": lambda d: 0.5 - d * d / 2,
    "II": lambda d: 1 - d * d * d,
    "III": lambda d: 1 - (d**3 + d**2 + d) / 3,
}


def top_two(eta: Any) -> tuple[Any, Any, Any]:
    order = np.argsort(-eta, axis=1)
    sorted_eta = -np.sort(-eta, axis=1)
    return order[:, 0], order[:, 1], sorted_eta[:, 0] - sorted_eta[:, 1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
def test_factor_one_reproduces_tau(kind: str, scale: str):
    margins = np.linspace(0, 1, 21)
    expected = [TAU[kind](d) for d in margins]
    np.testing.assert_allclose(flip_probability(margins, kind, 1.0, scale), expected, atol=1e-15)


@REPEATABLE
@given(kind=st.sampled_from(KINDS), scale=st.sampled_from(SCALES), factor=st.floats(0.01, 100))
def test_flip_probability_decreases_with_the_margin(kind: str, scale: str, factor: float):
    flip = flip_probability(np.linspace(0, 1, 101), kind, factor, scale)
    assert (np.diff(flip) <= 1e-12).all()
    assert ((flip >= 0) & (flip <= 1)).all()


def test_divided_keeping_flips_even_the_surest_examples():
    assert flip_probability(np.array([1.0]), "I", 2.0, "keep_div")[0] == 0.5
    assert flip_probability(np.array([1.0]), "I", 2.0, "tau_mul")[0] == 0.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("rate", [0.35, 0.7])
def test_bisection_meets_the_wanted_rate(clean: Any, kind: str, scale: str, rate: float):
    noisy = make_noise(None, clean.y, "pmd", rate, 0, eta=clean.eta, kind=kind, scale=scale)
    assert abs(noisy.meta["expected_rate"] - rate) < 1e-6
    sd = np.sqrt((noisy.q * (1 - noisy.q)).sum()) / len(clean)
    assert abs(noisy.meta["realised_rate"] - rate) < max(0.005, 4 * sd)
    first, second, _ = top_two(clean.eta)
    assert ((noisy.y_noisy == first) | (noisy.y_noisy == second)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_hold_the_flip_probability_at_the_second_class(clean: Any, kind: str):
    noisy = make_noise(None, clean.y, "pmd", None, 0, eta=clean.eta, kind=kind, factor=1.0)
    _, second, margin = top_two(clean.eta)
    flip = noisy.row[np.arange(len(clean)), second]
    np.testing.assert_allclose(flip, [TAU[kind](d) for d in margin], atol=1e-12)
    assert (np.diff(flip[np.argsort(margin)]) <= 1e-12).all()
    assert noisy.meta["options"]["factor"] == 1.0


def test_published_ordering_of_factors(clean: Any):
    low = factor_for_rate(clean.eta, clean.y, 0.35, "I")
    high = factor_for_rate(clean.eta, clean.y, 0.7, "I")
    assert low < high


def test_errors_of_the_classifier_count_as_noise():
    eta = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.0, 0.1, 0.9]])
    noisy = make_noise(None, [0, 1, 0], "pmd", None, 0, eta=eta, factor=1.0)
    assert noisy.q[2] == 1.0
    assert noisy.y_noisy[2] in (1, 2)
    np.testing.assert_array_equal(noisy.transition([2])[0], np.stack([noisy.row[2]] * 3))


def test_unreachable_rate_names_the_range():
    eta = np.array([[0.1, 0.9]] * 3 + [[0.9, 0.1]])
    with pytest.raises(InputError, match=r"rate: must lie in \[0\.25, 0\.75\].*got 0\.1"):
        make_noise(None, [0, 0, 0, 0], "pmd", 0.1, 0, eta=eta)


def test_posteriors_from_features_are_out_of_fold_and_cover_absent_classes():
    digits = load_digits()
    x, y = digits.data[:400], digits.target[:400]
    kept = y != 4
    eta = out_of_fold_posterior(x[kept], y[kept], 11, seed=0)
    assert eta.shape == (kept.sum(), 11)
    np.testing.assert_allclose(eta.sum(axis=1), 1)
    assert (eta[:, [4, 10]] == 0).all()
    assert 0.85 < (eta.argmax(axis=1) == y[kept]).mean() < 1

    noise = np.random.default_rng(0).normal(size=(200, 30))
    labels = np.arange(200) % 2
    by_chance = out_of_fold_posterior(noise, labels, 2, seed=0)
    assert (by_chance.argmax(axis=1) == labels).mean() < 0.6


def test_noise_from_features_needs_no_posteriors():
    digits = load_digits()
    x, y = digits.images[:300], digits.target[:300]
    noisy = make_noise(x, y, "pmd", 0.3, seed=0)
    assert noisy.meta["options"]["eta"] == "out-of-fold logistic regression"
    assert noisy.meta["expected_rate"] == pytest.approx(0.3, abs=1e-6)
    np.testing.assert_array_equal(noisy.y_noisy, make_noise(x, y, "pmd", 0.3, seed=0).y_noisy)
