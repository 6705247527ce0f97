from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import nn

from bltm.engine.batches import Batch, Task
from bltm.engine.loop import EpochRecord, TrainState
from bltm.engine.schedule import Schedule
from bltm.engine.selection import Best, HeldOut, evaluate, improves
from bltm.engine.stage import Modules

from .helpers import FABRIC, blobs, noisy_data, run, state_of


class Counter(nn.Module):
    """One weight that a step raises by one; it says which epoch the weights are from."""

    def __init__(self) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.zeros(()))


def step(modules: Modules, batch: Batch) -> torch.Tensor:
    return -modules["net"].value.expand(len(batch.y))  # type: ignore[union-attr, operator]


def tasks(n_validation: int = 10) -> tuple[Task, Task]:
    x, _ = blobs(16 + n_validation)
    data = noisy_data(x, np.zeros(len(x), dtype=np.int64), 2)
    return Task.of(data, np.arange(16)), Task.of(data, np.arange(16, len(x)))


def select(
    right: Sequence[int], confidence: Sequence[float], schedule: Schedule, n_validation: int = 10
) -> tuple[TrainState, list[EpochRecord]]:
    """Train for epochs that get so many of ten labels right, with a confidence."""

    def score(modules: Modules, batch: Batch) -> torch.Tensor:
        epoch = int(modules["net"].value)  # type: ignore[arg-type]
        probs = torch.full((len(batch.y), 2), 1 - confidence[epoch])
        label = (torch.arange(len(batch.y)) >= right[epoch]).long()
        probs[torch.arange(len(batch.y)), label] = confidence[epoch]
        return probs.log()

    state = state_of({"net": Counter()}, schedule)
    train, validation = tasks(n_validation)
    return state, run(state, step, train, schedule, score=score, validation=validation)


def schedule(select: str, keep_start: bool = False) -> Schedule:
    return Schedule(
        4,
        1.0,
        momentum=0.0,
        batch_size=16,
        select=select,  # type: ignore[arg-type]
        keep_start=keep_start,
    )


def test_the_epoch_of_the_best_accuracy_is_kept() -> None:
    state, records = select([0, 5, 8, 7, 6], [0.9] * 5, schedule("accuracy"))
    assert state.best is not None
    assert state.best.epoch == 2
    assert state.best.metrics["val_accuracy"] == pytest.approx(0.8)
    assert state.best.weights["net"]["value"].item() == 2.0
    assert [record.selected for record in records] == [True, True, False, False]
    state.best.restore(state.modules)
    assert state.modules["net"].value.item() == 2.0  # type: ignore[union-attr, operator]


def test_a_tie_in_accuracy_goes_to_the_lower_loss_and_then_to_the_earlier_epoch() -> None:
    state, _ = select([0, 8, 8, 8, 8], [0.9, 0.95, 0.8, 0.8, 0.9], schedule("accuracy"))
    assert state.best is not None
    assert state.best.epoch == 2


def test_selection_by_loss_does_not_look_at_accuracy() -> None:
    state, _ = select([0, 9, 6, 6, 6], [0.9, 0.999, 0.6, 0.7, 0.9], schedule("loss"))
    assert state.best is not None
    assert state.best.epoch == 2


@pytest.mark.parametrize(("keep_start", "epoch"), [(True, 0), (False, 1)])
def test_the_start_competes_only_when_asked_to(keep_start: bool, epoch: int) -> None:
    state, _ = select([10, 9, 8, 7, 6], [0.9] * 5, schedule("accuracy", keep_start))
    assert state.best is not None
    assert state.best.epoch == epoch


def test_the_last_epoch_is_kept_when_nothing_is_selected() -> None:
    state, records = select([0, 9, 8, 7, 6], [0.9] * 5, schedule("last"))
    assert state.best is None
    assert state.modules["net"].value.item() == 4.0  # type: ignore[union-attr, operator]
    assert records[0].metrics["val_accuracy"] == pytest.approx(0.9)


@pytest.mark.parametrize("keep_start", [True, False])
def test_without_validation_examples_the_last_epoch_is_kept(keep_start: bool) -> None:
    rule = schedule("accuracy", keep_start)
    state, records = select([0, 9, 8, 7, 6], [0.9] * 5, rule, n_validation=0)
    assert state.best is None
    assert state.modules["net"].value.item() == 4.0  # type: ignore[union-attr, operator]
    assert all(record.metrics == {} and not record.selected for record in records)


def test_kept_weights_are_copies() -> None:
    net = Counter()
    best = Best.of({"net": net}, 1, {"val_accuracy": 1.0, "val_loss": 0.0})
    with torch.no_grad():
        net.value.fill_(5.0)
    assert best.weights["net"]["value"].item() == 0.0


def test_figures_are_weighted_and_the_networks_in_evaluation_mode() -> None:
    x, _ = blobs(4)
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    data = noisy_data(x, np.array([0, 1, 0, 1]), 2, weights)
    net = nn.Dropout()
    modes = []

    def score(modules: Modules, batch: Batch) -> torch.Tensor:
        modes.append((net.training, torch.is_inference_mode_enabled()))
        return torch.tensor([[0.75, 0.25]]).log().expand(len(batch.y), -1)

    metrics = evaluate({"net": net.train()}, score, Task.of(data, np.arange(4)), FABRIC)
    assert metrics["val_accuracy"] == pytest.approx(0.4)
    assert metrics["val_loss"] == pytest.approx(-(4 * np.log(0.75) + 6 * np.log(0.25)) / 10)
    assert modes == [(False, True)]


def test_losses_are_compared_example_by_example() -> None:
    x, _ = blobs(4)
    weights, labels = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 1, 0, 1])
    task = Task.of(noisy_data(x, labels, 2, weights), np.arange(4))

    def judged(first: list[float]) -> HeldOut:
        probs = torch.tensor(first, dtype=torch.float64)
        log_probs = torch.stack([probs, 1.0 - probs], dim=1).log()
        return HeldOut.of({}, lambda _, batch: log_probs[batch.index], task, FABRIC)

    one, other = [0.5, 0.5, 0.6, 0.5], [0.6, 0.6, 0.5, 0.3]
    lost = np.log([0.6, 0.4, 0.5, 0.7]) - np.log([0.5, 0.5, 0.6, 0.5])
    mean = float(weights @ lost) / 10
    error = float(np.sqrt((weights**2 * (lost - mean) ** 2).sum())) / 10
    assert 0 < mean < 2 * error
    worse, better = judged(one), judged(other)
    assert worse.worse_than(better, 0.99 * mean / error)
    assert not worse.worse_than(better, 1.01 * mean / error)
    assert not better.worse_than(worse, 0.0)
    assert not worse.worse_than(worse, 0.0)


def test_the_first_figures_always_improve() -> None:
    assert improves({"val_accuracy": 0.0, "val_loss": 9.0}, None, "loss")


def test_training_goes_on_in_training_mode_after_an_evaluation() -> None:
    train, validation = tasks()
    net = nn.Sequential(nn.Linear(4, 2), nn.Dropout())
    modes = []

    def own_step(modules: Modules, batch: Batch) -> torch.Tensor:
        modes.append(net.training)
        return nn.functional.cross_entropy(modules["net"](batch.x), batch.y, reduction="none")

    def score(modules: Modules, batch: Batch) -> torch.Tensor:
        return modules["net"](batch.x).log_softmax(1)  # type: ignore[no-any-return]

    plan = schedule("accuracy", keep_start=True)
    run(state_of({"net": net}, plan), own_step, train, plan, score=score, validation=validation)
    assert modes == [True] * 4
