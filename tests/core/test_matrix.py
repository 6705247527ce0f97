"""Checks and algebra of transition matrices, against slow oracles."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import chisquare

from bltm.core.errors import InputError
from bltm.core.matrix import (
    check_rows,
    check_transition,
    normalise_rows,
    project_to_simplex,
    sample_rows,
    towards_identity,
)

REPEATABLE = settings(derandomize=True, deadline=None)

FINITE = st.floats(-10, 10)


@pytest.mark.parametrize("shape", [(3, 3), (4, 3, 3), (2, 5, 3, 3), (0, 3, 3)])
def test_stochastic_matrices_pass_whatever_the_batch(shape: tuple[int, ...]):
    T = np.random.default_rng(0).dirichlet(np.ones(shape[-1]), size=shape[:-1])
    checked = check_transition(T.astype(np.float32))
    assert checked.shape == shape
    assert checked.dtype == np.float64


@pytest.mark.parametrize(
    ("T", "message"),
    [
        ([0.5, 0.5], r"my T: needs shape \(..., C, C\), got \(2,\)"),
        ([[0.5, 0.5]], r"my T: needs shape"),
        ([[1.1, -0.1], [0.0, 1.0]], "my T: .*non-negative.*-0.1"),
        ([[np.inf, 0.0], [0.0, 1.0]], "my T: needs finite entries, got 1 "),
        (np.full((2, 2), np.nan), "my T: needs finite entries, got 4 "),
        ([[0.9, 0.2], [0.0, 1.0]], "my T: .*row sum of 1.1"),
        ([[0.9, 0.4], [0.1, 0.6]], "transpose the matrix"),
    ],
)
def test_other_matrices_are_refused(T: Any, message: str):
    with pytest.raises(InputError, match=message):
        check_transition(T, "my T")


def test_tolerance_decides_about_row_sums():
    rows = [[0.5, 0.5 + 1e-5]]
    check_rows(rows, atol=1e-4)
    with pytest.raises(InputError, match="sum to 1"):
        check_rows(rows, atol=1e-6)


def test_rows_are_normalised_not_columns():
    matrix = torch.arange(1, 19, dtype=torch.float64).reshape(2, 3, 3)
    normalised = normalise_rows(matrix)
    assert torch.allclose(normalised.sum(dim=-1), torch.ones(2, 3, dtype=torch.float64))
    assert torch.allclose(normalised[0, 0], torch.tensor([1, 2, 3], dtype=torch.float64) / 6)
    assert torch.isfinite(normalise_rows(torch.zeros(2, 2))).all()


def test_samples_follow_their_rows():
    rows = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.0, 0.4, 0.6]])
    n = 20_000
    labels = sample_rows(np.repeat(rows, n, axis=0), np.random.default_rng(0)).reshape(4, n)
    assert labels.dtype == np.int64
    for row, drawn in zip(rows, labels, strict=True):
        counts = np.bincount(drawn, minlength=3)
        possible = row > 0
        assert (counts[~possible] == 0).all()
        if possible.sum() > 1:
            assert chisquare(counts[possible], n * row[possible]).pvalue > 1e-3


class Extremes:
    """Stand in for a generator whose draws sit at the ends of [0, 1)."""

    def __init__(self, value: float) -> None:
        self.value = value

    def random(self, shape: tuple[int, ...]) -> Any:
        return np.full(shape, self.value)


@REPEATABLE
@given(
    rows=arrays(np.float64, (5, 4), elements=st.floats(0, 1)),
    draw=st.one_of(
        st.sampled_from([0.0, np.nextafter(1.0, 0.0)]), st.floats(0, 1, exclude_max=True)
    ),
)
def test_label_of_probability_zero_is_never_drawn(rows: Any, draw: float):
    rows = np.where(rows.sum(axis=1, keepdims=True) > 1e-3, rows, [0.0, 1.0, 0.0, 0.0])
    rows = rows / rows.sum(axis=1, keepdims=True)
    labels = sample_rows(rows, Extremes(draw))  # type: ignore[arg-type]
    assert ((labels >= 0) & (labels < 4)).all()
    assert (rows[np.arange(5), labels] > 0).all()


def project_slowly(values: Any) -> Any:
    """Find by bisection the shift at which the positive parts add up to one."""
    low, high = min(values) - 1.0, max(values)
    for _ in range(200):
        shift = (low + high) / 2
        if sum(max(v - shift, 0.0) for v in values) > 1:
            low = shift
        else:
            high = shift
    return [max(v - high, 0.0) for v in values]


@REPEATABLE
@given(arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 6)), elements=FINITE))
def test_projection_agrees_with_bisection(values: Any):
    projected = project_to_simplex(values)
    check_rows(projected, atol=1e-9)
    np.testing.assert_allclose(projected, [project_slowly(v) for v in values], atol=1e-9)


@REPEATABLE
@given(arrays(np.float64, (3, 4), elements=FINITE), st.integers(0, 2**32))
def test_projection_is_the_nearest_distribution(values: Any, seed: int):
    projected = project_to_simplex(values)
    others = np.random.default_rng(seed).dirichlet(np.ones(4), size=(50, 3))
    nearest = ((projected - values) ** 2).sum(axis=-1)
    assert (nearest <= ((others - values) ** 2).sum(axis=-1) + 1e-9).all()


def test_projection_leaves_distributions_as_they_are():
    rows = np.random.default_rng(0).dirichlet(np.ones(5), size=20)
    np.testing.assert_allclose(project_to_simplex(rows), rows, atol=1e-15)


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_columns_drawn_towards_the_identity_are_those_of_the_mixed_matrix(share: float):
    T = np.random.default_rng(0).dirichlet(np.ones(4), size=4)
    T[0] = [0.0, 1.0, 0.0, 0.0]
    mixed = (1.0 - share) * np.eye(4) + share * T
    labels = torch.tensor([2, 0, 3])
    columns = torch.from_numpy(T.T[labels.numpy()]).log()
    found = towards_identity(columns, labels, share).exp().numpy()
    np.testing.assert_allclose(found, mixed.T[labels.numpy()], atol=1e-12)
    np.testing.assert_array_equal(
        columns,
        np.log(T.T[labels.numpy()], where=T.T[labels.numpy()] > 0, out=np.full((3, 4), -np.inf)),
    )
