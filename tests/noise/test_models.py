"""What holds for every noise model: rows, rates, targets, dependence, determinism, isolation."""

import json
import random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from bltm.core.matrix import check_transition
from bltm.noise import NoisyLabels, make_noise
from bltm.noise.record import class_average

REPEATABLE = settings(derandomize=True, deadline=None)


def pooled_chi_square(observed: NDArray[Any], expected: NDArray[Any]) -> tuple[float, int]:
    """Return statistic and degrees of freedom; cells that expect fewer than 5 are put together."""
    rare = expected < 5
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    kept = expected > 0
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    return float(statistic), max(int(kept.sum()) - 1, 0)


def log_gain(row: NDArray[Any], noisy: NoisyLabels, y: NDArray[Any]) -> NDArray[Any]:
    everyone = np.arange(len(y))
    with np.errstate(divide="ignore"):
        own = np.log(row[everyone, noisy.y_noisy])
    return np.asarray(own - np.log(noisy.T[y, noisy.y_noisy]))


def test_rows_are_distributions_and_hold_the_flip_rate(noise_of: Any, clean: Any, case: str):
    noisy = noise_of(case)
    assert noisy.row.dtype == np.float64
    assert (noisy.row >= 0).all()
    np.testing.assert_allclose(noisy.row.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        noisy.row[np.arange(len(clean)), clean.y], 1 - noisy.q, rtol=0, atol=1e-12
    )
    assert noisy.y_noisy.dtype == np.int64
    assert (noisy.row[np.arange(len(clean)), noisy.y_noisy] > 0).all()
    check_transition(noisy.T, atol=1e-12)


def test_flip_count_agrees_with_the_flip_rates(noise_of: Any, clean: Any, case: str):
    noisy = noise_of(case)
    flips = (noisy.y_noisy != clean.y).sum()
    z = (flips - noisy.q.sum()) / np.sqrt((noisy.q * (1 - noisy.q)).sum())
    assert abs(z) < 4
    assert noisy.meta["realised_rate"] == flips / len(clean)
    assert noisy.meta["expected_rate"] == pytest.approx(noisy.q.mean())


def test_targets_of_flips_follow_the_rows(noise_of: Any, clean: Any, case: str):
    noisy = noise_of(case)
    flipped = np.flatnonzero(noisy.y_noisy != clean.y)
    conditional = noisy.row[flipped].copy()
    conditional[np.arange(len(flipped)), clean.y[flipped]] = 0.0
    conditional /= conditional.sum(axis=1, keepdims=True)
    statistic, freedom = 0.0, 0
    for c in range(10):
        of_class = clean.y[flipped] == c
        observed = np.bincount(noisy.y_noisy[flipped][of_class], minlength=10)
        part, cells = pooled_chi_square(observed, conditional[of_class].sum(axis=0))
        statistic, freedom = statistic + part, freedom + cells
    assert freedom == 0 or chi2.sf(statistic, freedom) > 1e-3


def test_counts_of_class_noise_follow_the_matrix(noise_of: Any, clean: Any, class_case: str):
    noisy = noise_of(class_case)
    for c in range(10):
        observed = np.bincount(noisy.y_noisy[clean.y == c], minlength=10)
        assert (observed[noisy.T[c] == 0] == 0).all()
        statistic, freedom = pooled_chi_square(observed, noisy.T[c] * observed.sum())
        assert freedom == 0 or chi2.sf(statistic, freedom) > 1e-3


def test_instance_noise_depends_on_the_instance(noise_of: Any, clean: Any, instance_case: str):
    noisy = noise_of(instance_case)
    gain = log_gain(noisy.row, noisy, clean.y)
    assert gain.mean() > 5 * gain.std() / np.sqrt(len(gain))
    rng = np.random.default_rng(0)
    shuffled = noisy.row.copy()
    for c in range(10):
        members = np.flatnonzero(clean.y == c)
        shuffled[members] = noisy.row[rng.permutation(members)]
    assert log_gain(shuffled, noisy, clean.y).mean() < gain.mean()


def test_class_noise_does_not_depend_on_the_instance(noise_of: Any, clean: Any, class_case: str):
    noisy = noise_of(class_case)
    if noisy.meta["options"]["draws"] == "exact":
        tolerance = 1 / np.bincount(clean.y).min()
        np.testing.assert_allclose(noisy.row, noisy.T[clean.y], rtol=0, atol=tolerance)
    else:
        assert (log_gain(noisy.row, noisy, clean.y) == 0).all()


def test_same_seed_same_labels_and_other_seed_other_labels(noise_of: Any, case: str):
    noisy, again = noise_of(case), noise_of(case, fresh=True)
    np.testing.assert_array_equal(noisy.y_noisy, again.y_noisy)
    np.testing.assert_array_equal(noisy.row, again.row)
    assert noisy.manifest() == again.manifest()
    other = noise_of(case, seed=1)
    assert (noisy.y_noisy != other.y_noisy).any()
    assert noisy.manifest()["sha256"]["outputs"] != other.manifest()["sha256"]["outputs"]
    assert noisy.manifest()["sha256"]["inputs"] == other.manifest()["sha256"]["inputs"]


def test_transition_of_a_subset_is_consistent_with_the_rows(noise_of: Any, clean: Any, case: str):
    noisy = noise_of(case)
    subset = np.array([4000, 3, 17, 17, 900])
    T = check_transition(noisy.transition(subset), atol=1e-12)
    assert T.shape == (5, 10, 10)
    sampled = T[np.arange(5), clean.y[subset]]
    if noisy.meta["options"].get("draws") == "exact":
        np.testing.assert_allclose(sampled, noisy.T[clean.y[subset]])
    else:
        np.testing.assert_allclose(sampled, noisy.row[subset], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(noisy.transition(subset[:1])[0], T[0], rtol=1e-9, atol=1e-12)


def test_average_matrix_is_the_mean_of_the_rows(noise_of: Any, clean: Any, instance_case: str):
    noisy = noise_of(instance_case)
    for c in range(10):
        np.testing.assert_allclose(noisy.T[c], noisy.row[clean.y == c].mean(axis=0), atol=1e-12)


def test_manifest_is_json_and_bounds_hold(noise_of: Any, clean: Any, case: str):
    noisy = noise_of(case)
    manifest = json.loads(json.dumps(noisy.manifest(), allow_nan=False))
    assert manifest["n"] == len(noisy) == len(clean)
    assert manifest["n_classes"] == noisy.n_classes == 10
    assert noisy.q.max() <= manifest["bounds"]["flip_rate"] + 1e-12 or "exact" in case
    off_diagonal = noisy.row.copy()
    off_diagonal[np.arange(len(clean)), clean.y] = 0
    assert off_diagonal.max() == manifest["bounds"]["wrong_label"] <= noisy.q.max() + 1e-12


def test_global_random_state_is_untouched(noise_of: Any, case: str):
    before = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    noise_of(case, seed=3)
    after = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    assert before[0] == after[0]
    assert str(before[1]) == str(after[1])
    assert (before[1][1] == after[1][1]).all()
    assert torch.equal(before[2], after[2])


def test_inputs_are_not_modified(noise_of: Any, clean: Any, case: str):
    x, y, eta = clean.x.copy(), clean.y.copy(), clean.eta.copy()
    noise_of(case, seed=4)
    np.testing.assert_array_equal(x, clean.x)
    np.testing.assert_array_equal(y, clean.y)
    np.testing.assert_array_equal(eta, clean.eta)


RATE_ZERO: dict[str, dict[str, Any]] = {
    "instance": {"rate": 0},
    "symmetric": {"rate": 0.0},
    "pair": {"rate": 0.0},
    "asymmetric": {"rate": 0.0, "mapping": {0: 1}},
    "matrix": {"rate": None, "T": np.eye(4)},
    "pmd": {"rate": 0.0},
}


@pytest.mark.parametrize("model", list(RATE_ZERO))
def test_rate_zero_returns_the_labels(model: str):
    y = np.arange(40) % 4
    x = np.random.default_rng(0).normal(size=(40, 3))
    noisy = make_noise(x, y, model, seed=0, n_classes=4, **RATE_ZERO[model])
    np.testing.assert_array_equal(noisy.y_noisy, y)
    assert noisy.y_noisy is not y
    np.testing.assert_array_equal(noisy.row, np.eye(4)[y])
    np.testing.assert_array_equal(noisy.transition([1, 2]), np.stack([np.eye(4)] * 2))
    assert noisy.q.max() == 0
    assert noisy.meta["realised_rate"] == 0


MODEL_OPTIONS: dict[str, dict[str, Any]] = {
    "instance": {"rate": 0.4, "feature_mode": "std_unit"},
    "symmetric": {"rate": 0.4},
    "pair": {"rate": 0.4},
    "asymmetric": {"rate": 0.4, "mapping": {0: 1}},
    "matrix": {"rate": None, "T": [[0.5, 0.5], [0.2, 0.8]]},
    "pmd": {"rate": None, "factor": 2.0, "eta": "random"},
}


def options_for(model: str, n: int, n_classes: int) -> dict[str, Any]:
    options = dict(MODEL_OPTIONS[model])
    if model == "pmd":
        options["eta"] = np.random.default_rng(n).dirichlet(np.ones(n_classes), size=n)
    if model == "matrix":
        options["T"] = np.random.default_rng(n).dirichlet(np.ones(n_classes), size=n_classes)
    return options


@pytest.mark.parametrize("model", list(MODEL_OPTIONS))
@pytest.mark.parametrize(
    ("labels", "n_classes"),
    [([0, 1, 0, 1, 1, 0], 2), ([1], 3), ([0, 0, 2, 2], 4)],
    ids=["two-classes", "single-sample", "absent-classes"],
)
def test_small_inputs(model: str, labels: list[int], n_classes: int):
    x = np.random.default_rng(1).normal(size=(len(labels), 5))
    options = options_for(model, len(labels), n_classes)
    noisy = make_noise(x, labels, model, seed=0, n_classes=n_classes, **options)
    assert noisy.row.shape == (len(labels), n_classes)
    assert noisy.T.shape == (n_classes, n_classes)
    assert set(noisy.y_noisy) <= set(range(n_classes))
    assert noisy.meta["absent_classes"] == sorted(set(range(n_classes)) - set(labels))


@REPEATABLE
@given(
    model=st.sampled_from(list(MODEL_OPTIONS)),
    labels=st.lists(st.integers(0, 4), min_size=1, max_size=30),
    seed=st.integers(0, 2**64),
)
def test_any_labels_get_labels_of_positive_probability(model: str, labels: list[int], seed: int):
    x = np.random.default_rng(len(labels)).normal(size=(len(labels), 3))
    options = options_for(model, len(labels), 5)
    noisy = make_noise(x, labels, model, seed=seed, n_classes=5, **options)
    np.testing.assert_allclose(noisy.row.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert (noisy.row[np.arange(len(labels)), noisy.y_noisy] > 0).all()
    check_transition(noisy.transition(np.arange(len(labels))), atol=1e-12)


def test_class_average_against_a_loop():
    rng = np.random.default_rng(0)
    row, y = rng.dirichlet(np.ones(4), size=20), rng.integers(0, 3, size=20)
    for c in range(4):
        members = [row[i] for i in range(20) if y[i] == c]
        expected = sum(members) / len(members) if members else np.eye(4)[c]
        np.testing.assert_allclose(class_average(row, y)[c], expected)
