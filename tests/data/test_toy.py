"""The toy problem against loops and frequencies, and the paper's two facts on exact quantities."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from bltm.core.errors import InputError
from bltm.core.matrix import check_rows, check_transition
from bltm.data.toy import ToyProblem

PROBLEMS = [
    ToyProblem(),
    ToyProblem(n_classes=2, radius=1.0),
    ToyProblem(n_classes=5, radius=2.5, low=0.0, high=0.6, lean=1.0),
]
GRID = np.stack(np.meshgrid(np.linspace(-6, 6, 61), np.linspace(-6, 6, 61)), -1).reshape(-1, 2)


def collected(toy: ToyProblem, x: Any, rho: float) -> tuple[Any, Any]:
    """Return indices and labels with a noisy posterior above (1 + rho) / 2."""
    return np.nonzero(toy.noisy_posterior(x) > (1 + rho) / 2)


@pytest.mark.parametrize("toy", PROBLEMS)
def test_quantities_agree_with_plain_loops(toy: ToyProblem):
    x = GRID[::97]
    n_classes = toy.n_classes
    noisy, bayes, T_star = toy.noisy_posterior(x), toy.bayes_labels(x), toy.bayes_transition(x)
    for n, (a, b) in enumerate(x.tolist()):
        density = [
            norm.pdf(a - toy.radius * np.cos(2 * np.pi * c / n_classes))
            * norm.pdf(b - toy.radius * np.sin(2 * np.pi * c / n_classes))
            for c in range(n_classes)
        ]
        eta = [d / sum(density) for d in density]
        q = toy.low + (toy.high - toy.low) / (1 + np.exp(-a))
        share = (1 + toy.lean * np.tanh(b)) / 2
        T = [[0.0] * n_classes for _ in range(n_classes)]
        for i in range(n_classes):
            T[i][i] += 1 - q
            T[i][(i + 1) % n_classes] += q * share
            T[i][(i - 1) % n_classes] += q * (1 - share)
        expected = [sum(eta[i] * T[i][j] for i in range(n_classes)) for j in range(n_classes)]
        np.testing.assert_allclose(toy.posterior(x[n : n + 1])[0], eta, rtol=1e-9)
        np.testing.assert_allclose(toy.clean_transition(x[n : n + 1])[0], T, atol=1e-12)
        np.testing.assert_allclose(noisy[n], expected, atol=1e-12)
        np.testing.assert_allclose(T_star[n, bayes[n]], expected, atol=1e-12)
        for i in set(range(n_classes)) - {int(bayes[n])}:
            np.testing.assert_allclose(T_star[n, i], T[i], atol=1e-12)
        assert eta[bayes[n]] == max(eta)


@pytest.mark.parametrize("toy", PROBLEMS)
def test_rows_are_distributions_also_far_out(toy: ToyProblem):
    x = np.concatenate([GRID, 1e4 * GRID])
    check_rows(toy.posterior(x), atol=1e-12)
    check_transition(toy.clean_transition(x), atol=1e-12)
    check_transition(toy.bayes_transition(x), atol=1e-12)
    np.testing.assert_array_equal(toy.bayes_row(x), toy.noisy_posterior(x))


@pytest.mark.parametrize("toy", PROBLEMS)
def test_frequencies_agree_with_the_posteriors(toy: ToyProblem):
    sample = toy.sample(40_000, seed=1)
    everyone = np.arange(len(sample))
    for labels, probs in [
        (sample.y_clean, toy.posterior(sample.x)),
        (sample.y_noisy, toy.noisy_posterior(sample.x)),
    ]:
        # Calibration: where a class has probability p, a share p of the labels is that class.
        for c in range(toy.n_classes):
            p = probs[:, c]
            for part in np.array_split(np.argsort(p), 8):
                spread = np.sqrt((p[part] * (1 - p[part])).sum())
                assert abs((labels[part] == c).sum() - p[part].sum()) < 4.5 * max(spread, 1.0)
    drawn_from = toy.clean_transition(sample.x)[everyone, sample.y_clean]
    flips = (sample.y_noisy != sample.y_clean).sum()
    q = 1 - drawn_from[everyone, sample.y_clean]
    np.testing.assert_allclose(q, toy.flip_rate(sample.x))
    assert abs(flips - q.sum()) < 4 * np.sqrt((q * (1 - q)).sum())
    np.testing.assert_array_equal(sample.y_bayes, toy.bayes_labels(sample.x))


@pytest.mark.parametrize("toy", PROBLEMS)
def test_rho_max_is_the_supremum(toy: ToyProblem):
    x = np.concatenate([GRID, 5 * GRID])
    eta, T = toy.posterior(x), toy.clean_transition(x)
    found = 0.0
    for y in range(toy.n_classes):
        others = [i for i in range(toy.n_classes) if i != y]
        weight = eta[:, others].sum(axis=1)
        seen = weight > 1e-12
        rho_y = (eta[:, others] * T[:, others, y]).sum(axis=1)[seen] / weight[seen]
        found = max(found, float(rho_y.max()))
    assert found <= toy.rho_max + 1e-12
    assert found == pytest.approx(toy.rho_max, abs=1e-3)


@pytest.mark.parametrize("toy", PROBLEMS)
@pytest.mark.parametrize("extra", [0.0, 0.1])
def test_collected_labels_are_bayes_labels_if_rho_is_large_enough(toy: ToyProblem, extra: float):
    x = np.concatenate([GRID, toy.sample(20_000, seed=2).x])
    indices, labels = collected(toy, x, toy.rho_max + extra)
    assert len(indices) > 0
    assert len(np.unique(indices)) == len(indices)
    np.testing.assert_array_equal(labels, toy.bayes_labels(x)[indices])


def test_collected_bayes_labels_are_not_always_the_clean_labels():
    toy = ToyProblem()
    sample = toy.sample(20_000, seed=3)
    indices, labels = collected(toy, sample.x, toy.rho_max)
    different = labels != sample.y_clean[indices]
    assert 0 < different.mean() < 0.2
    assert (labels == sample.y_bayes[indices]).all()
    assert (labels != sample.y_noisy[indices]).any()


def test_guarantee_fails_if_rho_is_far_below_the_bound():
    toy = ToyProblem(n_classes=2, radius=2.0, low=0.02, high=0.75)
    indices, labels = collected(toy, GRID, rho=0.3)
    wrong = labels != toy.bayes_labels(GRID)[indices]
    assert wrong.any()
    assert not wrong.all()
    indices, labels = collected(toy, GRID, rho=toy.rho_max)
    assert len(indices) > 0
    np.testing.assert_array_equal(labels, toy.bayes_labels(GRID)[indices])


@pytest.mark.parametrize("toy", PROBLEMS[:2])
def test_inverting_the_clean_transition_recovers_the_clean_posterior(toy: ToyProblem):
    T, noisy = toy.clean_transition(GRID), toy.noisy_posterior(GRID)
    recovered = [np.linalg.solve(T[n].T, noisy[n]) for n in range(len(GRID))]
    np.testing.assert_allclose(recovered, toy.posterior(GRID), atol=1e-9)


@pytest.mark.parametrize("toy", PROBLEMS[:2])
def test_inverting_the_bayes_transition_recovers_the_one_hot_bayes_posterior(toy: ToyProblem):
    # det T* = P(Y=y* | x) det T, so T* is invertible wherever T is.
    T, noisy = toy.bayes_transition(GRID), toy.noisy_posterior(GRID)
    recovered = [np.linalg.solve(T[n].T, noisy[n]) for n in range(len(GRID))]
    np.testing.assert_allclose(recovered, np.eye(toy.n_classes)[toy.bayes_labels(GRID)], atol=1e-9)
    chance = toy.posterior(GRID).max(axis=1)
    determinants = np.linalg.det(toy.clean_transition(GRID))
    np.testing.assert_allclose(np.linalg.det(T), chance * determinants, atol=1e-12)


def test_sample_is_determined_by_its_seed():
    toy = ToyProblem()
    first, second, other = toy.sample(200, 0), toy.sample(200, 0), toy.sample(200, 1)
    assert len(first) == 200
    for name in ("x", "y_clean", "y_bayes", "y_noisy"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        assert (getattr(first, name) != getattr(other, name)).any()
    assert first.y_clean.dtype == first.y_noisy.dtype == first.y_bayes.dtype == np.int64


def test_classes_overlap_and_noise_depends_on_the_instance():
    toy = ToyProblem()
    sample = toy.sample(20_000, seed=0)
    assert 0.05 < (sample.y_bayes != sample.y_clean).mean() < 0.25
    wrong = sample.y_noisy != sample.y_clean
    right_side = sample.x[:, 0] > 0
    assert wrong[right_side].mean() > wrong[~right_side].mean() + 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_classes": 1}, "n_classes: .*got 1"),
        ({"radius": 0}, "radius: .*got 0"),
        ({"low": 0.5, "high": 0.4}, "high: .*low=0.5, high=0.4"),
        ({"high": 1.0}, "high: .*high=1.0"),
        ({"lean": 2.0}, "lean: .*got 2.0"),
    ],
)
def test_bad_parameters_are_refused(options: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        ToyProblem(**options)


def test_bad_points_and_sizes_are_refused():
    with pytest.raises(InputError, match=r"x: needs shape \(N, 2\), got \(3,\)"):
        ToyProblem().posterior([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="n: must be at least 1, got 0"):
        ToyProblem().sample(0, seed=0)
