"""Active passive loss as a method."""

from typing import Any

import pytest

from bltm.core.errors import InputError
from bltm.engine.schedule import Schedule
from bltm.methods.apl import PRESETS, APLClassifier
from engine.helpers import weights_of

from .helpers import sample

QUICK: dict[str, Any] = {"epochs": 4, "batch_size": 16, "random_state": 0}


def test_the_published_schedule() -> None:
    assert PRESETS["paper"] == Schedule(
        120,
        0.01,
        "sgd",
        "cosine",
        momentum=0.9,
        weight_decay=1e-4,
        clip=5.0,
        select="accuracy",
    )


def test_it_learns_from_labels_of_which_many_are_wrong() -> None:
    data = sample(400)
    assert (data.y_noisy != data.y_clean).mean() > 0.2
    model = APLClassifier(**QUICK).fit(data.x, data.y_noisy)
    assert (model.predict(data.x) == data.y_clean).mean() > 0.9


def test_both_parts_of_the_loss_count() -> None:
    data = sample()

    def fitted(alpha: float, beta: float) -> dict[str, bytes]:
        model = APLClassifier(alpha=alpha, beta=beta, **QUICK)
        return weights_of(model.fit(data.x, data.y_noisy).classifier_)

    both, active, passive = fitted(1.0, 1.0), fitted(1.0, 0.0), fitted(0.0, 1.0)
    assert both != active
    assert both != passive
    assert active != passive


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": -1.0}, "^alpha: must not be negative"),
        ({"beta": float("nan")}, "^beta: must not be negative"),
        ({"alpha": 0.0, "beta": 0.0}, "^alpha: and beta are both 0"),
    ],
)
def test_values_that_cannot_be_are_refused(parameters: dict[str, float], message: str) -> None:
    model = APLClassifier(**parameters)
    with pytest.raises(InputError, match=message):
        model.plan(100)
    data = sample()
    with pytest.raises(InputError, match=message):
        model.fit(data.x, data.y_noisy)
