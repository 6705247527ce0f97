"""The estimate of rho_max."""

import numpy as np
import pytest
from tests.audit.problems import class_dependent, instance_dependent, pair, symmetric

from bltm.audit import estimate_rho_max
from bltm.core.errors import InputError


@pytest.mark.parametrize("rate", [0.1, 0.2, 0.35])
def test_class_dependent_flips_are_found(rate: float) -> None:
    problem = class_dependent(10_000, pair(5, rate), blur=0.03)
    bound = estimate_rho_max(problem.noisy, problem.labels)
    assert bound.value == pytest.approx(rate, abs=0.1)
    assert bound.low <= rate <= bound.high


def test_flips_that_spread_have_a_small_bound() -> None:
    spread = class_dependent(10_000, symmetric(5, 0.4), blur=0.02)
    assert estimate_rho_max(spread.noisy, spread.labels).value == pytest.approx(0.1, abs=0.06)


def test_the_interval_covers_flips_that_depend_on_the_example() -> None:
    problem = instance_dependent(10_000, 5, 0.2)
    bound = estimate_rho_max(problem.noisy, problem.labels)
    assert bound.low <= 0.38 <= bound.high
    assert "too low" in bound.assumptions


def test_examples_of_weight_zero_are_left_out() -> None:
    problem = class_dependent(4000, pair(4, 0.3), blur=0.03)
    weights = (problem.labels == problem.right).astype(float)
    clean = estimate_rho_max(problem.noisy, problem.labels, weights)
    assert clean.value < 0.05


def test_what_is_no_posterior_is_refused() -> None:
    with pytest.raises(InputError, match="noisy_posteriors"):
        estimate_rho_max(np.full((3, 2), 0.9), np.zeros(3, dtype=int))
