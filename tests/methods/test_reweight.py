"""Reweight: which networks it trains, and that the weights do their work."""

import numpy as np
import pytest

from bltm.core.errors import InputError
from bltm.core.matrix import sample_rows
from bltm.engine.protocol import BUDGET
from bltm.methods.reweight import ReweightClassifier

from .helpers import quick_cross_entropy, sample

DATA = sample()
T = np.array([[0.55, 0.45, 0.0], [0.0, 0.55, 0.45], [0.0, 0.0, 1.0]])


def quick(**parameters: object) -> ReweightClassifier:
    settings = {"epochs": 2, "batch_size": 32, "random_state": 0}
    return ReweightClassifier(**(settings | parameters))  # type: ignore[arg-type]


def stages(model: ReweightClassifier) -> list[str]:
    return list(dict.fromkeys(line["stage"] for line in model.history_))


def test_a_known_t_helps_against_noise_that_depends_on_the_class() -> None:
    data = sample(600)
    noisy = sample_rows(T[data.y_bayes], np.random.default_rng(0))
    settings = {"epochs": 15, "batch_size": 32, "lr": 5e-3}
    model = quick(transition=T, **settings).fit(data.x, noisy)
    plain = quick_cross_entropy(**settings).fit(data.x, noisy)
    scores = [(m.predict(data.x) == data.y_bayes).mean() for m in (model, plain)]
    assert scores[0] > scores[1] + 0.03
    assert model.suspicion_.kind == "probability"
    wrong = model.suspicion_.values[noisy != data.y_bayes].mean()
    assert wrong > model.suspicion_.values[noisy == data.y_bayes].mean() + 0.2


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("transition", ["anchor", "counted", T])
def test_the_plan_is_what_is_trained(preset: str, transition: object) -> None:
    model = quick(preset=preset, transition=transition).fit(DATA.x, DATA.y_noisy)
    planned = model.plan(100)
    assert [stage.stage for stage in planned] == stages(model)
    assert model.findings_["passes"] == pytest.approx(2 * len(planned))
    expected = "given" if isinstance(transition, np.ndarray) else transition
    assert model.findings_["transition_source"] == expected


def test_the_paper_starts_from_the_network_of_the_estimate() -> None:
    """With a rate of zero after it, the classifier is that network."""
    model = quick(preset="paper", epochs=None).plan(1000)
    assert [(s.schedule.epochs, s.schedule.lr) for s in model] == [(20, 0.01), (100, 0.01)]
    assert model[0].schedule.momentum == 0.0
    assert model[1].schedule.milestones == (40, 80)
    still = quick(preset="paper", transition=T, lr=0.0).fit(DATA.x, DATA.y_noisy)
    assert stages(still) == ["estimate", "reweight"]
    assert still.posterior_ is not None
    np.testing.assert_allclose(still.probs_, still.posterior_.probs, atol=1e-6)


def test_the_default_is_within_the_budget() -> None:
    assert sum(s.work for s in ReweightClassifier().plan(10_000)) / 10_000 <= BUDGET


def test_a_transition_that_cannot_be_is_refused_by_the_plan() -> None:
    with pytest.raises(InputError, match="transition: unknown: 'exact'"):
        quick(transition="exact").plan(100)
