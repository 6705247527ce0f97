"""The estimate before a fit."""

import numpy as np
import torch

from bltm.data.source import as_source
from bltm.engine.job import Job
from bltm.methods.registry import METHODS, make_method
from bltm.runs.estimate import Estimate, estimate


def fitted(method: str, **parameters: object) -> tuple[Estimate, int]:
    """Fit and return the estimate that was made before, and the steps that were made."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    source = as_source(rng.normal(size=(200, 3)) + 4 * y[:, None], y)
    model = make_method(method, random_state=0, device="cpu", **parameters)
    found: list[Estimate] = []

    def before(job: Job) -> None:
        state = torch.get_rng_state()
        found.append(estimate(job, model.plan(len(job.split.train))))
        assert torch.equal(torch.get_rng_state(), state)

    model.fit_source(source, before=before)
    return found[0], sum(1 for _ in model.history_)


def test_estimate__cross_entropy__counts_the_steps_that_are_made() -> None:
    found, epochs = fitted("cross-entropy", epochs=3, batch_size=45)
    assert epochs == 3
    assert found.steps == 3 * 4
    assert 0.0 < found.seconds < 60.0
    assert found.memory is None or found.memory > 2**20


def test_estimate__leaves_the_result_alone() -> None:
    def weights(before: bool) -> list[torch.Tensor]:
        rng = np.random.default_rng(0)
        y = np.arange(60) % 2
        source = as_source(rng.normal(size=(60, 3)) + 4 * y[:, None], y)
        model = make_method("cross-entropy", epochs=2, random_state=0, device="cpu")
        plan = model.plan(54)
        model.fit_source(
            source, before=(lambda job: estimate(job, plan) and None) if before else None
        )
        return list(model.classifier_.state_dict().values())

    for one, other in zip(weights(False), weights(True), strict=True):
        assert torch.equal(one, other)


def test_plans__name_the_stages_that_train() -> None:
    for name in METHODS:
        stages = make_method(name).plan(1000)
        assert stages
        assert all(stage.examples > 0 for stage in stages)
    planned = [stage.stage for stage in make_method("bltm-v", preset="paper").plan(1000)]
    assert planned == ["warm_up", "round-1/transition", "round-1/revise"]
    assert [s.stage for s in make_method("bltm", preset="paper").plan(1000)] == [
        "warm_up",
        "round-1/transition",
        "round-1/correct",
    ]
