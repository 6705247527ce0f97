"""The inversion of section 4.1 recovers posteriors and survives matrices without inverse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bltm.core.errors import InputError
from bltm.transition import bayes_posterior, inversion


def random_case(seed: int, n: int, n_classes: int) -> tuple[NDArray[np.float64], ...]:
    rng = np.random.default_rng(seed)
    T = 0.5 * rng.dirichlet(np.ones(n_classes), (n, n_classes)) + 0.5 * np.eye(n_classes)
    return rng.dirichlet(np.ones(n_classes), n), T


cases = st.builds(random_case, st.integers(0, 10_000), st.integers(1, 20), st.integers(1, 6))


@settings(max_examples=40, deadline=None)
@given(cases)
def test_exact_posteriors_are_recovered(case: tuple[NDArray[np.float64], ...]) -> None:
    p, T = case
    q = np.array([[p[n] @ T[n, :, j] for j in range(p.shape[1])] for n in range(len(p))])
    np.testing.assert_allclose(bayes_posterior(q, T), p, atol=1e-8)
    np.testing.assert_allclose(bayes_posterior(p @ T[0], T[0]), p, atol=1e-8)


@settings(max_examples=40, deadline=None)
@given(cases)
def test_any_posterior_gives_a_point_of_the_simplex(case: tuple[NDArray[np.float64], ...]) -> None:
    q, T = case
    found = bayes_posterior(q, T)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_float32_estimates_are_accepted() -> None:
    p, T = random_case(1, 50, 4)
    q = np.einsum("ni,nij->nj", p, T).astype(np.float32)
    np.testing.assert_allclose(bayes_posterior(q, T.astype(np.float32)), p, atol=1e-4)


@pytest.mark.parametrize("nudge", [0.0, 1e-13])
def test_singular_matrices_do_not_spoil_their_neighbours(nudge: float) -> None:
    p, T = random_case(2, 4, 3)
    T[1] = 1 / 3
    T[1, 0] += [nudge, -nudge, 0.0]
    q = np.einsum("ni,nij->nj", p, T)
    found = bayes_posterior(q, T)
    np.testing.assert_allclose(found[[0, 2, 3]], p[[0, 2, 3]], atol=1e-6)
    np.testing.assert_allclose(found[1], 1 / 3, atol=1e-6)


def test_blocks_give_what_one_piece_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    q, T = random_case(3, 25, 3)
    whole = bayes_posterior(q, T)
    monkeypatch.setattr(inversion, "BLOCK", 4 * 9)
    np.testing.assert_allclose(bayes_posterior(q, T), whole, atol=1e-12)


def test_wrong_shapes_and_orientation_are_refused() -> None:
    q, T = random_case(4, 5, 3)
    with pytest.raises(InputError, match="T: has shape"):
        bayes_posterior(q, T[:4])
    with pytest.raises(InputError, match="transpose"):
        bayes_posterior(q, T.swapaxes(1, 2))
