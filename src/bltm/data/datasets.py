"""What a registered data set is, and what it is when it is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.data.releases import FileSet, Places
from bltm.data.source import Kind, Source


@dataclass(frozen=True, eq=False)
class Parts:
    """What the loader of a data set returns; see ``DatasetBundle``."""

    train: Source
    test: Source | None
    label_sets: Mapping[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class DatasetInfo:
    """A row of the table: what a data set is, and how it is loaded.

    Attributes
    ----------
    name, description
        What it is called, and what it holds.
    n_train, n_test, n_classes
        How much of it there is.
    license
        Under which terms it may be used.
    address
        Where its authors tell about it.
    load
        Reads it from the places given.
    files
        All that is needed; empty where nothing is read.
    classes
        What the classes are called, in the order of their numbers.
    """

    name: str
    description: str
    n_train: int
    n_test: int
    n_classes: int
    license: str
    address: str
    load: Callable[[Places], Parts]
    files: tuple[FileSet, ...] = ()
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class DatasetBundle:
    """A loaded data set.

    Attributes
    ----------
    train
        Examples with the labels that a method may see. Nothing that can be reached from here
        knows others.
    test
        Examples to judge it by; None where there are none.
    info
        The row of the table.
    label_sets
        Further labels of the training examples by name, for evaluation only: clean labels, or the
        answers of several annotators. They are kept apart from ``train``, which is all that
        ``open_source`` returns and an estimator is given.
    """

    train: Source
    test: Source | None
    info: DatasetInfo
    label_sets: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def numbered(kind: Kind, inputs: NDArray[Any], labels: NDArray[Any], *notes: str) -> Source:
    """Return a source whose ids are row numbers."""
    return Source(
        kind=kind,
        inputs=inputs,
        labels=labels,
        ids=np.arange(len(inputs)),
        notes=tuple(notes),
    )
