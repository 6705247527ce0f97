"""The training loop: a generator over epochs, and the only place that calls ``backward()``."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from lightning_fabric import Fabric
from torch import nn

from bltm.core.errors import TrainingError
from bltm.core.random import torch_stream
from bltm.engine.batches import Batch, Task, iterate, shuffled, training_batches
from bltm.engine.devices import all_sum
from bltm.engine.schedule import Schedule
from bltm.engine.selection import Best, Score, evaluate, improves

Modules = Mapping[str, nn.Module]
Step = Callable[[Modules, Batch], torch.Tensor]
"""Computes one loss value per example of a batch."""


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
    best
        The weights selected so far.
    memory
        State of a method for single examples, one row for each of the N examples.
    """

    modules: dict[str, nn.Module]
    optimizer: torch.optim.Optimizer
    epoch: int = 0
    position: int = 0
    loss_sum: torch.Tensor = field(default_factory=lambda: torch.zeros(()))
    weight_sum: float = 0.0
    best: Best | None = None
    memory: dict[str, torch.Tensor] = field(default_factory=dict)


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
    step: Step,
    task: Task,
    schedule: Schedule,
    fabric: Fabric,
    *,
    stage: str,
    seed: int,
    score: Score | None = None,
    validation: Task | None = None,
    tick: Callable[[TrainState, int], None] | None = None,
) -> Iterator[EpochRecord]:
    """Train until the schedule ends, yielding after each epoch.

    Parameters
    ----------
    state
        Where training stands; changed in place.
    step
        Gives one loss value per example. The loop averages them once, by weight and over all
        processes, so that N processes compute the gradient of one on the same global batch. A
        method whose loss couples the examples of a batch returns a scalar.
    task, schedule, fabric
        What to train on, how, and on which devices.
    stage, seed
        The name of the random streams.
    score
        Gives log-probabilities of the noisy labels, for the selection on ``validation``.
    validation
        Noisy examples held out.
    tick
        Called after each step with the state and the number of steps in an epoch.
    """
    networks = {name: fabric.setup_module(module) for name, module in state.modules.items()}
    optimizer = cast(torch.optim.Optimizer, fabric.setup_optimizers(state.optimizer))
    validated = validation if validation is not None and len(validation) else None
    if schedule.keep_start and state.epoch == state.position == 0 and score and validated:
        metrics = evaluate(networks, score, validated, fabric)
        state.best = Best.of(state.modules, 0, metrics)
    while state.epoch < schedule.epochs:
        started = time.perf_counter()
        order = shuffled(task, seed, stage, state.epoch)
        batches = training_batches(order, schedule.batch_size, fabric.world_size)
        shares = [batch[fabric.global_rank :: fabric.world_size] for batch in batches]
        totals = [float(task.weights[batch].sum()) for batch in batches]
        for network in networks.values():
            network.train()
        state.loss_sum = state.loss_sum.to(fabric.device)
        for batch in iterate(task, shares[state.position :], fabric.device):
            set_rate(optimizer, schedule, state.epoch * len(batches) + state.position, len(batches))
            total = totals[state.position]
            with torch_stream(seed, stage, state.epoch, state.position, fabric.global_rank):
                losses = step(networks, batch)
                loss = losses
                if losses.ndim:
                    loss = (losses * batch.weight).sum() * (fabric.world_size / total)
                optimizer.zero_grad()
                fabric.backward(loss)
                optimizer.step()
            state.loss_sum += loss.detach() * total
            state.weight_sum += total
            state.position += 1
            if tick is not None:
                tick(state, len(batches))
        yield _finish_epoch(
            state, networks, schedule, fabric, stage, score, validated, len(batches), started
        )


def set_rate(
    optimizer: torch.optim.Optimizer, schedule: Schedule, step: int, steps_per_epoch: int
) -> None:
    """Set the learning rate of a step on all parameter groups."""
    rate = schedule.rate(step, steps_per_epoch)
    for group in optimizer.param_groups:
        group["lr"] = rate * group["factor"]


def _finish_epoch(
    state: TrainState,
    networks: Modules,
    schedule: Schedule,
    fabric: Fabric,
    stage: str,
    score: Score | None,
    validation: Task | None,
    steps_per_epoch: int,
    started: float,
) -> EpochRecord:
    mean = float(all_sum(fabric, state.loss_sum)) / (fabric.world_size * state.weight_sum)
    if not math.isfinite(mean):
        raise TrainingError(
            f"The loss of stage '{stage}' is {mean} in epoch {state.epoch + 1}: training has "
            f"diverged. Lower the learning rate (it is {schedule.lr:g}) or check the inputs for "
            "extreme values."
        )
    metrics = evaluate(networks, score, validation, fabric) if score and validation else {}
    state.epoch += 1
    state.position, state.weight_sum = 0, 0.0
    state.loss_sum = torch.zeros_like(state.loss_sum)
    selected = bool(metrics) and improves(metrics, state.best, schedule.select)
    if selected and schedule.select != "last":
        state.best = Best.of(state.modules, state.epoch, metrics)
    return EpochRecord(
        stage=stage,
        epoch=state.epoch,
        epochs=schedule.epochs,
        loss=mean,
        lr=schedule.rate(state.epoch * steps_per_epoch - 1, steps_per_epoch),
        seconds=time.perf_counter() - started,
        metrics=metrics,
        selected=selected,
    )
