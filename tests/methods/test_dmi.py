"""L_DMI as a method: cross-entropy first, then the determinant."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bltm.core.errors import CollapseWarning, InputError
from bltm.engine.schedule import Schedule
from bltm.engine.supervised import fit_cross_entropy
from bltm.methods.dmi import PRESETS, DMIClassifier, training_joint
from engine.helpers import tiny_job, weights_of

from .helpers import sample

QUICK: dict[str, Any] = {"epochs": 3, "batch_size": 32, "random_state": 0}


def test_the_published_schedules() -> None:
    paper = PRESETS["paper"]
    assert paper.cross_entropy == Schedule(
        120, 0.1, "sgd", "steps", (40, 80), weight_decay=1e-4, batch_size=256, select="accuracy"
    )
    assert paper.dmi == Schedule(
        100, 1e-6, "sgd", weight_decay=1e-4, batch_size=256, select="accuracy", keep_start=True
    )
    assert paper.smoothing == 0.0


def epochs_of(model: DMIClassifier, stage: str) -> list[dict[str, Any]]:
    return [line for line in model.history_ if line["stage"] == stage]


def test_the_second_stage_goes_on_from_the_first_and_raises_the_information() -> None:
    data = sample(300)
    model = DMIClassifier(epochs=6, batch_size=128, lr=2e-3, random_state=0)
    model.fit(data.x, data.y_noisy)
    assert list(dict.fromkeys(line["stage"] for line in model.history_)) == ["cross_entropy", "dmi"]
    losses = [line["loss"] for line in epochs_of(model, "dmi")]
    assert losses[-1] < losses[0]
    # Labels that tell nothing of three equally frequent predictions have a determinant of 0, and
    # predictions that are always right one of 1/27.
    assert losses[0] < 8.0
    assert losses[-1] > np.log(27)


@pytest.mark.parametrize("preset", PRESETS)
def test_the_network_of_the_first_stage_competes_with_those_of_the_second(preset: str) -> None:
    assert PRESETS[preset].dmi.keep_start
    assert PRESETS[preset].dmi.select == "accuracy"


def test_the_joint_over_all_training_examples_is_weighted() -> None:
    job = tiny_job()
    job.data.weights[:] = np.arange(1, 61)
    classifier = job.new_classifier("c")
    joint = training_joint(job, classifier)
    train = job.split.train
    mass = np.bincount(job.data.labels[train], job.data.weights[train], 3)
    np.testing.assert_allclose(joint.sum(1), mass / mass.sum(), rtol=1e-5)


def moves_in_second_stage(smoothing: float, batch_size: int) -> bool:
    job = tiny_job(n_classes=4, validation=0.0)
    model = DMIClassifier(epochs=1, batch_size=batch_size, lr=0.01, smoothing=smoothing)
    after = weights_of(model._fit(job).classifier)
    first = tiny_job(n_classes=4, validation=0.0)
    schedule = model.plan(60)[0].schedule
    return after != weights_of(fit_cross_entropy(first, "cross_entropy", schedule))


def test_batches_without_some_class_teach_nothing_as_published_and_something_smoothed() -> None:
    # Three examples cannot have four labels.
    assert not moves_in_second_stage(0.0, 3)
    assert moves_in_second_stage(0.1, 3)
    assert moves_in_second_stage(0.0, 60)


@pytest.mark.parametrize("smoothing", [None, 0.0])
def test_a_class_without_examples_does_no_harm(smoothing: float | None) -> None:
    data = sample(200)
    classes = [0, 1, 2, 7]
    model = DMIClassifier(classes=classes, smoothing=smoothing, **QUICK | {"epochs": 6})
    model.fit(data.x, data.y_noisy)
    assert (model.predict(data.x) == data.y_clean).mean() > 0.85
    assert any(line["loss"] != 0.0 for line in epochs_of(model, "dmi"))


def test_two_classes_few_examples_and_weights() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 3))
    y = (x[:, 0] > 0).astype(int)
    model = DMIClassifier(epochs=8, batch_size=16, random_state=0)
    model.fit(x, y, sample_weight=rng.uniform(0.5, 2.0, 30))
    assert all(np.isfinite(line["loss"]) for line in model.history_)
    assert model.score(x, y) > 0.7


class Constant(nn.Module):
    """Says the same of everything."""

    def __init__(self, n_outputs: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(n_outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.logits.expand(len(x), -1)


def test_a_network_that_tells_nothing_ends_without_an_error() -> None:
    data = sample()
    with pytest.warns(CollapseWarning):
        model = DMIClassifier(Constant, **QUICK).fit(data.x, data.y_noisy)
    assert np.isfinite(model.predict_proba(data.x)).all()


@pytest.mark.parametrize("value", [-0.1, 1.0, float("nan")])
def test_a_smoothing_that_cannot_be_is_refused(value: float) -> None:
    model = DMIClassifier(smoothing=value)
    with pytest.raises(InputError, match="^smoothing: must be at least 0 and below 1"):
        model.plan(100)


def test_several_processes_are_refused() -> None:
    with pytest.raises(InputError, match="determinant of a matrix"):
        DMIClassifier().check_processes(2)
