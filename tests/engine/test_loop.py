import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from bltm.core.errors import TrainingError
from bltm.core.random import stream
from bltm.engine.batches import Batch, Task, in_batches, training_batches
from bltm.engine.schedule import Schedule, make_optimizer
from bltm.engine.stage import Modules
from bltm.engine.supervised import cross_entropy_step
from bltm.nets.mlp import MLP

from .helpers import blobs, noisy_data, run, state_of, weights_of


def make_net(seed: int = 0, n_outputs: int = 3) -> nn.Module:
    torch.manual_seed(seed)
    return MLP((4,), n_outputs, hidden=(8,))


def make_task(n: int = 32, weights: np.ndarray | None = None) -> Task:
    x, labels = blobs(n)
    data = noisy_data(x, labels, 3, weights)
    return Task.of(data, np.arange(n))


@pytest.mark.parametrize(
    ("schedule", "optimizer"),
    [
        (Schedule(3, 0.1, batch_size=8), torch.optim.SGD),
        (Schedule(3, 0.01, "adam", batch_size=8), torch.optim.Adam),
        (Schedule(3, 0.01, "adamw", batch_size=8, weight_decay=0.1), torch.optim.AdamW),
    ],
)
def test_training_equals_a_bare_loop_to_the_last_bit(
    schedule: Schedule, optimizer: type[torch.optim.Optimizer]
) -> None:
    task = make_task()
    net = make_net()
    bare = copy.deepcopy(net)
    state = state_of({"classifier": net}, schedule)
    records = run(state, cross_entropy_step, task, schedule)

    options = {"momentum": 0.9} if schedule.optimizer == "sgd" else {}
    mover = optimizer(
        bare.parameters(),
        lr=schedule.lr,
        weight_decay=schedule.weight_decay,
        fused=True,
        **options,
    )
    x = task.examples.values  # type: ignore[attr-defined]
    losses = []
    for epoch in range(3):
        order = torch.from_numpy(stream(0, "stage", "order", epoch).permutation(32))
        for index in order.split(8):
            loss = functional.cross_entropy(bare(x[index]), task.labels[index])
            mover.zero_grad()
            loss.backward()
            mover.step()
            losses.append(loss.item())
    assert weights_of(net) == weights_of(bare)
    epochs = np.array(losses).reshape(3, 4).mean(axis=1)
    np.testing.assert_allclose([r.loss for r in records], epochs, rtol=1e-5)


def test_weights_of_examples_enter_as_a_weighted_mean() -> None:
    weights = np.array([3.0, 1.0, 0.5, 2.0])
    task, schedule = make_task(4, weights), Schedule(1, 1.0, momentum=0.0, batch_size=4)
    net = make_net()
    by_hand = copy.deepcopy(net)
    run(state_of({"classifier": net}, schedule), cross_entropy_step, task, schedule)

    x = task.examples.values  # type: ignore[attr-defined]
    losses = functional.cross_entropy(by_hand(x), task.labels, reduction="none")
    (losses * torch.from_numpy(weights).float() / weights.sum()).sum().backward()
    for parameter, other in zip(net.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(parameter, other - other.grad)


def test_a_scalar_loss_is_taken_as_it_is() -> None:
    task, schedule = make_task(), Schedule(2, 0.1, batch_size=8)

    def scalar(modules: Modules, batch: Batch) -> torch.Tensor:
        return functional.cross_entropy(modules["classifier"](batch.x), batch.y)

    nets = [make_net(), make_net()]
    for net, step in zip(nets, (cross_entropy_step, scalar), strict=True):
        run(state_of({"classifier": net}, schedule), step, task, schedule)
    for one, other in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_every_example_is_seen_once_in_an_epoch_and_orders_differ() -> None:
    task, schedule = make_task(9), Schedule(2, 0.1, batch_size=4)
    seen: list[list[int]] = []

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        seen.append(batch.index.tolist())
        return cross_entropy_step(modules, batch)

    run(state_of({"classifier": make_net()}, schedule), step, task, schedule)
    assert [len(batch) for batch in seen] == [4, 5, 4, 5]
    epochs = [seen[0] + seen[1], seen[2] + seen[3]]
    assert all(sorted(epoch) == list(range(9)) for epoch in epochs)
    assert epochs[0] != epochs[1]


def test_a_batch_carries_the_rows_of_its_examples() -> None:
    x, labels = blobs(20)
    data = noisy_data(x, labels, 3, np.arange(1.0, 21.0))
    task = Task.of(data, np.arange(5, 20), {"number": torch.arange(20) * 10})
    schedule = Schedule(1, 0.1, batch_size=4)
    indices: list[int] = []

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        torch.testing.assert_close(batch.x, torch.from_numpy(x)[batch.index])
        assert batch.y.tolist() == labels[batch.index].tolist()
        assert batch.weight.tolist() == (batch.index + 1).tolist()
        assert batch.extras["number"].tolist() == (batch.index * 10).tolist()
        indices.extend(batch.index.tolist())
        return cross_entropy_step(modules, batch)

    run(state_of({"classifier": make_net()}, schedule), step, task, schedule)
    assert sorted(indices) == list(range(5, 20))


@pytest.mark.parametrize(
    ("n", "size", "least", "lengths"),
    [
        (9, 4, 2, [4, 5]),
        (10, 4, 2, [4, 4, 2]),
        (10, 4, 4, [4, 6]),
        (1, 4, 2, [1]),
        (8, 4, 2, [4, 4]),
        (3, 1, 1, [1, 1, 1]),
    ],
)
def test_a_short_last_batch_joins_the_one_before(
    n: int, size: int, least: int, lengths: list[int]
) -> None:
    batches = in_batches(torch.arange(n), size, least)
    assert [len(batch) for batch in batches] == lengths
    assert torch.cat(batches).tolist() == list(range(n))


@pytest.mark.parametrize("n", range(128, 260, 7))
def test_one_to_four_processes_train_on_the_same_batches(n: int) -> None:
    alone = training_batches(torch.arange(n), 64, 1)
    for world_size in (2, 3, 4):
        together = training_batches(torch.arange(n), 64, world_size)
        assert [b.tolist() for b in together] == [b.tolist() for b in alone]
        assert min(len(b) for b in together) >= 2 * world_size


def test_a_loss_that_is_not_finite_stops_training_and_names_the_stage() -> None:
    task, schedule = make_task(), Schedule(2, 0.25, batch_size=8)

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        return cross_entropy_step(modules, batch) * float("nan")

    with pytest.raises(TrainingError, match="'stage' is nan in epoch 1.*it is 0.25"):
        run(state_of({"classifier": make_net()}, schedule), step, task, schedule)


def test_the_learning_rate_of_each_step_reaches_the_optimizer() -> None:
    task, schedule = make_task(), Schedule(2, 0.1, decay="one-cycle", batch_size=8)
    modules = {"classifier": make_net(), "slow": nn.Linear(1, 1)}
    optimizer = make_optimizer(modules, schedule, {"slow": 0.5})
    rates: list[list[float]] = []
    state = state_of(modules, schedule)
    state.optimizer = optimizer

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        rates.append([group["lr"] for group in optimizer.param_groups])
        return cross_entropy_step(modules, batch) + 0.0 * modules["slow"](torch.ones(1))

    run(state, step, task, schedule)
    expected = [schedule.rate(k, 4) for k in range(8)]
    np.testing.assert_allclose(rates, [[rate, rate / 2] for rate in expected])


def test_frozen_weights_are_not_given_to_the_optimizer() -> None:
    net = make_net()
    net.fc.requires_grad_(False)
    schedule = Schedule(1, 0.1, batch_size=8, weight_decay=0.5)
    before = weights_of(net)
    run(state_of({"classifier": net}, schedule), cross_entropy_step, make_task(), schedule)
    after = weights_of(net)
    assert after["fc.weight"] == before["fc.weight"]
    assert after["hidden.0.weight"] != before["hidden.0.weight"]


def test_zero_epochs_leave_the_weights_alone() -> None:
    net, schedule = make_net(), Schedule(0, 0.1)
    before = weights_of(net)
    assert (
        run(state_of({"classifier": net}, schedule), cross_entropy_step, make_task(), schedule)
        == []
    )
    assert weights_of(net) == before
