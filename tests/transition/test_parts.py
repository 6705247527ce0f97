"""Parts of features, coefficients on the simplex, part matrices by least squares."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from bltm.transition.anchors import anchor_indices, anchor_rows, anchor_transition
from bltm.transition.parts import (
    coefficients,
    factorise,
    fit_part_matrices,
    mixed_log_columns,
    mixed_log_noisy,
    mixed_rows,
)


def stochastic(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.dirichlet(np.ones(shape[-1]), shape[:-1])


def made_of_parts(
    seed: int, n: int = 300, d: int = 12, r: int = 3
) -> tuple[torch.Tensor, torch.Tensor]:
    """Features that are mixtures of parts which do not overlap, and the coefficients."""
    rng = np.random.default_rng(seed)
    parts = np.zeros((r, d))
    for k in range(r):
        parts[k, k::r] = rng.uniform(0.5, 2.0, len(range(k, d, r)))
    weights = stochastic(rng, n, r)
    return torch.from_numpy(weights @ parts).float(), torch.from_numpy(weights).float()


def test_features_made_of_parts_are_taken_apart() -> None:
    features, _ = made_of_parts(0)
    parts = factorise(features, 3, np.random.default_rng(1), rounds=300)
    assert parts.shape == (3, 12)
    assert (parts >= 0).all()
    again = coefficients(features, parts, rounds=300) @ parts
    assert float((again - features).norm() / features.norm()) < 0.05


def test_more_rounds_fit_better() -> None:
    features, _ = made_of_parts(1)
    errors = []
    for rounds in (1, 20, 200):
        parts = factorise(features, 3, np.random.default_rng(0), rounds)
        errors.append(float((coefficients(features, parts) @ parts - features).norm()))
    assert errors[0] > errors[1] > errors[2]


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 20), st.integers(1, 6), st.integers(1, 12))
def test_coefficients_are_on_the_simplex(seed: int, n: int, r: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    features = torch.from_numpy(rng.standard_normal((n, d))).float()  # half of them below zero
    parts = factorise(features, r, rng, rounds=5)
    assert parts.isfinite().all()
    W = coefficients(features, parts)
    assert (W >= 0).all()
    torch.testing.assert_close(W.sum(dim=1), torch.ones(n))


def test_coefficients_are_the_least_squares_solution_divided_by_its_sum() -> None:
    rng = np.random.default_rng(0)
    parts, features = rng.random((3, 8)), rng.random((5, 8))
    found = coefficients(torch.from_numpy(features), torch.from_numpy(parts), rounds=5000)
    for row, x in zip(found.numpy(), features, strict=True):
        solution = nnls(parts.T, x)[0]
        np.testing.assert_allclose(row, solution / solution.sum(), atol=2e-3)


def test_the_coefficients_of_an_example_do_not_depend_on_the_others() -> None:
    features, _ = made_of_parts(2, n=40)
    parts = factorise(features, 3, np.random.default_rng(0))
    together = coefficients(features, parts)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(coefficients(features[order], parts), together[order])
    torch.testing.assert_close(coefficients(features[:1], parts), together[:1])
    torch.testing.assert_close(coefficients(7 * features, parts), together)


@pytest.mark.parametrize("parts", [torch.zeros(3, 4), torch.rand(3, 4)])
def test_features_that_are_all_zero_are_made_of_all_parts_alike(parts: torch.Tensor) -> None:
    W = coefficients(torch.zeros(2, 4), parts)
    torch.testing.assert_close(W, torch.full((2, 3), 1 / 3))
    assert factorise(torch.zeros(6, 4), 3, np.random.default_rng(0)).isfinite().all()


@settings(max_examples=15)
@given(st.integers(0, 1000), st.integers(1, 4), st.integers(2, 5))
def test_part_matrices_are_recovered_from_independent_anchors(
    seed: int, r: int, n_classes: int
) -> None:
    rng = np.random.default_rng(seed)
    matrices = stochastic(rng, r, n_classes, n_classes)
    weights = stochastic(rng, n_classes, r, r) + 2.0 * np.eye(r)
    weights /= weights.sum(axis=2, keepdims=True)
    rows = np.einsum("cpk,kcj->cpj", weights, matrices)
    found = fit_part_matrices(weights, rows)
    np.testing.assert_allclose(found, matrices, atol=1e-5)


def test_sparse_rows_are_recovered_on_the_edge_of_the_simplex() -> None:
    rng = np.random.default_rng(0)
    matrices = np.stack([np.eye(4), np.roll(np.eye(4), 1, axis=1)])
    weights = np.tile(np.array([[0.8, 0.2], [0.3, 0.7]]), (4, 1, 1))
    rows = np.einsum("cpk,kcj->cpj", weights, matrices)
    np.testing.assert_allclose(fit_part_matrices(weights, rows), matrices, atol=1e-6)
    noisy = rows + 0.05 * rng.standard_normal(rows.shape)
    found = fit_part_matrices(weights, noisy)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=2), 1.0, atol=1e-12)


def test_no_feasible_point_nearby_is_better() -> None:
    rng = np.random.default_rng(3)
    weights, rows = stochastic(rng, 3, 5, 4), stochastic(rng, 3, 5, 3)

    def error(matrices: np.ndarray) -> float:
        return float(np.square(np.einsum("cpk,kcj->cpj", weights, matrices) - rows).sum())

    found = fit_part_matrices(weights, rows)
    for _ in range(300):
        other = 0.99 * found + 0.01 * stochastic(rng, 4, 3, 3)
        assert error(other) >= error(found) - 1e-9


def test_one_part_is_one_matrix_for_all() -> None:
    """Which is that of the anchors at the lowest percentile."""
    rng = np.random.default_rng(0)
    H = stochastic(rng, 200, 3)
    anchors = anchor_indices(H, np.linspace(97.0, 99.0, 1).tolist())
    W = coefficients(torch.rand(200, 6), torch.rand(1, 6)).numpy()
    assert (W == 1).all()
    matrices = fit_part_matrices(W[anchors].astype(float), anchor_rows(H, anchors))
    np.testing.assert_allclose(matrices[0], anchor_transition(H), atol=1e-12)


def test_what_repeated_anchors_leave_open_stays_at_their_mean() -> None:
    weights = np.tile(np.array([0.6, 0.4]), (2, 2, 1))
    rows = np.array([[[0.9, 0.1]] * 2, [[0.3, 0.7]] * 2])
    found = fit_part_matrices(weights, rows)
    np.testing.assert_allclose(found, np.stack([rows[:, 0]] * 2), atol=1e-9)


def test_columns_rows_and_noisy_posteriors_are_those_of_the_mixture() -> None:
    rng = np.random.default_rng(0)
    weights, matrices = stochastic(rng, 6, 3), stochastic(rng, 3, 4, 4)
    matrices[0, 0] = [1.0, 0.0, 0.0, 0.0]
    labels = torch.tensor([0, 1, 2, 3, 1, 0])
    T = np.zeros((6, 4, 4))
    for b in range(6):
        for k in range(3):
            T[b] += weights[b, k] * matrices[k]
    w, A, expected = torch.from_numpy(weights), torch.from_numpy(matrices), torch.from_numpy(T)
    every = torch.arange(6)
    torch.testing.assert_close(mixed_rows(w, A, labels), expected[every, labels])
    columns = mixed_log_columns(w, A, labels).exp()
    torch.testing.assert_close(columns, expected[every, :, labels])
    p = torch.from_numpy(stochastic(rng, 6, 4))
    noisy = mixed_log_noisy(w, A, p.log()).exp()
    torch.testing.assert_close(noisy, (p[:, None] @ expected)[:, 0])
