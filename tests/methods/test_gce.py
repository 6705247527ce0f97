"""Generalised cross-entropy as a method, plain and truncated."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bltm.core.errors import InputError
from bltm.engine.schedule import Schedule
from bltm.engine.workbench import Interrupted
from bltm.methods.gce import PRESETS, GCEClassifier, is_pruning_epoch, likely_labels
from engine.helpers import MemoryStore, tiny_job, weights_of

from .helpers import sample

QUICK: dict[str, Any] = {"epochs": 6, "batch_size": 16, "random_state": 0}


class Watched(nn.Module):
    """A linear network that writes down its weights at each forward pass of training."""

    def __init__(self, n_outputs: int) -> None:
        super().__init__()
        self.layer = nn.Linear(4, n_outputs)
        self.seen: list[bytes] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.seen.append(self.layer.weight.detach().numpy().tobytes())
        return self.layer(x)  # type: ignore[no-any-return]


def test_the_published_schedule() -> None:
    assert PRESETS["paper"] == Schedule(
        120, 0.01, "sgd", "steps", (40, 80), momentum=0.9, weight_decay=1e-4, select="accuracy"
    )
    assert [e for e in range(120) if is_pruning_epoch(e, 120)] == list(range(40, 120, 10))


@pytest.mark.parametrize("epochs", range(1, 40))
def test_labels_are_left_out_from_a_third_of_the_training_on(epochs: int) -> None:
    chosen = [e for e in range(epochs) if is_pruning_epoch(e, epochs)]
    assert all(e >= epochs / 3 for e in chosen)
    assert epochs == 1 or chosen


def test_labels_above_the_threshold_are_kept() -> None:
    probs = torch.tensor([[0.6, 0.4], [0.5, 0.5], [0.2, 0.8], [0.9, 0.1]])
    labels = torch.tensor([0, 0, 1, 1])
    assert likely_labels(probs.log(), labels, 0.5).tolist() == [True, False, True, False]


def test_a_class_that_is_not_learned_yet_is_not_given_up() -> None:
    probs = torch.tensor([[0.6, 0.4], [0.3, 0.7], [0.8, 0.2], [0.9, 0.1]])
    labels = torch.tensor([0, 0, 1, 1])
    assert likely_labels(probs.log(), labels, 0.5).tolist() == [True, False, True, True]


def test_the_network_that_is_trained_is_the_one_that_leaves_labels_out() -> None:
    made: list[Watched] = []

    def net(n_outputs: int) -> nn.Module:
        made.append(Watched(n_outputs))
        return made[-1]

    job = tiny_job(net=net)
    result = GCEClassifier(truncated=True, lr=0.05, epochs=6, batch_size=12)._fit(job)
    assert [result.classifier] == made
    # Weights move at every step of every epoch, those that begin with a choice of labels included.
    assert len(made[0].seen) == 6 * 4
    assert len(set(made[0].seen)) == 6 * 4


def test_a_threshold_of_zero_leaves_nothing_out() -> None:
    data = sample()
    plain = GCEClassifier(**QUICK).fit(data.x, data.y_noisy)
    all_kept = GCEClassifier(truncated=True, threshold=0.0, **QUICK).fit(data.x, data.y_noisy)
    assert weights_of(plain.classifier_) == weights_of(all_kept.classifier_)
    assert all_kept.findings_["left_out"] == 0.0
    assert "left_out" not in plain.findings_


def test_wrong_labels_are_left_out_and_trusted_ones_are_not() -> None:
    data = sample(400)
    wrong = data.y_noisy != data.y_clean
    quick = QUICK | {"epochs": 12, "validation_fraction": 0.0}
    model = GCEClassifier(truncated=True, **quick).fit(data.x, data.y_noisy)
    assert 0.5 * wrong.mean() < model.findings_["left_out"] < 2.0 * wrong.mean()
    assert (model.predict(data.x) == data.y_clean).mean() > 0.9
    everyone = np.ones(400, dtype=bool)
    trusting = GCEClassifier(truncated=True, **quick).fit(data.x, data.y_noisy, trusted=everyone)
    assert trusting.findings_["left_out"] == 0.0


@pytest.mark.parametrize("stop_at", [2, 8, 9, 12, 23])
def test_an_interrupted_truncated_fit_ends_the_same(stop_at: int) -> None:
    def fit(store: MemoryStore, limit: int | None = None) -> Any:
        steps = 0

        def stop() -> bool:
            nonlocal steps
            steps += 1
            return steps == limit

        job = tiny_job(store=store, stop_requested=stop)
        model = GCEClassifier(truncated=True, lr=0.02, epochs=6, batch_size=12)
        result = model._fit(job)
        return weights_of(result.classifier), result.findings

    whole = fit(MemoryStore())
    assert whole[1]["left_out"] > 0.0
    store = MemoryStore()
    with pytest.raises(Interrupted):
        fit(store, stop_at)
    assert fit(store) == whole
    assert fit(store) == whole


@pytest.mark.parametrize(
    ("name", "value"),
    [("q", 0.0), ("q", 1.5), ("q", float("nan")), ("threshold", 1.0), ("threshold", -0.1)],
)
def test_values_that_cannot_be_are_refused(name: str, value: float) -> None:
    model = GCEClassifier(**{name: value})
    with pytest.raises(InputError, match=f"^{name}: must"):
        model.plan(100)
    data = sample()
    with pytest.raises(InputError, match=f"^{name}: must"):
        model.fit(data.x, data.y_noisy)
