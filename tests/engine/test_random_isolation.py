"""Nobody outside sees the package draw random numbers."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bltm.engine.batches import Batch
from bltm.engine.posteriors import network_probs
from bltm.engine.schedule import Schedule
from bltm.engine.stage import Modules
from bltm.engine.supervised import cross_entropy_step, fit_cross_entropy

from .helpers import tiny_job, weights_of

SCHEDULE = Schedule(2, 0.05, batch_size=12, select="accuracy")


def with_dropout(n_outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, n_outputs))


def global_states() -> tuple[Any, ...]:
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002
    return torch.get_rng_state().tolist(), keys.tolist(), rest, kind, random.getstate()


def test_training_and_prediction_leave_global_generators_alone() -> None:
    before = global_states()
    job = tiny_job(net=with_dropout)
    classifier = fit_cross_entropy(job, "stage", SCHEDULE)
    network_probs(job, classifier)
    assert global_states() == before


def test_an_error_inside_a_step_leaves_global_generators_alone() -> None:
    job = tiny_job(net=with_dropout)
    classifier = job.new_classifier("stage")
    before = global_states()

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        torch.rand(1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        job.train("stage", {"classifier": classifier}, step, SCHEDULE)
    assert global_states() == before


def test_an_error_in_a_factory_leaves_global_generators_alone() -> None:
    def factory(n_outputs: int) -> nn.Module:
        torch.rand(1)
        raise ZeroDivisionError

    before = global_states()
    with pytest.raises(ZeroDivisionError):
        tiny_job(net=factory).new_classifier("stage")
    assert global_states() == before


def test_the_callers_state_has_no_influence() -> None:
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        results.append(weights_of(fit_cross_entropy(tiny_job(net=with_dropout), "s", SCHEDULE)))
    assert results[0] == results[1]


def test_another_seed_gives_other_weights() -> None:
    one, other = (
        weights_of(fit_cross_entropy(tiny_job(net=with_dropout, seed=seed), "s", SCHEDULE))
        for seed in (0, 1)
    )
    assert one["0.weight"] != other["0.weight"]


def test_dropout_draws_anew_at_every_step() -> None:
    draws: list[float] = []

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        draws.append(float(torch.rand(1)))
        return cross_entropy_step(modules, batch)

    for _ in range(2):
        job = tiny_job(net=with_dropout)
        modules = {"classifier": job.new_classifier("stage")}
        job.train("stage", modules, step, SCHEDULE)
    assert len(draws) == 16
    assert len(set(draws)) == 8
    assert draws[:8] == draws[8:]
