"""Joint optimisation of a network and its labels."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bltm.core.errors import InputError
from bltm.engine.schedule import Schedule
from bltm.engine.workbench import Interrupted
from bltm.losses import cross_entropy
from bltm.methods.joint import (
    PRESETS,
    JointClassifier,
    Recipe,
    class_prior,
    mean_prediction,
    refine,
)
from engine.helpers import MemoryStore, tiny_job, weights_of

from .helpers import sample

QUICK: dict[str, Any] = {"epochs": 6, "batch_size": 16, "random_state": 0}
ONE_BATCH = Schedule(5, 0.05, "adamw", batch_size=60)


def recipe(**changes: Any) -> Recipe:
    settings = {"alpha": 0.5, "beta": 0.1, "window": 2, "begin": 0.4, "refine": ONE_BATCH}
    return replace(PRESETS["default"], **(settings | changes))


class Watched(nn.Module):
    """A linear network that writes down what it says in training."""

    def __init__(self, n_outputs: int) -> None:
        super().__init__()
        self.layer = nn.Linear(4, n_outputs)
        self.said: list[tuple[torch.Tensor, torch.Tensor]] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.layer(x)
        if self.training:
            self.said.append((x.detach().clone(), logits.detach().softmax(-1)))
        return logits


def test_the_published_schedules_and_settings() -> None:
    paper = PRESETS["paper"]
    assert paper.refine == Schedule(200, 0.08, "sgd", "constant", momentum=0.9, weight_decay=1e-4)
    assert paper.retrain == Schedule(
        120, 0.2, "sgd", "steps", (40, 80), weight_decay=1e-4, select="accuracy"
    )
    assert (paper.alpha, paper.beta, paper.window) == (1.2, 0.8, 10)
    assert round(paper.begin * 200) == 70


def test_the_mean_is_of_the_epochs_that_are_done() -> None:
    ring = torch.zeros(1, 3, 2)
    said = torch.tensor([[0.1, 0.9], [0.3, 0.7], [0.8, 0.2], [0.6, 0.4], [1.0, 0.0]])
    for epoch in range(5):
        ring[0, epoch % 3] = said[epoch]
        expected = said[max(0, epoch - 2) : epoch + 1].mean(0)
        torch.testing.assert_close(mean_prediction(ring, epoch + 1)[0], expected)


def spoken(net: Watched, job: Any) -> torch.Tensor:
    """What the network said of each example in each epoch, shape (epochs, N, C)."""
    (everything,) = job.data.examples.batches([torch.arange(60)], torch.device("cpu"))
    result = torch.full((len(net.said), 60, 3), torch.nan)
    for epoch, (x, probs) in enumerate(net.said):
        place = (x[:, None] == everything[None]).all(-1).int().argmax(1)
        result[epoch, place] = probs
    return result


def test_labels_are_what_the_network_said_in_the_last_epochs_of_training() -> None:
    net = Watched(3)
    job = tiny_job(net=lambda n: net)
    soft = refine(job, recipe(window=2), class_prior(job, "labels"))
    train, held_out = job.split.train, job.split.validation
    said = spoken(net, job)[:, train]
    torch.testing.assert_close(soft[train], said[-2:].mean(0))
    torch.testing.assert_close(soft.sum(1), torch.ones(60))
    assert (soft >= 0).all()
    one_hot = torch.nn.functional.one_hot(torch.from_numpy(job.data.labels), 3).float()
    assert torch.equal(soft[held_out], one_hot[held_out])


def test_labels_are_those_given_until_the_updates_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    targets: list[torch.Tensor] = []

    def spy(logits: torch.Tensor, soft: torch.Tensor) -> torch.Tensor:
        targets.append(soft.clone())
        return -(soft * logits.log_softmax(-1)).sum(-1)

    monkeypatch.setattr("bltm.methods.joint.soft_cross_entropy", spy)
    net = Watched(3)
    job = tiny_job(net=lambda n: net)
    refine(job, recipe(window=3, begin=0.4), class_prior(job, "labels"))
    hard = [bool(((t == 0) | (t == 1)).all()) for t in targets]
    assert hard == [True, True, False, False, False]
    said = spoken(net, job)
    for epoch in range(2, 5):
        x, _ = net.said[epoch]
        (everything,) = job.data.examples.batches([torch.arange(60)], torch.device("cpu"))
        place = (x[:, None] == everything[None]).all(-1).int().argmax(1)
        expected = said[max(0, epoch - 3) : epoch, place].mean(0)
        torch.testing.assert_close(targets[epoch], expected)


def test_without_extra_terms_and_updates_it_is_cross_entropy() -> None:
    mine, theirs = Watched(3), Watched(3)
    theirs.load_state_dict(mine.state_dict())
    job = tiny_job(net=lambda n: mine)
    refine(job, recipe(alpha=0.0, beta=0.0, begin=1.0), class_prior(job, "labels"))
    tiny_job().train(
        "refine",
        {"classifier": theirs},
        lambda modules, batch: cross_entropy(modules["classifier"](batch.x), batch.y),
        ONE_BATCH,
    )
    torch.testing.assert_close(mine.layer.weight, theirs.layer.weight)


def test_trusted_labels_are_not_refined() -> None:
    trusted = np.zeros(60, dtype=bool)
    trusted[:20] = True
    job = tiny_job(trusted=trusted)
    soft = refine(job, recipe(), class_prior(job, "labels"))
    assert torch.equal(soft[:20].argmax(1), torch.from_numpy(job.data.labels[:20]))
    assert ((soft[:20] == 0) | (soft[:20] == 1)).all()
    train = job.split.train
    assert ((soft[train] > 0) & (soft[train] < 1)).any()


def test_the_prior_is_the_weighted_frequency_of_the_labels() -> None:
    job = tiny_job()
    job.data.weights[:] = 1.0 + job.data.labels
    counts = np.bincount(job.data.labels[job.split.train], minlength=3) * np.array([1, 2, 3])
    prior = class_prior(job, "labels")
    np.testing.assert_allclose(prior, counts / counts.sum(), rtol=1e-6)
    np.testing.assert_allclose(class_prior(job, "uniform"), np.full(3, 1 / 3), rtol=1e-6)


def test_the_second_network_is_a_new_one_trained_on_the_refined_labels() -> None:
    made: list[nn.Module] = []

    def net(n_outputs: int) -> nn.Module:
        made.append(nn.Linear(2, n_outputs))
        return made[-1]

    data = sample(200)
    model = JointClassifier(net, **QUICK).fit(data.x, data.y_noisy)
    assert len(made) == 2
    assert model.classifier_ is made[1]
    assert list(dict.fromkeys(line["stage"] for line in model.history_)) == ["refine", "retrain"]


def test_wrong_labels_are_changed_and_doubted() -> None:
    data = sample(600)
    wrong = data.y_noisy != data.y_clean
    model = JointClassifier(random_state=0).fit(data.x, data.y_noisy)
    assert (model.predict(data.x) == data.y_clean).mean() > 0.9
    assert 0.5 * wrong.mean() < model.findings_["changed_labels"] < 1.5 * wrong.mean()
    doubt = model.suspicion_.values
    assert model.suspicion_.kind == "score"
    assert doubt[wrong].mean() > doubt[~wrong].mean() + 0.4


def test_the_length_that_noisy_validation_chose_is_that_of_the_labels() -> None:
    job = tiny_job(n=60, store=MemoryStore())
    lengths = replace(ONE_BATCH, lengths=(1, 3, 6))
    soft = refine(job, recipe(refine=lengths), class_prior(job, "labels"))
    chosen = job.bench.lengths["refine"]
    alone = tiny_job(n=60)
    alone.bench.store = job.bench.store
    again = refine(alone, recipe(refine=lengths), class_prior(alone, "labels"))
    assert torch.equal(soft, again)
    ring = job.bench.store.load(f"refine/{chosen}-epochs").part("memory")["predictions"]
    train = job.split.train
    torch.testing.assert_close(soft[train], mean_prediction(ring, chosen)[train])


@pytest.mark.parametrize("stop_at", [1, 9, 14, 20, 27])
def test_an_interrupted_fit_ends_the_same(stop_at: int) -> None:
    def fit(store: MemoryStore, limit: int | None = None) -> Any:
        steps = 0

        def stop() -> bool:
            nonlocal steps
            steps += 1
            return steps == limit

        job = tiny_job(store=store, stop_requested=stop)
        result = JointClassifier(epochs=4, batch_size=12, lr=0.02)._fit(job)
        return weights_of(result.classifier), result.suspicion.values.tobytes(), result.findings

    whole = fit(MemoryStore())
    store = MemoryStore()
    with pytest.raises(Interrupted):
        fit(store, stop_at)
    assert fit(store) == whole
    assert fit(store) == whole


def test_no_epochs_leave_the_labels_as_given() -> None:
    job = tiny_job()
    none = replace(ONE_BATCH, epochs=0)
    soft = refine(job, recipe(refine=none), class_prior(job, "labels"))
    assert torch.equal(soft.argmax(1), torch.from_numpy(job.data.labels))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": -1.0}, "^alpha: must not be negative"),
        ({"beta": float("nan")}, "^beta: must not be negative"),
        ({"window": 0}, "^window: must be a whole number"),
        ({"window": 1.5}, "^window: must be a whole number"),
        ({"begin": 1.2}, r"^begin: must lie in \[0, 1\]"),
        ({"prior": "equal"}, "^prior: unknown: 'equal'"),
    ],
)
def test_values_that_cannot_be_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        JointClassifier(**parameters).plan(100)


def test_several_processes_are_refused() -> None:
    with pytest.raises(InputError, match="mean prediction of the whole batch"):
        JointClassifier().check_processes(2)
