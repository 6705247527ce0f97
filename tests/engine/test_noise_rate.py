"""The share of wrong labels: given, or estimated where nothing is known."""

import math
from typing import Any

import numpy as np
import pytest

from bltm.core.errors import InputError
from bltm.data.splits import split_noisy
from bltm.engine.job import Job
from bltm.engine.noise_rate import (
    FOLDS,
    HIGHEST,
    find_noise_rate,
    plan_noise_rate,
)
from bltm.engine.workbench import Workbench

from .helpers import FABRIC, MemoryStore, noisy_data, tiny_job


def separable(
    rate: float,
    n: int = 600,
    n_classes: int = 3,
    trusted: np.ndarray | None = None,
    **bench: Any,
) -> Job:
    """Points around corners far from each other, and a share of labels turned to the next."""
    rng = np.random.default_rng(0)
    right = rng.integers(n_classes, size=n)
    x = (6.0 * np.eye(n_classes, 4)[right] + rng.standard_normal((n, 4))).astype(np.float32)
    wrong = rng.permutation(n) < round(rate * n)
    labels = np.where(wrong, (right + rng.integers(1, n_classes, size=n)) % n_classes, right)
    if trusted is not None:
        labels = np.where(trusted, right, labels)
    data = noisy_data(x, labels, n_classes, trusted=trusted)
    return Job(data, split_noisy(data, 0.1, 0), Workbench(FABRIC, 0, **bench), "mlp")


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.4])
def test_the_estimate_is_near_the_truth_where_classes_are_apart(rate: float) -> None:
    found = find_noise_rate(separable(rate), None)
    assert found.value == pytest.approx(rate, abs=0.04)
    assert found.findings() == {
        "assumed_noise_rate": found.value,
        "assumed_noise_rate_source": "estimated",
    }


@pytest.mark.parametrize("given", [0.0, 0.25])
def test_a_rate_that_is_given_is_used_and_costs_nothing(given: float) -> None:
    job = tiny_job()
    found = find_noise_rate(job, given)
    assert found.findings() == {
        "assumed_noise_rate": given,
        "assumed_noise_rate_source": "given",
    }
    assert job.bench.outcomes == []
    assert plan_noise_rate(100, given) == []


@pytest.mark.parametrize("given", [-0.1, 1.0, 7.0, math.nan])
def test_a_rate_that_cannot_be_is_refused(given: float) -> None:
    message = "noise_rate: must be at least 0 and below 1"
    with pytest.raises(InputError, match=message):
        find_noise_rate(tiny_job(), given)
    with pytest.raises(InputError, match=message):
        plan_noise_rate(100, given)


def test_trusted_examples_are_left_out() -> None:
    """The rate is that of the others, which is where labels are left out."""
    half = np.arange(600) % 2 == 0
    found = find_noise_rate(separable(0.4, trusted=half), None)
    assert found.value == pytest.approx(0.4, abs=0.06)
    assert find_noise_rate(separable(0.4, trusted=np.ones(600, dtype=bool)), None).value == 0.0


def test_no_estimate_leaves_nothing_to_learn_from() -> None:
    job = tiny_job()
    found = find_noise_rate(job, None, epochs=0)
    assert 0.0 <= found.value <= HIGHEST


@pytest.mark.parametrize("epochs", [None, 2, 50])
def test_what_is_planned_is_done(epochs: int | None) -> None:
    job = tiny_job(n=100)
    n = len(job.split.train)
    find_noise_rate(job, None, epochs, 16)
    planned = plan_noise_rate(n, None, epochs, 16)
    assert len(planned) == FOLDS
    assert sum(o.examples_seen for o in job.bench.outcomes) == pytest.approx(
        sum(stage.work for stage in planned), rel=0.05
    )
    assert max(o.epochs for o in job.bench.outcomes) <= 25


def test_the_estimate_is_made_once() -> None:
    store = MemoryStore()
    first = find_noise_rate(separable(0.2, 120, store=store), None, epochs=2)
    saved = len(store.saved)
    assert find_noise_rate(separable(0.2, 120, store=store), None, epochs=2) == first
    assert len(store.saved) == saved
