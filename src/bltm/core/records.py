"""The frozen records that stages hand to each other.

Shapes: N examples, C classes, ``d`` features. Arrays that speak of examples are indexed by the
example's position in the data set given to ``fit`` (its *index*); the user's own names for the
examples are in ``NoisyData.ids``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bltm.core.errors import InputError

if TYPE_CHECKING:
    import torch

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


class Examples(Protocol):
    """Inputs that come by index, ready for a network.

    Data in memory and data that is decoded file by file look the same from here.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one network input: ``(d,)`` for tables, ``(channels, height, width)``."""

    def __len__(self) -> int:
        """Return the number of examples."""

    def batches(
        self, index_batches: Iterable[torch.Tensor], device: torch.device
    ) -> Iterator[torch.Tensor]:
        """Yield one normalised float32 tensor on ``device`` for each batch of indices.

        Images come in ``channels_last`` layout. The order of the batches is kept.
        """


@dataclass(frozen=True)
class NoisyData:
    """Examples with the labels that were given, right or wrong; all that a method may see.

    Attributes
    ----------
    examples
        The N inputs.
    labels
        Given labels as codes ``0..C-1``, shape (N,).
    classes
        The C class labels in the user's own terms.
    weights
        Non-negative weight of each example, shape (N,). An example of weight zero is not used.
    trusted
        Mask of labels known to be right, shape (N,).
    group
        Number of the input, shape (N,): equal inputs have equal numbers, so that no split can put
        copies of one input on both sides. Sorting by it gives an order of the examples that does
        not depend on the order in which they were given.
    ids
        The user's stable name of each example, shape (N,).
    """

    examples: Examples
    labels: IntArray
    classes: NDArray[Any]
    weights: FloatArray
    trusted: NDArray[np.bool_]
    group: IntArray
    ids: NDArray[Any]

    def __post_init__(self) -> None:
        for name in ("labels", "weights", "trusted", "group", "ids"):
            if len(getattr(self, name)) != len(self.examples):
                raise InputError(
                    name,
                    f"has length {len(getattr(self, name))} but there are "
                    f"{len(self.examples)} examples",
                )

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def n_classes(self) -> int:
        """Return the number of classes C."""
        return len(self.classes)


@dataclass(frozen=True)
class Split:
    """Which examples train and which select; both carry noisy labels.

    ``validation`` is empty when there are too few examples to spare.
    """

    train: IntArray
    validation: IntArray

    @property
    def all(self) -> IntArray:
        """Return all examples that are used, in one order."""
        return np.concatenate([self.train, self.validation])


@dataclass(frozen=True)
class Posterior:
    """Estimated noisy class posteriors P(noisy label | x) of all N examples, shape (N, C).

    ``out_of_sample`` says whether no example was judged by a model that had seen its label.
    """

    probs: NDArray[np.float32]
    out_of_sample: bool
    source: str


@dataclass(frozen=True)
class Collected:
    """Examples whose Bayes label could be inferred (section 4.2).

    Attributes
    ----------
    indices
        The M collected examples, shape (M,).
    bayes_labels
        Their inferred Bayes labels, shape (M,).
    threshold
        The posterior had to be above this (per class where a collector sets one for each).
    coverage
        Number collected for each class, shape (C,).
    collector
        The name of the rule that collected them.
    """

    indices: IntArray
    bayes_labels: IntArray
    threshold: float
    coverage: IntArray
    collector: str

    def __len__(self) -> int:
        return len(self.indices)


@dataclass(frozen=True)
class Suspicion:
    """How much speaks against each of the N given labels, shape (N,), between 0 and 1.

    Attributes
    ----------
    values
        One number for each example; larger is more suspicious.
    kind
        "probability" that the label is wrong, or a "score" that only ranks.
    source
        What the values are, in words.
    """

    values: NDArray[np.float32]
    kind: str
    source: str


@dataclass(frozen=True)
class FitResult:
    """What a method hands back: networks, what it found, and what it wants to say.

    ``classifier`` maps inputs to logits over right labels, and ``probs`` is what it says of the N
    training examples; ``transition`` is present when the method estimates T or T(x). The others
    are kept for an audit, see :class:`bltm.core.evidence.Evidence`.
    """

    classifier: torch.nn.Module
    probs: NDArray[np.float32]
    suspicion: Suspicion
    transition: torch.nn.Module | None = None
    posterior: Posterior | None = None
    distilled: Collected | None = None
    collected: Collected | None = None
    out_of_sample: NDArray[np.float32] | None = None
    columns: NDArray[np.float32] | None = None
    rows: NDArray[np.float32] | None = None
    expected: NDArray[np.float32] | None = None
    support: IntArray | None = None
    findings: dict[str, Any] = field(default_factory=dict)


def as_index(values: Sequence[int] | IntArray) -> IntArray:
    """Return indices as int64."""
    return np.asarray(values, dtype=np.int64)
