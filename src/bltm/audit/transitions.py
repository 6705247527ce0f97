"""Transition matrices as an audit needs them: columns of the given label, rows of the right one.

No (N, C, C) array is ever made; blocks come by index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bltm.core.blocks import block_rows
from bltm.core.errors import InputError
from bltm.core.matrix import check_transition

Floats = NDArray[np.float32]
Codes = NDArray[np.integer[Any]]
Block = slice | NDArray[np.int64]
# Entries of T in a block, where T comes as a whole matrix for each example.
BLOCK_MATRIX_ENTRIES = 2**22
TOLERANCE = 1e-3


class Transition(Protocol):
    """T(x) of the examples."""

    @property
    def n_classes(self) -> int:
        """Return C."""

    @property
    def block_rows(self) -> int:
        """Return how many examples make a block."""

    def columns(self, index: Block, labels: Codes) -> Floats:
        """Return ``T(x_b)[:, labels_b]`` for the examples of a block, shape (B, C)."""

    def rows(self, index: Block, labels: Codes) -> Floats:
        """Return ``T(x_b)[labels_b, :]`` for the examples of a block, shape (B, C)."""


@dataclass(frozen=True, eq=False)
class ClassTransition:
    """One matrix for all examples."""

    T: NDArray[np.float64]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rows", np.ascontiguousarray(self.T, dtype=np.float32))
        object.__setattr__(self, "_columns", np.ascontiguousarray(self.T.T, dtype=np.float32))

    @property
    def n_classes(self) -> int:
        """Return C."""
        return len(self.T)

    @property
    def block_rows(self) -> int:
        """Return how many examples make a block."""
        return block_rows(len(self.T))

    def columns(self, index: Block, labels: Codes) -> Floats:
        """Return the columns of the labels."""
        return cast(Floats, self.__dict__["_columns"].take(labels, axis=0))

    def rows(self, index: Block, labels: Codes) -> Floats:
        """Return the rows of the labels."""
        return cast(Floats, self.__dict__["_rows"].take(labels, axis=0))


@dataclass(frozen=True, eq=False)
class MatrixTransition:
    """One matrix for each example, from an array (N, C, C) or a function of the positions."""

    matrices: Callable[[NDArray[np.int64]], ArrayLike]
    n: int
    n_classes: int

    @property
    def block_rows(self) -> int:
        """Return how many examples make a block."""
        per_matrix = max(1, BLOCK_MATRIX_ENTRIES // self.n_classes**2)
        return min(per_matrix, block_rows(self.n_classes))

    def columns(self, index: Block, labels: Codes) -> Floats:
        """Return the columns of the labels."""
        T = self._block(index)
        return np.ascontiguousarray(T[np.arange(len(T)), :, labels], dtype=np.float32)

    def rows(self, index: Block, labels: Codes) -> Floats:
        """Return the rows of the labels."""
        T = self._block(index)
        return np.ascontiguousarray(T[np.arange(len(T)), labels], dtype=np.float32)

    def _block(self, index: Block) -> NDArray[np.float64]:
        positions = np.arange(self.n)[index] if isinstance(index, slice) else index
        T = np.asarray(self.matrices(positions))
        expected = (len(positions), self.n_classes, self.n_classes)
        if T.shape != expected:
            raise InputError(
                "transition",
                f"gave an array of shape {T.shape} for {len(positions)} examples",
                f"It must be {expected}: T(x)[i, j] = P(given = j | right = i, x).",
            )
        return check_transition(T, "transition", TOLERANCE)


@dataclass(frozen=True, eq=False)
class KnownParts:
    """T(x) of which the given label's column and one row are known, and the mean for the rest.

    Attributes
    ----------
    log_columns
        log T(x)[:, given label], shape (N, C).
    given
        Given labels, shape (N,).
    known_rows, row_labels
        T(x)[i, :] of one label i for each example, shape (N, C), and that label, shape (N,).
    mean
        The average matrix, shape (C, C); None if it is not known yet, and then only the columns of
        the given labels can be had.
    """

    log_columns: Floats
    given: Codes
    known_rows: Floats | None = None
    row_labels: Codes | None = None
    mean: ClassTransition | None = None

    @property
    def n_classes(self) -> int:
        """Return C."""
        return int(self.log_columns.shape[1])

    @property
    def block_rows(self) -> int:
        """Return how many examples make a block."""
        return block_rows(self.n_classes)

    def columns(self, index: Block, labels: Codes) -> Floats:
        """Return the columns of the labels: exact for given ones, else pieced together."""
        if self.mean is None:
            return np.exp(self.log_columns[index], dtype=np.float32)
        found = self.mean.columns(index, labels)
        if self.known_rows is not None and self.row_labels is not None:
            b = np.arange(len(labels))
            found[b, self.row_labels[index]] = self.known_rows[index][b, labels]
        return found

    def rows(self, index: Block, labels: Codes) -> Floats:
        """Return the rows of the labels: the known ones, else those of the mean."""
        if self.mean is None:
            raise ValueError("rows need the mean matrix")
        found = self.mean.rows(index, labels)
        if self.known_rows is not None and self.row_labels is not None:
            same = self.row_labels[index] == labels
            found[same] = self.known_rows[index][same]
        return found


@dataclass(frozen=True, eq=False)
class TransitionRows:
    """The rows ``T(x)[labels, :]`` of all N examples, computed when they are asked for.

    It is indexed like an array of shape (N, C).

    Examples
    --------
    >>> T = ClassTransition(np.array([[0.9, 0.1], [0.2, 0.8]]))
    >>> rows = TransitionRows(T, np.array([1, 0, 1]))
    >>> rows.shape, float(rows[1].sum())
    ((3, 2), 1.0)
    """

    transition: Transition
    labels: Codes

    @property
    def shape(self) -> tuple[int, int]:
        """Return (N, C)."""
        return len(self.labels), self.transition.n_classes

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: Any) -> Floats:
        positions = np.arange(len(self.labels))[index]
        flat = np.atleast_1d(positions)
        step = self.transition.block_rows
        found = np.empty((len(flat), self.shape[1]), dtype=np.float32)
        for start in range(0, len(flat), step):
            block = flat[start : start + step]
            found[start : start + step] = self.transition.rows(block, self.labels[block])
        return found if np.ndim(positions) else found[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype=dtype)


def as_transition(transition: Any, n: int, n_classes: int) -> Transition:
    """Return what the user gave as ``transition`` in the form that the audit takes.

    Parameters
    ----------
    transition
        (C, C), (N, C, C), or a function that takes positions (B,) and gives (B, C, C).
    n, n_classes
        N and C.
    """
    if callable(transition) and not hasattr(transition, "__array__"):
        return MatrixTransition(transition, n, n_classes)
    T = transition if isinstance(transition, np.ndarray) else np.asarray(transition)
    if T.shape == (n_classes, n_classes):
        return ClassTransition(check_transition(T, "transition", TOLERANCE))
    if T.shape == (n, n_classes, n_classes):
        return MatrixTransition(lambda index: T[index], n, n_classes)
    raise InputError(
        "transition",
        f"has shape {T.shape}, and there are {n} examples of {n_classes} classes",
        f"Give ({n_classes}, {n_classes}), ({n}, {n_classes}, {n_classes}), or a function of "
        "positions. Columns of the given labels alone go into log_columns=.",
    )
