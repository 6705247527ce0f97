"""Co-teaching exchanges small losses."""

import numpy as np
import pytest
import torch

from bltm.core.errors import InputError
from bltm.engine.batches import Moment
from bltm.engine.forgetting import Forgetting
from bltm.engine.pairs import exchange_step
from bltm.engine.protocol import CT200
from bltm.engine.stage import Step
from bltm.losses import cross_entropy
from bltm.methods.coteaching import CoTeachingClassifier
from engine.pair_helpers import batch_of, fixed_pair, random_logits

from .helpers import sample

LABELS = [0, 1, 2] * 4
LATE = Moment(9, 10)


def step(rate: float) -> Step:
    return exchange_step(Forgetting(rate, 0.5).keep)


def value(rate: float, first: torch.Tensor, second: torch.Tensor, moment: Moment = LATE) -> float:
    loss = step(rate)(fixed_pair(first, second), batch_of(LABELS, moment))
    assert loss is not None
    return loss.item()


def test_swapping_the_networks_swaps_the_losses() -> None:
    first, second = random_logits(0), random_logits(1)
    there, back = fixed_pair(first, second), fixed_pair(second, first)
    for modules in (there, back):
        loss = step(0.5)(modules, batch_of(LABELS, LATE))
        assert loss is not None
        loss.backward()
    torch.testing.assert_close(there["classifier"].logits.grad, back["peer"].logits.grad)
    torch.testing.assert_close(there["peer"].logits.grad, back["classifier"].logits.grad)


def test_what_a_network_finds_easy_does_not_change_what_it_learns() -> None:
    """The first learns from the second's choice, whichever losses are small in the first."""
    second = random_logits(1)
    touched = []
    for seed in (2, 3):
        modules = fixed_pair(random_logits(seed), second)
        loss = step(0.5)(modules, batch_of(LABELS, LATE))
        assert loss is not None
        loss.backward()
        touched.append((modules["classifier"].touched(), modules["peer"].touched()))
    assert touched[0][0] == touched[1][0]
    assert touched[0][1] != touched[1][1]


def test_nothing_is_left_out_at_the_start() -> None:
    first, second = random_logits(0), random_logits(1)
    labels = torch.tensor(LABELS)
    mean = float((cross_entropy(first, labels) + cross_entropy(second, labels)).mean())
    assert value(0.5, first, second, Moment(0, 10)) == pytest.approx(mean, rel=1e-6)
    assert value(0.0, first, second) == pytest.approx(mean, rel=1e-6)
    assert value(0.5, first, second) != pytest.approx(mean, rel=1e-2)


def test_the_scale_of_the_gradient_is_that_of_cross_entropy() -> None:
    """Divided by the count of kept examples twice, it would be a sixth of that here."""
    logits = torch.zeros(12, 3)
    modules = fixed_pair(logits, logits)
    loss = step(0.5)(modules, batch_of(LABELS, LATE))
    assert loss is not None
    loss.backward()
    plain = torch.zeros(12, 3, requires_grad=True)
    cross_entropy(plain, torch.tensor(LABELS)).mean().backward()
    assert plain.grad is not None
    assert modules["classifier"].logits.grad is not None
    assert float(modules["classifier"].logits.grad.abs().sum()) == pytest.approx(
        float(plain.grad.abs().sum()), rel=1e-5
    )


def test_the_presets() -> None:
    *probes, stage = CoTeachingClassifier().plan(10_000)
    assert sum(planned.work for planned in [*probes, stage]) / 10_000 == 48
    (stage,) = CoTeachingClassifier(preset="paper", noise_rate=0.2).plan(10_000)
    assert stage.schedule == CT200
    assert stage.passes == 2


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"noise_rate": -0.2}, "noise_rate: must be at least 0 and below 1, got -0.2"),
        ({"ramp": 2.0}, "ramp: must be a share"),
        ({"exponent": 0.0}, "exponent: must be above 0"),
        ({"forget": "none"}, "forget: unknown: 'none'"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, float], message: str) -> None:
    data = sample(60)
    with pytest.raises(InputError, match=message):
        CoTeachingClassifier(**parameters).plan(100)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=message):
        CoTeachingClassifier(**parameters).fit(data.x, data.y_noisy)  # type: ignore[arg-type]


def test_it_learns_and_finds_wrong_labels() -> None:
    data = sample(300)
    model = CoTeachingClassifier(random_state=0, epochs=20).fit(data.x, data.y_noisy)
    assert (model.predict(data.x) == data.y_bayes).mean() > 0.8
    wrong = data.y_noisy != data.y_bayes
    doubt = model.suspicion_.values
    assert doubt[wrong].mean() > doubt[~wrong].mean() + 0.2
    assert model.suspicion_.kind == "score"


def test_the_codes_forget_rate_gives_another_result() -> None:
    data = sample(90)
    probs = [
        CoTeachingClassifier(
            noise_rate=0.4, exponent=2.0, ramp=1.0, forget=forget, epochs=4, random_state=0
        )
        .fit(data.x, data.y_noisy)
        .predict_proba(data.x)
        for forget in ("paper", "code")
    ]
    assert not np.array_equal(*probs)
