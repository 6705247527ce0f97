"""The training loop: a generator over epochs, and the only place that calls ``backward()``."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from lightning_fabric import Fabric
from torch import nn

from bltm.core.errors import TrainingError
from bltm.core.random import torch_stream
from bltm.engine.batches import Moment, iterate, shuffled, training_batches
from bltm.engine.devices import all_sum
from bltm.engine.schedule import Schedule, make_optimizer
from bltm.engine.selection import Best, evaluate, improves
from bltm.engine.stage import Modules, Stage


@dataclass
class TrainState:
    """Everything that training needs to continue from where it is.

    Random numbers are not part of it: they are functions of seed, stage, epoch and position.

    Attributes
    ----------
    modules
        The networks that are trained, by name.
    optimizer
        One optimiser over all of them.
    epoch, position
        Finished epochs, and finished batches of the current one.
    loss_sum, weight_sum
        What the current epoch's mean loss is made of so far.
    seen
        Examples that went through a network's training so far, counted for each network.
    best
        The weights selected so far.
    memory
        What the stage remembers from step to step, of single examples or of all together.
    """

    modules: dict[str, nn.Module]
    optimizer: torch.optim.Optimizer
    epoch: int = 0
    position: int = 0
    loss_sum: torch.Tensor = field(default_factory=lambda: torch.zeros(()))
    weight_sum: float = 0.0
    seen: float = 0.0
    best: Best | None = None
    memory: dict[str, torch.Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, stage: Stage) -> TrainState:
        """Return the state before the first step of a stage."""
        return cls(
            dict(stage.modules),
            make_optimizer(stage.modules, stage.schedule, stage.rates),
            memory={name: values.clone() for name, values in stage.memory.items()},
        )


@dataclass(frozen=True)
class EpochRecord:
    """What is known after an epoch; one line of the history."""

    stage: str
    epoch: int
    epochs: int
    loss: float
    lr: float
    seconds: float
    metrics: dict[str, float]
    selected: bool

    def to_json(self) -> dict[str, Any]:
        """Return the record as one flat line."""
        line = {name: value for name, value in vars(self).items() if name != "metrics"}
        return {**line, **self.metrics}


def train(
    state: TrainState,
    stage: Stage,
    fabric: Fabric,
    *,
    seed: int,
    tick: Callable[[TrainState, int], None] | None = None,
) -> Iterator[EpochRecord]:
    """Train until the schedule ends, yielding after each epoch.

    The loop averages the losses of a batch's examples once, by weight and over all processes, so
    that N processes compute the gradient of one on the same global batch.

    Parameters
    ----------
    state
        Where training stands; changed in place.
    stage
        What to do.
    fabric
        Devices and processes.
    seed
        Of the random streams; the stage's name is part of theirs.
    tick
        Called after each step with the state and the number of steps in the epoch.
    """
    schedule, task = stage.schedule, stage.task
    networks = {name: fabric.setup_module(module) for name, module in state.modules.items()}
    optimizer = cast(torch.optim.Optimizer, fabric.setup_optimizers(state.optimizer))
    if schedule.keep_start and state.epoch == state.position == 0:
        metrics = _validate(networks, stage, fabric)
        state.best = Best.of(state.modules, 0, metrics) if metrics else None
    while state.epoch < schedule.epochs:
        started = time.perf_counter()
        moment = Moment(state.epoch, schedule.epochs, memory=state.memory)
        if stage.before_epoch is not None and state.position == 0:
            stage.before_epoch(networks, moment)
        batches = (
            training_batches(
                shuffled(task, seed, stage.name, state.epoch),
                schedule.batch_size,
                fabric.world_size,
            )
            if stage.batches is None
            else stage.batches(moment)
        )
        shares = [batch[fabric.global_rank :: fabric.world_size] for batch in batches]
        totals = [float(task.weights[batch].sum()) for batch in batches]
        for network in networks.values():
            network.train()
        state.loss_sum = state.loss_sum.to(fabric.device)
        for batch in iterate(task, shares[state.position :], fabric.device):
            set_rate(optimizer, schedule, state.epoch * len(batches) + state.position, len(batches))
            moment = replace(moment, position=state.position, positions=len(batches))
            batch = replace(batch, moment=moment)
            total = totals[state.position]
            with torch_stream(seed, stage.name, state.epoch, state.position, fabric.global_rank):
                if stage.augment is not None:
                    batch = replace(batch, x=stage.augment(batch.x))
                losses = stage.step(networks, batch)
                if losses is not None:
                    loss = losses
                    if losses.ndim:
                        loss = (losses * batch.weight).sum() * (fabric.world_size / total)
                    optimizer.zero_grad()
                    fabric.backward(loss)
                    if schedule.clip is not None:
                        for network in networks.values():
                            fabric.clip_gradients(network, optimizer, max_norm=schedule.clip)
                    optimizer.step()
                    state.loss_sum += loss.detach() * total
                    state.weight_sum += total
            state.seen += stage.passes * len(batches[state.position])
            state.position += 1
            if tick is not None:
                tick(state, len(batches))
        yield _finish_epoch(state, networks, stage, fabric, len(batches), started)


def set_rate(
    optimizer: torch.optim.Optimizer, schedule: Schedule, step: int, steps_per_epoch: int
) -> None:
    """Set the learning rate of a step on all parameter groups, and Adam's first momentum."""
    rate = schedule.rate(step, steps_per_epoch)
    late = schedule.late_momentum is not None and step >= schedule.milestones[0] * steps_per_epoch
    for group in optimizer.param_groups:
        group["lr"] = rate * group["factor"]
        if late:
            group["betas"] = (schedule.late_momentum, group["betas"][1])


def _validate(networks: Modules, stage: Stage, fabric: Fabric) -> dict[str, float]:
    if stage.score is None or stage.validation is None or len(stage.validation) == 0:
        return {}
    return evaluate(networks, stage.score, stage.validation, fabric)


def _finish_epoch(
    state: TrainState,
    networks: Modules,
    stage: Stage,
    fabric: Fabric,
    steps_per_epoch: int,
    started: float,
) -> EpochRecord:
    schedule = stage.schedule
    # An epoch in which no batch had anything to learn has no loss.
    weight = fabric.world_size * max(state.weight_sum, 1e-12)
    mean = float(all_sum(fabric, state.loss_sum)) / weight
    if not math.isfinite(mean):
        raise TrainingError(
            f"The loss of stage '{stage.name}' is {mean} in epoch {state.epoch + 1}: training has "
            f"diverged. Lower the learning rate (it is {schedule.lr:g}) or check the inputs for "
            "extreme values."
        )
    metrics = _validate(networks, stage, fabric)
    state.epoch += 1
    state.position, state.weight_sum = 0, 0.0
    state.loss_sum = torch.zeros_like(state.loss_sum)
    selected = bool(metrics) and improves(metrics, state.best, schedule.select)
    if selected and schedule.select != "last":
        state.best = Best.of(state.modules, state.epoch, metrics)
    return EpochRecord(
        stage=stage.name,
        epoch=state.epoch,
        epochs=schedule.epochs,
        loss=mean,
        lr=schedule.rate(state.epoch * steps_per_epoch - 1, steps_per_epoch),
        seconds=time.perf_counter() - started,
        metrics=metrics,
        selected=selected,
    )
