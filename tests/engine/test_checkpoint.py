"""Training that is stopped after any step and continued ends as if it had not been stopped."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bltm.engine.batches import Batch, Task
from bltm.engine.checkpoint import pack, unpack
from bltm.engine.loop import EpochRecord, TrainState, train
from bltm.engine.schedule import Schedule
from bltm.engine.stage import Modules
from bltm.engine.store import read_artifact, write_artifact
from bltm.engine.supervised import cross_entropy_step, noisy_label_score

from .helpers import FABRIC, blobs, noisy_data, stage_of, state_of, weights_of


class Stop(Exception):
    pass


def mlp_with_dropout() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))


def convolutions() -> nn.Module:
    torch.manual_seed(1)
    net = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Conv2d(4, 4, 3),
        nn.Dropout(0.2),
        nn.Flatten(),
        nn.Linear(16, 3),
    )
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def vectors() -> tuple[Task, Task]:
    data = noisy_data(*blobs(26), 3)
    return Task.of(data, np.arange(18)), Task.of(data, np.arange(18, 26))


def images() -> tuple[Task, Task]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((26, 4, 4, 2)).astype(np.float32)
    data = noisy_data(x, rng.integers(3, size=26), 3)
    return Task.of(data, np.arange(18)), Task.of(data, np.arange(18, 26))


def through_file(artifact: Any, path: Path) -> Any:
    write_artifact(path, artifact)
    return read_artifact(path)


SETTINGS: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Task, Task]], Schedule]] = {
    "sgd": (
        mlp_with_dropout,
        vectors,
        Schedule(3, 0.1, batch_size=6, select="accuracy", keep_start=True),
    ),
    "plain sgd": (mlp_with_dropout, vectors, Schedule(3, 0.1, momentum=0.0, batch_size=6)),
    "adam": (
        mlp_with_dropout,
        vectors,
        Schedule(3, 0.05, "adam", "one-cycle", batch_size=6, select="loss"),
    ),
    "adamw": (
        mlp_with_dropout,
        vectors,
        Schedule(3, 0.05, "adamw", "steps", (1,), batch_size=6, weight_decay=0.1),
    ),
    "channels last": (
        convolutions,
        images,
        Schedule(3, 0.05, "adamw", batch_size=6, weight_decay=0.1, select="accuracy"),
    ),
    "channels last, sgd": (convolutions, images, Schedule(3, 0.05, batch_size=6, select="loss")),
}


def advance(
    state: TrainState,
    tasks: tuple[Task, Task],
    schedule: Schedule,
    records: list[EpochRecord],
    stop_at: int | None = None,
) -> None:
    steps = 0

    def tick(_: TrainState, __: int) -> None:
        nonlocal steps
        steps += 1
        if steps == stop_at:
            raise Stop

    stage = stage_of(
        state,
        cross_entropy_step,
        tasks[0],
        schedule,
        score=noisy_label_score,
        validation=tasks[1],
    )
    for record in train(state, stage, FABRIC, seed=3, tick=tick):
        records.append(record)


def outcome(state: TrainState, records: list[EpochRecord]) -> Any:
    best = None
    if state.best is not None:
        kept = state.best.weights["classifier"]
        best = (
            state.best.epoch,
            state.best.metrics,
            {name: value.contiguous().numpy().tobytes() for name, value in kept.items()},
        )
    history = [{k: v for k, v in r.to_json().items() if k != "seconds"} for r in records]
    return weights_of(state.modules["classifier"]), best, history


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_stop_after_any_step_changes_no_byte(setting: str, on_disk: bool, tmp_path: Path) -> None:
    make, tasks, schedule = SETTINGS[setting]
    whole, whole_records = state_of({"classifier": make()}, schedule), []
    advance(whole, tasks(), schedule, whole_records)
    expected = outcome(whole, whole_records)
    for stop_at in range(1, 10):
        records: list[EpochRecord] = []
        first = state_of({"classifier": make()}, schedule)
        with pytest.raises(Stop):
            advance(first, tasks(), schedule, records, stop_at)
        packed = pack(first)
        packed = through_file(packed, tmp_path / "state.safetensors") if on_disk else packed
        second = state_of({"classifier": make()}, schedule)
        for parameter in second.modules["classifier"].parameters():
            nn.init.constant_(parameter, 7.0)
        unpack(packed, second)
        advance(second, tasks(), schedule, records)
        assert outcome(second, records) == expected, f"stopped after step {stop_at}"


def test_unpacked_tensors_have_the_memory_layout_of_the_fresh_state() -> None:
    make, tasks, schedule = SETTINGS["channels last"]
    first = state_of({"classifier": make()}, schedule)
    with pytest.raises(Stop):
        advance(first, tasks(), schedule, [], 4)
    packed = pack(first)
    for name, value in packed.tensors.items():
        packed.tensors[name] = value.contiguous()
    second = state_of({"classifier": make()}, schedule)
    unpack(packed, second)
    weight = second.modules["classifier"][0].weight  # type: ignore[index]
    assert weight.is_contiguous(memory_format=torch.channels_last)
    moment = second.optimizer.state[weight]["exp_avg"]
    assert moment.is_contiguous(memory_format=torch.channels_last)


def test_the_memory_of_a_method_is_part_of_the_state() -> None:
    _, tasks, _ = SETTINGS["sgd"]
    schedule = Schedule(2, 0.1, batch_size=6)

    def make() -> TrainState:
        state = state_of({"classifier": mlp_with_dropout()}, schedule)
        state.memory["seen"] = torch.zeros(26)
        return state

    def go(state: TrainState, stop_at: int | None) -> None:
        steps = 0

        def step(modules: Modules, batch: Batch) -> torch.Tensor:
            state.memory["seen"][batch.index] += 1
            return cross_entropy_step(modules, batch) * (1 + state.memory["seen"][batch.index])

        def tick(_: TrainState, __: int) -> None:
            nonlocal steps
            steps += 1
            if steps == stop_at:
                raise Stop

        stage = stage_of(state, step, tasks()[0], schedule, "s")
        list(train(state, stage, FABRIC, seed=0, tick=tick))

    whole, first, second = make(), make(), make()
    go(whole, None)
    with pytest.raises(Stop):
        go(first, 4)
    unpack(pack(first), second)
    go(second, None)
    assert second.memory["seen"].tolist() == [2.0] * 18 + [0.0] * 8
    assert weights_of(second.modules["classifier"]) == weights_of(whole.modules["classifier"])
