"""What a stage trains on, and how it comes in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from bltm.core.random import stream
from bltm.core.records import Examples, IntArray, NoisyData

# A smaller last batch joins the one before it.
LEAST = 8


@dataclass(frozen=True)
class Moment:
    """Where training stands: epoch ``epoch`` of ``epochs``, batch ``position`` of ``positions``.

    ``memory`` is what the stage remembers, of single examples, one row for each of the N, or of all
    together; it is saved with the rest of the state, and steps may write to it.
    """

    epoch: int = 0
    epochs: int = 1
    position: int = 0
    positions: int = 1
    memory: dict[str, torch.Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Batch:
    """Some examples on the device: their indices, inputs, noisy labels, weights and extras.

    ``moment`` says when in training the batch comes; in evaluation it says nothing.
    """

    index: torch.Tensor
    x: torch.Tensor
    y: torch.Tensor
    weight: torch.Tensor
    extras: Mapping[str, torch.Tensor]
    moment: Moment = field(default_factory=Moment)


@dataclass(frozen=True)
class Task:
    """The examples of one stage.

    Attributes
    ----------
    examples
        All N inputs.
    index
        Which of them take part, shape (M,).
    labels, weights
        Noisy label and weight of each of the N examples.
    extras
        Further tensors with one row for each of the N examples (inferred Bayes labels, a column
        of T, features); a batch carries the rows of its examples.
    """

    examples: Examples
    index: torch.Tensor
    labels: torch.Tensor
    weights: torch.Tensor
    extras: Mapping[str, torch.Tensor] = field(default_factory=dict)

    @classmethod
    def of(
        cls, data: NoisyData, index: IntArray, extras: Mapping[str, torch.Tensor] | None = None
    ) -> Task:
        """Return the task of training on some of the examples of a data set."""
        return cls(
            examples=data.examples,
            index=torch.from_numpy(np.ascontiguousarray(index)),
            labels=torch.from_numpy(data.labels),
            weights=torch.from_numpy(data.weights.astype(np.float32)),
            extras=extras or {},
        )

    def __len__(self) -> int:
        return len(self.index)


def shuffled(task: Task, seed: int, stage: str, epoch: int) -> torch.Tensor:
    """Return the task's indices in the order of an epoch, a function of seed, stage and epoch."""
    order = stream(seed, stage, "order", epoch).permutation(len(task))
    return task.index[torch.from_numpy(order)]


def in_batches(index: torch.Tensor, size: int, least: int = 1) -> list[torch.Tensor]:
    """Cut indices into batches; a last batch below ``least`` joins the one before it.

    Examples
    --------
    >>> [len(b) for b in in_batches(torch.arange(9), 4, 2)]
    [4, 5]
    """
    batches = list(torch.split(index, size))
    if len(batches) > 1 and len(batches[-1]) < least:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches


def training_batches(index: torch.Tensor, size: int, world_size: int) -> list[torch.Tensor]:
    """Cut indices into global batches of which each process gets two examples or more.

    The same batches for any usual number of processes, so that they compute the same.
    """
    return in_batches(index, size, max(2 * world_size, min(LEAST, size // 2)))


def iterate(task: Task, batches: list[torch.Tensor], device: torch.device) -> Iterator[Batch]:
    """Yield the task's batches on the device, in the order given."""
    for index, x in zip(batches, task.examples.batches(batches, device), strict=True):
        yield Batch(
            index=index,
            x=x,
            y=task.labels[index].to(device, non_blocking=True),
            weight=task.weights[index].to(device, non_blocking=True),
            extras={
                name: values[index].to(device, non_blocking=True)
                for name, values in task.extras.items()
            },
        )
