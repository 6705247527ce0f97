"""T-Revision: three stages, and an offset that really learns."""

import numpy as np
import pytest

from bltm.core.errors import InputError
from bltm.core.matrix import sample_rows
from bltm.engine.protocol import BUDGET
from bltm.methods.t_revision import TRevisionClassifier
from bltm.transition import anchor_transition

from .helpers import sample

DATA = sample()


def quick(**parameters: object) -> TRevisionClassifier:
    settings = {"epochs": 2, "batch_size": 32, "random_state": 0}
    return TRevisionClassifier(**(settings | parameters))  # type: ignore[arg-type]


def offset(model: TRevisionClassifier) -> float:
    assert model.transition_ is not None
    return float(model.transition_.revision.delta.abs().max())  # type: ignore[union-attr, operator]


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_there_are_three_stages(preset: str) -> None:
    model = quick(preset=preset).fit(DATA.x, DATA.y_noisy)
    stages = list(dict.fromkeys(line["stage"] for line in model.history_))
    assert stages == ["estimate", "reweight", "revise"]
    assert [stage.stage for stage in model.plan(100)] == stages
    T = np.asarray(model.predict_transition(DATA.x))
    assert (T[0] == T).all()
    np.testing.assert_allclose(T.sum(axis=2), 1.0, atol=1e-6)


def test_published_schedules_are_those_of_the_paper() -> None:
    estimate, reweight, revise = TRevisionClassifier(preset="paper").plan(1000)
    assert (estimate.schedule.epochs, estimate.schedule.momentum) == (20, 0.0)
    assert (reweight.schedule.epochs, reweight.schedule.milestones) == (200, (40, 80))
    assert (revise.schedule.epochs, revise.schedule.lr) == (200, 5e-7)
    assert revise.schedule.optimizer == "adam"


def test_the_default_revision_is_short_and_has_to_be_better_than_none() -> None:
    *_, revise = TRevisionClassifier().plan(10_000)
    assert (revise.schedule.epochs, revise.schedule.select) == (2, "loss")
    assert revise.schedule.keep_start
    assert sum(s.work for s in TRevisionClassifier().plan(10_000)) / 10_000 <= BUDGET


def test_the_offset_learns_at_its_own_rate() -> None:
    settings = {"lr": 2e-3, "validation_fraction": 0.0}
    frozen = quick(revision_rate=0.0, **settings).fit(DATA.x, DATA.y_noisy)
    assert offset(frozen) == 0.0
    assert frozen.posterior_ is not None
    T = np.asarray(frozen.predict_transition(DATA.x[:1]))[0]
    order = np.lexsort(DATA.x.T)  # every example trains, in any order
    np.testing.assert_allclose(T, anchor_transition(frozen.posterior_.probs[order]), atol=1e-6)
    slow = offset(quick(revision_rate=1.0, **settings).fit(DATA.x, DATA.y_noisy))
    fast = offset(quick(revision_rate=10.0, **settings).fit(DATA.x, DATA.y_noisy))
    assert 0.0 < slow < fast


def test_a_t_that_is_too_timid_is_revised_towards_the_truth() -> None:
    data = sample(600)
    truth = np.array([[0.7, 0.3, 0.0], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]])
    noisy = sample_rows(truth[data.y_bayes], np.random.default_rng(0))
    timid = 0.5 * truth + 0.5 * np.eye(3)
    settings = {"epochs": 12, "batch_size": 32, "lr": 3e-3, "revision_rate": 1.0}
    model = quick(transition=timid, **settings).fit(data.x, noisy)
    T = np.asarray(model.predict_transition(data.x[:1]))[0]
    assert np.abs(T - truth).sum() < np.abs(timid - truth).sum()


def test_a_negative_rate_is_refused() -> None:
    with pytest.raises(InputError, match="revision_rate: must not be negative, got -1"):
        quick(revision_rate=-1.0).plan(100)
