"""How long and how fast a stage trains: a frozen description, and the optimiser made from it.

The learning rate is a pure function of the step, so there is no scheduler state to save.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import nn

from bltm.core.errors import InputError

WARM_FRACTION = 0.25
TINY_STEPS = 50


@dataclass(frozen=True)
class Schedule:
    """One stage's training.

    Attributes
    ----------
    epochs, lr, optimizer, momentum, weight_decay, batch_size
        As usual; ``momentum`` is used by SGD only.
    decay
        "constant"; "one-cycle": linear rise to ``lr`` over the first quarter of the steps, then
        half a cosine down to zero; "cosine": half a cosine from ``lr`` down to zero; "steps":
        divided by ten at each of ``milestones``; "linear": constant up to the one milestone, then
        in a line down to zero.
    milestones
        Epochs at which the rate changes.
    late_momentum
        Adam's first momentum from the first milestone on.
    clip
        Largest norm of a network's gradient.
    lengths
        When given, training is done anew for each of these numbers of epochs, in place of
        ``epochs``, and noisy validation data chooses.
    choose
        By what it chooses a length: the best "accuracy" or the least "loss".
    reluctance
        Of lengths that a loss chooses from, a longer one is kept unless its loss is above that of a
        shorter one by more than so many standard errors.
    min_steps
        Small data sets get smaller batches, and more epochs until this many steps are made; tiny
        ones, with fewer examples than that, a step for each example. Of several lengths to choose
        from by loss it is the longest that makes so many.
    select
        Which epoch's weights are kept, judged on noisy validation data: the best "accuracy", the
        least "loss", or simply the "last".
    keep_start
        Whether the weights before the first step compete in the selection.
    """

    epochs: int
    lr: float
    optimizer: Literal["sgd", "adam", "adamw"] = "sgd"
    decay: Literal["constant", "one-cycle", "cosine", "steps", "linear"] = "constant"
    milestones: tuple[int, ...] = ()
    momentum: float = 0.9
    weight_decay: float = 0.0
    batch_size: int = 128
    min_steps: int = 0
    select: Literal["last", "accuracy", "loss"] = "last"
    keep_start: bool = False
    late_momentum: float | None = None
    clip: float | None = None
    lengths: tuple[int, ...] = ()
    choose: Literal["accuracy", "loss"] = "accuracy"
    reluctance: float = 0.0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)):
                raise InputError(name, f"must be a whole number, got {value!r}")
        if self.epochs < 0:
            raise InputError("epochs", f"must not be negative, got {self.epochs}")
        if self.batch_size < 1:
            raise InputError("batch_size", f"must be at least 1, got {self.batch_size}")
        if not (math.isfinite(self.lr) and self.lr >= 0):
            raise InputError("lr", f"must be finite and not negative, got {self.lr}")

    def fitted_to(self, n_examples: int) -> Schedule:
        """Return the schedule for ``n_examples``: smaller batches and more epochs for small data.

        Examples
        --------
        >>> fitted = Schedule(epochs=2, lr=0.1, min_steps=100).fitted_to(160)
        >>> fitted.batch_size, fitted.epochs
        (20, 13)
        """
        if not (self.min_steps and self.epochs and n_examples):
            return self
        batch = min(self.batch_size, max(16, n_examples // 8))
        least = min(self.min_steps, max(TINY_STEPS, n_examples))
        epochs = math.ceil(least / math.ceil(n_examples / batch))
        return replace(self, batch_size=batch, epochs=max(self.epochs, epochs))

    def candidates(self, n_examples: int) -> list[Schedule]:
        """Return the schedules to choose from for ``n_examples``, shortest first.

        Small data sets make more epochs of each length; lengths that come to the same are one.

        Examples
        --------
        >>> [s.epochs for s in Schedule(12, 0.1, lengths=(3, 6, 12)).candidates(1000)]
        [3, 6, 12]
        >>> several = Schedule(12, 0.1, min_steps=200, lengths=(3, 6, 12), choose="loss")
        >>> [s.epochs for s in several.candidates(640)]
        [7, 13, 25]
        >>> [s.epochs for s in replace(several, choose="accuracy").candidates(640)]
        [25]
        >>> [s.epochs for s in Schedule(12, 0.1).candidates(1000)]
        [12]
        """
        schedules = [each.fitted_to(n_examples) for each in self._each_length()]
        fitted = {schedule.epochs: schedule for schedule in schedules}
        return [fitted[epochs] for epochs in sorted(fitted)]

    def settled(self, epochs: int, n_examples: int) -> Schedule:
        """Return the length that comes to so many epochs of ``n_examples``, and no other.

        Examples
        --------
        >>> several = Schedule(12, 0.1, min_steps=200, lengths=(3, 6, 12), choose="loss")
        >>> one = several.settled(13, 640)
        >>> one.epochs, one.fitted_to(640).epochs, one.candidates(640) == [one.fitted_to(640)]
        (6, 13, True)
        """
        return next(
            each for each in self._each_length() if each.fitted_to(n_examples).epochs == epochs
        )

    def _each_length(self) -> list[Schedule]:
        """Return the schedule once for each length.

        The least number of steps is that of the longest, and shorter ones keep their proportion:
        only if a loss chooses, for the accuracy on a few dozen labels says nothing.
        """
        if not self.lengths:
            return [self]
        longest = max(self.lengths)
        shares = [length / longest if self.choose == "loss" else 1.0 for length in self.lengths]
        return [
            replace(self, epochs=length, min_steps=int(share * self.min_steps), lengths=())
            for length, share in zip(self.lengths, shares, strict=True)
        ]

    def overridden(
        self, epochs: int | None = None, batch_size: int | None = None, lr: float | None = None
    ) -> Schedule:
        """Return the schedule with the user's values; explicit epochs are kept to on small data."""
        changes: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "lr": lr}
        if epochs is not None:
            changes |= {"min_steps": 0, "lengths": ()}
        return replace(
            self, **{name: value for name, value in changes.items() if value is not None}
        )

    def rate(self, step: int, steps_per_epoch: int) -> float:
        """Return the learning rate of a step, counted from the start of the stage."""
        if self.decay == "constant":
            return self.lr
        if self.decay == "steps":
            epoch = step // steps_per_epoch
            return self.lr * float(0.1 ** sum(epoch >= milestone for milestone in self.milestones))
        total = max(1, self.epochs * steps_per_epoch)
        if self.decay == "linear":
            held = self.milestones[0] * steps_per_epoch
            return self.lr * min(1.0, (total - step) / max(1, total - held))
        if self.decay == "cosine":
            return self.lr * 0.5 * (1.0 + math.cos(math.pi * step / total))
        warm = max(1, round(WARM_FRACTION * total))
        if step < warm:
            return self.lr * (step + 1) / warm
        return self.lr * 0.5 * (1.0 + math.cos(math.pi * (step - warm) / max(1, total - warm)))

    def to_json(self) -> dict[str, Any]:
        """Return the schedule as plain values."""
        return asdict(self)


class PlannedStage(NamedTuple):
    """A training stage to come: its name, its schedule, how many examples, through how many nets.

    ``passes`` is how often an example goes through the training of a network in one epoch.
    """

    stage: str
    schedule: Schedule
    examples: int
    passes: float = 1.0

    @property
    def work(self) -> float:
        """Return how many examples go through the training of a network, all lengths together."""
        epochs = sum(schedule.epochs for schedule in self.schedule.candidates(self.examples))
        return self.passes * epochs * self.examples


def make_optimizer(
    modules: Mapping[str, nn.Module], schedule: Schedule, rates: Mapping[str, float] | None = None
) -> torch.optim.Optimizer:
    """Return one optimiser over all modules, one parameter group for each.

    Parameters
    ----------
    modules
        The networks that are trained; their gradients are disjoint, so one optimiser serves.
    schedule
        The stage's schedule.
    rates
        Factors on the learning rate of single modules. A module that has a factor is not
        weight-decayed: it is a correction such as the revision, not a network.
    """
    rates = rates or {}
    groups: list[dict[str, Any]] = []
    for name, module in modules.items():
        group: dict[str, Any] = {
            "params": [p for p in module.parameters() if p.requires_grad],
            "factor": float(rates.get(name, 1.0)),
        }
        if name in rates:
            group["weight_decay"] = 0.0
        groups.append(group)
    # The fused kernels update all parameters in one call, on CPU and GPU; MPS has its own path.
    fused = all(p.device.type != "mps" for group in groups for p in group["params"])
    common: dict[str, Any] = {
        "lr": schedule.lr,
        "weight_decay": schedule.weight_decay,
        "fused": fused,
    }
    if schedule.optimizer == "sgd":
        return torch.optim.SGD(groups, momentum=schedule.momentum, **common)
    if schedule.optimizer == "adam":
        return torch.optim.Adam(groups, **common)
    if schedule.optimizer == "adamw":
        return torch.optim.AdamW(groups, **common)
    raise InputError(
        "optimizer", f"unknown: {schedule.optimizer!r}", "Use 'sgd', 'adam' or 'adamw'."
    )
