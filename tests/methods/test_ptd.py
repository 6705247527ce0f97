"""PTD and PTD-V: a matrix for each example, and a model that is saved with all it takes."""

from pathlib import Path

import numpy as np
import pytest
from torch import nn

import bltm
from bltm.core.errors import CoverageWarning, InputError
from bltm.engine.protocol import BUDGET
from bltm.methods.ptd import PTDClassifier
from bltm.transition import anchor_transition

from .helpers import same, sample

DATA = sample()


def quick(**parameters: object) -> PTDClassifier:
    settings = {"epochs": 3, "batch_size": 32, "n_parts": 3, "random_state": 0}
    return PTDClassifier(**(settings | parameters))  # type: ignore[arg-type]


def own(n_outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, n_outputs))


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("revision", [False, True])
def test_the_plan_is_what_is_trained(preset: str, revision: bool) -> None:
    model = quick(preset=preset, revision=revision).fit(DATA.x, DATA.y_noisy)
    stages = list(dict.fromkeys(line["stage"] for line in model.history_))
    assert stages == ["warm_up", "reweight", "revise"][: 2 + revision]
    assert [stage.stage for stage in model.plan(100)] == stages
    assert model.transition_ is not None
    assert (model.transition_.revision is not None) == revision
    assert model.suspicion_.kind == "probability"


def test_published_schedules_and_the_budget() -> None:
    planned = PTDClassifier(preset="paper", revision=True).plan(1000)
    assert [stage.schedule.epochs for stage in planned] == [5, 50, 50]
    assert [stage.schedule.lr for stage in planned] == [0.01, 0.01, 5e-7]
    default = PTDClassifier(revision=True).plan(10_000)
    assert sum(stage.work for stage in default) / 10_000 <= BUDGET


def test_every_example_has_a_matrix_of_its_own_that_does_not_depend_on_its_place() -> None:
    data = sample(600)
    model = quick().fit(data.x, data.y_noisy)
    T = np.asarray(model.predict_transition(data.x))
    assert T.shape == (600, 3, 3)
    assert (T >= 0).all()
    np.testing.assert_allclose(T.sum(axis=2), 1.0, atol=1e-5)
    assert np.ptp(T, axis=0).max() > 0.01
    order = np.random.default_rng(0).permutation(600)
    np.testing.assert_allclose(model.predict_transition(data.x[order]), T[order], atol=1e-6)
    rows = np.asarray(model.predict_transition(data.x, rows=data.y_noisy))
    np.testing.assert_allclose(rows, T[np.arange(600), data.y_noisy], atol=1e-6)


def test_one_part_is_one_matrix_for_all() -> None:
    model = quick(n_parts=1, validation_fraction=0.0).fit(DATA.x, DATA.y_noisy)
    T = np.asarray(model.predict_transition(DATA.x))
    assert model.posterior_ is not None
    expected = anchor_transition(model.posterior_.probs)
    np.testing.assert_allclose(T, np.broadcast_to(expected, T.shape), atol=1e-6)


def test_the_offset_moves_and_zero_rate_is_plain_ptd() -> None:
    plain = quick(validation_fraction=0.0).fit(DATA.x, DATA.y_noisy)
    for rate, moves in ((0.0, False), (5.0, True)):
        settings = {"revision": True, "revision_rate": rate, "validation_fraction": 0.0}
        model = quick(**settings).fit(DATA.x, DATA.y_noisy)
        difference = np.asarray(model.predict_transition(DATA.x)) - plain.predict_transition(DATA.x)
        assert (np.abs(difference).max() > 1e-4) == moves


@pytest.mark.parametrize("revision", [False, True])
@pytest.mark.parametrize("net", ["auto", own])
def test_a_loaded_model_predicts_the_same_bytes(
    revision: bool, net: object, tmp_path: Path
) -> None:
    model = quick(revision=revision, net=net).fit(DATA.x, DATA.y_noisy)
    model.save(tmp_path)
    loaded = bltm.load(tmp_path) if net == "auto" else bltm.load(tmp_path, net=own)
    assert isinstance(loaded, PTDClassifier)
    assert same(loaded.predict_proba(DATA.x), model.predict_proba(DATA.x))
    assert same(
        np.asarray(loaded.predict_transition(DATA.x)), np.asarray(model.predict_transition(DATA.x))
    )
    assert not any(p.requires_grad for p in loaded.transition_.parameters())  # type: ignore[union-attr]


def test_images_are_taken_apart_by_a_convolutional_net(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    images = (rng.integers(0, 128, (60, 12, 12)) + 127 * y[:, None, None]).astype(np.uint8)
    model = quick(revision=True).fit(images, y)
    model.save(tmp_path)
    loaded = bltm.load(tmp_path)
    assert same(
        np.asarray(loaded.predict_transition(images)), np.asarray(model.predict_transition(images))
    )


def test_fewer_anchors_than_parts_are_told() -> None:
    with pytest.warns(CoverageWarning, match=r"anchor points of class .* Fewer parts \(n_parts\)"):
        quick(n_parts=10).fit(DATA.x, DATA.y_noisy)


@pytest.mark.parametrize("wrong", [{"n_parts": 0}, {"revision_rate": -0.5}])
def test_values_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(wrong))}: must"):
        quick(**wrong).plan(100)
