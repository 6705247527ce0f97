"""Algorithm 2: distribution of flip rates, rows against a loop, softness of the targets."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest, truncnorm
from sklearn.datasets import load_digits

from bltm.core.random import stream
from bltm.noise import FEATURE_MODES, make_noise
from bltm.noise.features import scaling
from bltm.noise.instance import flip_rates

REALISED = {
    0.6: {0.1: 0.1288, 0.2: 0.2055, 0.3: 0.3000, 0.4: 0.3945, 0.5: 0.4712},
    1.0: {0.1: 0.1288, 0.2: 0.2055, 0.3: 0.3004, 0.4: 0.4000, 0.5: 0.5000},
}
SD_OF_Q = {0.1: 0.079, 0.2: 0.094, 0.3: 0.099, 0.4: 0.094, 0.5: 0.079}
RATES = [(rho, rate, mean) for rho, means in REALISED.items() for rate, mean in means.items()]


def mean_max_target(x: Any, y: Any, mode: str, seed: int = 0) -> float:
    noisy = make_noise(x, y, "instance", 0.3, seed, feature_mode=mode)
    targets = noisy.row.copy()
    targets[np.arange(len(y)), y] = 0.0
    return float((targets.max(axis=1) / noisy.q).mean())


@pytest.mark.parametrize(("rho_max", "rate", "mean"), RATES)
def test_flip_rates_follow_the_truncated_normal(rho_max: float, rate: float, mean: float):
    n = 20_000
    q = flip_rates(n, rate, rho_max, 0.1, stream(0, "test"))
    law = truncnorm(-rate / 0.1, (rho_max - rate) / 0.1, loc=rate, scale=0.1)
    assert kstest(q, law.cdf).pvalue > 1e-3
    assert q.min() >= 0
    assert q.max() <= rho_max
    assert law.mean() == pytest.approx(mean, abs=6e-5)
    assert abs(q.mean() - mean) < 4 * law.std() / math.sqrt(n)
    if rho_max == 0.6:
        assert law.std() == pytest.approx(SD_OF_Q[rate], abs=6e-4)


@pytest.mark.parametrize(("rho_max", "rate", "mean"), RATES)
def test_realised_rate_is_the_mean_flip_rate_not_the_nominal_rate(
    rho_max: float, rate: float, mean: float
):
    n = 20_000
    x = np.random.default_rng(0).normal(size=(n, 2))
    noisy = make_noise(x, np.arange(n) % 3, "instance", rate, seed=1, rho_max=rho_max)
    assert noisy.meta["nominal_rate"] == rate
    assert abs(noisy.meta["realised_rate"] - mean) < 4 * math.sqrt(mean * (1 - mean) / n)


@pytest.mark.parametrize("shared_w", [False, True])
def test_rows_equal_the_algorithm_written_as_a_loop(shared_w: bool):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(25, 4)), rng.integers(0, 3, size=25)
    noisy = make_noise(x, y, "instance", 0.3, seed=9, n_classes=3, shared_w=shared_w)
    T = noisy.transition(np.arange(25))
    for i in range(25):
        for c in range(3):
            w = stream(9, "noise", "weights", "shared" if shared_w else c).standard_normal((4, 3))
            scores = [sum(x[i, k] * w[k, j] for k in range(4)) for j in range(3)]
            total = sum(math.exp(scores[j]) for j in range(3) if j != c)
            for j in range(3):
                expected = noisy.q[i] * math.exp(scores[j]) / total if j != c else 1 - noisy.q[i]
                assert T[i, c, j] == pytest.approx(expected, rel=1e-9)
        np.testing.assert_allclose(noisy.row[i], T[i, y[i]], rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_targets_are_hard_on_the_raw_scale_and_soft_on_the_unit_sphere(clean: Any, seed: int):
    assert mean_max_target(clean.x, clean.y, "raw255", seed) > 0.99
    assert mean_max_target(clean.x, clean.y, "std_unit", seed) < 0.6


def test_softness_of_the_feature_modes_is_ordered(clean: Any):
    softness = {mode: mean_max_target(clean.x, clean.y, mode) for mode in FEATURE_MODES}
    assert softness["raw255"] > softness["standardised"] > softness["std_unit"]
    assert softness["raw255"] > softness["normalised"] > softness["normalised_unit"]
    assert softness["raw255"] > softness["unit"] > 0.6
    assert softness["normalised_unit"] < 0.6


def test_raw_mode_uses_other_value_ranges_as_they_are():
    digits = load_digits()
    images = digits.images
    assert 0.97 < mean_max_target(images, digits.target, "raw255") < 0.99
    np.testing.assert_array_equal(
        scaling(images.reshape(-1, 64), "raw255")(images.reshape(-1, 64)), images.reshape(-1, 64)
    )


@pytest.mark.parametrize("mode", list(FEATURE_MODES))
def test_bytes_and_unit_floats_give_the_same_noise(clean: Any, mode: str):
    as_bytes = make_noise(clean.x, clean.y, "instance", 0.3, 0, feature_mode=mode)
    as_floats = make_noise(clean.x / 255, clean.y, "instance", 0.3, 0, feature_mode=mode)
    np.testing.assert_allclose(as_bytes.row, as_floats.row, atol=1e-8)
    np.testing.assert_array_equal(as_bytes.y_noisy, as_floats.y_noisy)


def test_flattened_images_give_the_same_noise(clean: Any):
    images = make_noise(clean.x, clean.y, "instance", 0.3, 0)
    flat = make_noise(clean.x.reshape(len(clean), -1), clean.y, "instance", 0.3, 0)
    assert images.manifest() == flat.manifest()


def test_scaled_features_have_the_stated_moments(clean: Any):
    x = clean.x.reshape(len(clean), -1)
    unit = scaling(x, "unit")(x)
    assert (unit.min(), unit.max()) == (0.0, 1.0)
    normalised = scaling(x, "normalised")(x)
    assert normalised.mean() == pytest.approx(0, abs=1e-9)
    assert normalised.std() == pytest.approx(1)
    standardised = scaling(x, "standardised")(x)
    np.testing.assert_allclose(standardised.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(standardised.std(axis=0), 1)
    for mode in ("normalised_unit", "std_unit"):
        np.testing.assert_allclose(np.linalg.norm(scaling(x, mode)(x), axis=1), 1)


@pytest.mark.parametrize("mode", list(FEATURE_MODES))
def test_equal_features_give_equal_targets(mode: str):
    x = np.full((6, 3), 0.1)
    noisy = make_noise(x, [0, 1, 2] * 2, "instance", 0.3, 0, feature_mode=mode)
    assert np.isfinite(noisy.row).all()
    targets = noisy.row[[0, 3], 1:] / noisy.q[[0, 3], None]
    np.testing.assert_allclose(targets[0], targets[1])
    if mode in ("standardised", "std_unit"):
        np.testing.assert_allclose(targets, 0.5)


def test_rate_at_the_bound_stays_below_it():
    x = np.random.default_rng(0).normal(size=(2000, 3))
    noisy = make_noise(x, np.arange(2000) % 3, "instance", 0.6, seed=0)
    assert noisy.q.max() <= 0.6
    assert noisy.q.mean() == pytest.approx(0.6 - 0.1 * math.sqrt(2 / math.pi), abs=0.006)


def test_bound_on_wrong_labels_is_at_most_the_bound_on_flips(clean: Any):
    for mode in ("raw255", "std_unit"):
        noisy = make_noise(clean.x, clean.y, "instance", 0.4, 0, feature_mode=mode)
        bounds = noisy.meta["bounds"]
        assert bounds["wrong_label"] <= bounds["flip_rate"] == 0.6
        T = noisy.transition(np.arange(200))
        T[:, np.arange(10), np.arange(10)] = 0
        assert (T.max(axis=(1, 2)) <= noisy.q[:200] + 1e-12).all()


def test_shared_weights_give_other_noise_than_one_matrix_for_each_class(clean: Any):
    per_class = make_noise(clean.x, clean.y, "instance", 0.3, 0)
    shared = make_noise(clean.x, clean.y, "instance", 0.3, 0, shared_w=True)
    np.testing.assert_array_equal(per_class.q, shared.q)
    assert (per_class.row != shared.row).any()
    assert shared.manifest()["options"]["shared_w"] is True


def test_flip_rates_targets_and_labels_all_change_with_the_seed(clean: Any):
    first, second = (make_noise(clean.x, clean.y, "instance", 0.3, seed) for seed in (0, 1))
    assert (first.q != second.q).mean() > 0.99
    assert abs(np.corrcoef(first.q, second.q)[0, 1]) < 4 / np.sqrt(len(clean))
    targets = []
    for noisy in (first, second):
        wrong = noisy.row.copy()
        wrong[np.arange(len(clean)), clean.y] = 0.0
        targets.append(wrong.argmax(axis=1))
    assert (targets[0] != targets[1]).mean() > 0.5
    assert (first.y_noisy != second.y_noisy).any()
