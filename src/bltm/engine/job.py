"""One fit: the data, its split, the architecture, and the workbench that runs its stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from bltm.core.records import IntArray, NoisyData, Split
from bltm.engine.batches import Task
from bltm.engine.workbench import Workbench
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
    """

    data: NoisyData
    split: Split
    bench: Workbench
    net: str | Callable[[int], nn.Module]
    weights: str | Path | None = None

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
