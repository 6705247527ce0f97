"""One fit: the data, its split, the architecture, and the workbench that runs its stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from bltm.core.records import IntArray, NoisyData, Split
from bltm.engine.augment import Augmentation
from bltm.engine.batches import Task
from bltm.engine.predict import predict
from bltm.engine.schedule import Schedule
from bltm.engine.selection import Score
from bltm.engine.stage import Stage, Step
from bltm.engine.workbench import Outcome, Workbench
from bltm.nets.registry import make_net


@dataclass(frozen=True)
class Job:
    """What every stage of a method needs.

    Attributes
    ----------
    data, split
        Examples with noisy labels; which of them train and which select.
    bench
        Runs the stages.
    net, weights
        Architecture, and a file of weights to start from (None for a random start).
    augment
        Changes the inputs of training batches, or None.
    audit_folds
        Into how many folds the training split is cut so that each is judged by classifiers that
        have not seen its labels; 0 for no such classifiers.
    """

    data: NoisyData
    split: Split
    bench: Workbench
    net: str | Callable[[int], nn.Module]
    weights: str | Path | None = None
    augment: Augmentation | None = None
    audit_folds: int = 0

    def settled(self, schedule: Schedule, stage: str) -> Schedule:
        """Return the schedule with the length that a stage chose on the training split, if any."""
        chosen = self.bench.lengths.get(stage)
        return schedule if chosen is None else schedule.settled(chosen, len(self.split.train))

    def new_classifier(self, name: str) -> nn.Module:
        """Make a classification network whose weights come from the stream of its name."""
        shape, n_classes = self.data.examples.shape, self.data.n_classes
        return self.bench.new(name, lambda: make_net(self.net, shape, n_classes, self.weights))

    def training(
        self, extras: Mapping[str, torch.Tensor] | None = None, index: IntArray | None = None
    ) -> Task:
        """Return the task of training on the training split, or on some of it."""
        return Task.of(self.data, self.split.train if index is None else index, extras)

    def validation(self, extras: Mapping[str, torch.Tensor] | None = None) -> Task:
        """Return the task of judging on the noisy validation split; it may be empty."""
        return Task.of(self.data, self.split.validation, extras)

    def outputs(
        self,
        module: nn.Module,
        apply: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """Return the outputs of a module for all N examples, on the CPU; see ``predict``.

        Batches do not mix examples that are used with others. A copy of an example, of which only
        the weight counts, then cannot change the rounding of what is learned from.
        """
        unused = np.setdiff1d(np.arange(len(self.data)), self.split.all)
        parts = [part for part in (self.split.train, self.split.validation, unused) if len(part)]
        found = [predict(module, self.data.examples, p, self.bench.fabric, apply) for p in parts]
        whole = torch.empty(len(self.data), *found[0].shape[1:])
        for part, values in zip(parts, found, strict=True):
            whole[torch.from_numpy(part)] = values
        return whole

    def train(
        self,
        name: str,
        modules: Mapping[str, nn.Module],
        step: Step,
        schedule: Schedule,
        *,
        score: Score | None = None,
        extras: Mapping[str, torch.Tensor] | None = None,
        index: IntArray | None = None,
        **options: Any,
    ) -> Outcome:
        """Run a stage on the training split, selected on the validation split.

        Parameters
        ----------
        name, modules, step, schedule, score
            As for :class:`Stage`.
        extras
            Tensors with one row for each of the N examples, for step and score.
        index
            The examples to train on, where it is not the whole training split.
        **options
            Further fields of :class:`Stage`.
        """
        return self.bench.fit(
            Stage(
                name,
                modules,
                step,
                self.training(extras, index),
                schedule,
                score=score,
                validation=None if score is None else self.validation(extras),
                **{"augment": self.augment, **options},
            )
        )
