"""A training stage: which networks learn what from which examples, and how long."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import nn

from bltm.engine.augment import Augmentation
from bltm.engine.batches import Batch, Moment, Task
from bltm.engine.schedule import Schedule
from bltm.engine.selection import Score

Modules = Mapping[str, nn.Module]
Step = Callable[[Modules, Batch], torch.Tensor | None]
"""Computes one loss value per example of a batch.

A method whose loss couples the examples of a batch returns a scalar, and one that finds nothing to
learn in a batch returns None: then no weight moves, not even by momentum.
"""


@dataclass(frozen=True)
class Stage:
    """All that the loop needs to know of a stage.

    Attributes
    ----------
    name
        Of its files, its random streams and its lines in the history.
    modules
        The networks to train, by the names under which the step knows them.
    step
        Gives the loss of a batch.
    task, schedule
        What to train on, and how.
    score, validation
        For the selection on noisy data that was held out: ``score`` gives log-probabilities of the
        noisy labels.
    rates
        Factors on the learning rate of single modules.
    memory
        What the stage remembers from step to step, as it is before the first one: tensors of single
        examples, with one row for each of the N, or of all together.
    before_epoch
        Called before the first batch of each epoch; may change the memory.
    batches
        Gives the batches of an epoch, where they are not a random order of the task's examples.
    augment
        Changes the inputs of each training batch.
    passes
        How many networks' forward and backward passes an example of a batch goes through.
    """

    name: str
    modules: Modules
    step: Step
    task: Task
    schedule: Schedule
    score: Score | None = None
    validation: Task | None = None
    rates: Mapping[str, float] = field(default_factory=dict)
    memory: Mapping[str, torch.Tensor] = field(default_factory=dict)
    before_epoch: Callable[[Modules, Moment], None] | None = None
    batches: Callable[[Moment], list[torch.Tensor]] | None = None
    augment: Augmentation | None = None
    passes: float = 1.0
