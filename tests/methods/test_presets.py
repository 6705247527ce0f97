"""The published schedules, as published."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import save_file
from sklearn.datasets import load_digits

from bltm.core.errors import InputError
from bltm.engine.schedule import Schedule
from bltm.methods.bltm import BLTMClassifier
from bltm.methods.bltm.presets import DEFAULT, PAPER, PRESETS, RHO_MAX
from bltm.methods.cross_entropy import CrossEntropyClassifier
from bltm.nets.registry import make_net

from .helpers import sample


@pytest.mark.parametrize(
    ("preset", "epochs", "rho"), [("paper", (5, 5, 50), 0.3), ("authors", (10, 50, 20), 0.1)]
)
def test_a_published_preset_is_what_was_published(
    preset: str, epochs: tuple[int, int, int], rho: float
) -> None:
    recipe = PRESETS[preset]
    warm_up, transition, classifier = epochs
    sgd: dict[str, Any] = {"lr": 0.01, "optimizer": "sgd", "momentum": 0.9, "batch_size": 128}
    adam: dict[str, Any] = {
        "lr": 5e-7,
        "optimizer": "adam",
        "weight_decay": 1e-4,
        "batch_size": 128,
    }
    assert recipe.warm_up == Schedule(warm_up, **sgd, select="accuracy")
    assert recipe.transition == Schedule(transition, **sgd)
    assert recipe.classifier == Schedule(classifier, **adam, select="accuracy")
    assert recipe.revision == recipe.classifier
    assert RHO_MAX[preset] == rho
    assert recipe.start_from_warm_up
    assert not recipe.residual
    assert recipe.penalty == (0.0, 0.0)
    assert recipe.least_share == 0.0
    assert recipe.revise_at_once
    assert (recipe.collector, recipe.rounds, recipe.last_starts) == ("in-sample", 1, 1)


@pytest.mark.parametrize(
    ("revision", "stages"),
    [
        (True, {"warm_up": 5, "round-1/transition": 5, "round-1/revise": 50}),
        (False, {"warm_up": 5, "round-1/transition": 5, "round-1/correct": 50}),
    ],
)
@pytest.mark.filterwarnings("ignore::bltm.core.errors.CollapseWarning")
def test_the_papers_preset_runs_its_epochs_and_starts_from_the_warm_up(
    revision: bool, stages: dict[str, int]
) -> None:
    data = sample(400)
    model = BLTMClassifier(preset="paper", revision=revision, rho_max=0.0, random_state=0)
    model.fit(data.x, data.y_noisy)
    found = {name: 0 for name in stages}
    for line in model.history_:
        found[line["stage"]] += 1
    assert found == stages
    # A rate of 5e-7 moves nothing far: the classifier is the warmed-up network, nearly.
    assert not model.posterior_.out_of_sample
    np.testing.assert_allclose(model.predict_proba(data.x), model.posterior_.probs, atol=0.01)
    assert model.posterior_.probs.std(axis=0).min() > 0.05


@pytest.mark.parametrize(
    ("preset", "shape", "net"),
    [
        ("paper", (1, 28, 28), "resnet18"),
        ("paper", (3, 32, 32), "resnet34"),
        ("authors", (3, 32, 32), "resnet34-unpadded"),
        ("paper", (7,), "auto"),
        ("default", (1, 28, 28), "auto"),
    ],
)
def test_published_presets_take_the_papers_networks_for_images(
    preset: str, shape: tuple[int, ...], net: str
) -> None:
    assert BLTMClassifier(preset=preset)._net(shape) == net
    assert BLTMClassifier("compact", preset=preset)._net(shape) == "compact"


@pytest.mark.parametrize("kind", [BLTMClassifier, CrossEntropyClassifier])
def test_an_unknown_preset_is_refused(kind: Any) -> None:
    data = sample()
    with pytest.raises(InputError, match="preset: unknown: 'best'"):
        kind(preset="best").fit(data.x, data.y_noisy)


@pytest.mark.parametrize(("name", "value"), [("rounds", 0), ("folds", 1)])
def test_too_few_rounds_or_folds_are_refused(name: str, value: int) -> None:
    data = sample()
    with pytest.raises(InputError, match=f"{name}: must be at least"):
        BLTMClassifier(**{name: value}).fit(data.x, data.y_noisy)


def test_the_users_figures_override_every_stage() -> None:
    recipe = PRESETS["default"].with_overrides(3, 17, 0.5)
    for schedule in (recipe.warm_up, recipe.transition, recipe.classifier, recipe.revision):
        assert (schedule.epochs, schedule.batch_size, schedule.lr) == (3, 17, 0.5)


class Soon(BLTMClassifier):
    """BLTM that holds 150 examples for many."""

    presets = {"default": replace(DEFAULT, normalised_examples=150)}


def fastest(n_examples: int, **parameters: Any) -> float:
    """Return the largest learning rate at which an epoch ended."""
    digits = load_digits(n_class=3)
    x, y = digits.images[:n_examples], digits.target[:n_examples]
    model = Soon(epochs=4, batch_size=32, rounds=1, folds=2, random_state=0, **parameters)
    return float(max(line["lr"] for line in model.fit(x, y).history_))


@pytest.mark.parametrize(("n_examples", "factor"), [(100, 1), (200, 3)])
def test_networks_that_normalise_their_layers_learn_faster_from_many_examples(
    n_examples: int, factor: float
) -> None:
    plain, normalised = fastest(n_examples, net="mlp"), fastest(n_examples, net="compact")
    assert normalised == pytest.approx(factor * plain)
    # The user's own rate is taken as it is.
    assert fastest(n_examples, net="compact", lr=1e-3) == pytest.approx(plain / 2)


def test_networks_that_normalise_their_layers_are_reluctant_to_learn_for_shorter() -> None:
    assert DEFAULT.classifier.reluctance == 0.0
    for n_examples in (10, 10_000):
        suited = DEFAULT.for_normalised(n_examples)
        assert suited.classifier.reluctance == DEFAULT.normalised_reluctance > 0
        assert PAPER.for_normalised(n_examples) == PAPER


def test_weights_that_are_given_are_not_learned_over_so_fast(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_file(make_net("compact", (1, 8, 8), 3).state_dict(), path)
    slow = fastest(200, net="compact", weights=path)
    assert slow == pytest.approx(fastest(200, net="mlp"))
