"""Rows of numbers: standardised column by column, missing values marked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bltm.core.errors import InputError
from bltm.data.examples import MEMORY_BUDGET, LazyExamples, VectorExamples
from bltm.data.source import Source

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# A standardised value beyond this is cut off: float32 and a network cannot use it.
LARGEST = 1e4
_CHUNK_NUMBERS = 1 << 16
# A data set that does not fit in memory is judged by this many of its rows.
SAMPLED_ROWS = 10_000


@dataclass(frozen=True)
class ArrayEncoder:
    """Standardises columns; a column with missing values in training gets an indicator.

    Attributes
    ----------
    mean, scale
        Of each column in training; the scale of a constant column is zero, and so is its output.
    marked
        Columns whose missing values are marked by a further input.
    """

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    marked: tuple[int, ...]
    notes: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape ``(d,)`` of one network input."""
        return (len(self.mean) + len(self.marked),)

    def encode(
        self, source: Source, *, budget: int = MEMORY_BUDGET, workers: int | None = None
    ) -> VectorExamples | LazyExamples:
        """Return the standardised rows of a source."""
        held = _held(source, budget)
        if held is None:
            from bltm.data.torch_items import RawItems

            return LazyExamples(RawItems(source.inputs), self.shape, self._on_device, workers)
        self._check_columns(held)
        result = np.empty((len(held), *self.shape), dtype=np.float32)
        step = max(1, _CHUNK_NUMBERS // max(1, held.shape[1]))
        for start in range(0, len(held), step):
            result[start : start + step] = self._standardise(held[start : start + step])
        return VectorExamples(torch.from_numpy(result))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; floats survive it unchanged."""
        return {
            "encoder": "array",
            "mean": list(self.mean),
            "scale": list(self.scale),
            "marked": list(self.marked),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ArrayEncoder:
        """Return the encoder that ``to_json`` described."""
        return cls(**{name: tuple(entries) for name, entries in value.items()})

    def _check_columns(self, rows: NDArray[Any]) -> None:
        if rows.shape[1] != len(self.mean):
            raise InputError(
                "X",
                f"has {rows.shape[1]} features, but the encoder was fitted on {len(self.mean)}",
                "Give the columns of the training data, in their order.",
            )

    def _standardise(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        values = rows.astype(np.float64)
        gone = np.isnan(values)
        values -= np.asarray(self.mean)
        values *= _inverse(np.asarray(self.scale))
        values[gone] = 0.0
        np.clip(values, -LARGEST, LARGEST, out=values)
        result = np.empty((len(rows), *self.shape), dtype=np.float32)
        result[:, : rows.shape[1]] = values
        result[:, rows.shape[1] :] = gone[:, list(self.marked)]
        return result

    def _on_device(self, device: torch.device) -> Callable[[torch.Tensor], torch.Tensor]:
        def ready(raw: torch.Tensor) -> torch.Tensor:
            rows = raw.cpu().numpy()
            self._check_columns(rows)
            return torch.from_numpy(self._standardise(rows)).to(device)

        return ready


def fit_array(source: Source, index: IntArray, weight: FloatArray, budget: int) -> ArrayEncoder:
    """Learn means and standard deviations from rows, weighted, in the order given."""
    held = _held(source, budget)
    notes: list[str] = []
    if held is None:
        from bltm.data.torch_items import read_items

        chosen = np.linspace(0, len(index) - 1, min(len(index), SAMPLED_ROWS)).astype(np.int64)
        held = read_items(source.inputs, index[chosen])
        index, weight = np.arange(len(chosen)), weight[chosen]
        notes.append(f"Means and deviations come from {len(chosen)} of the examples.")
    mean, scale, seen = weighted_moments(held, index, weight)
    missing = np.flatnonzero(seen < len(index))
    constant = int((scale == 0).sum())
    if constant:
        notes.append(f"{constant} of {len(scale)} columns are constant and carry nothing.")
    if len(missing):
        notes.append(f"{len(missing)} columns have missing values: set to the mean, and marked.")
    return ArrayEncoder(
        tuple(mean.tolist()), tuple(scale.tolist()), tuple(missing.tolist()), tuple(notes)
    )


def weighted_moments(
    rows: NDArray[Any], index: IntArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return mean, standard deviation and number of present values of each column.

    Sums go over the rows in the given order in float64. The deviation of a column whose values
    are all the same is exactly zero; mean and deviation of an empty column are zero.

    Examples
    --------
    >>> mean, scale, seen = weighted_moments(
    ...     np.array([[1.0], [np.nan], [4.0]]), np.arange(3), np.array([2.0, 1.0, 1.0])
    ... )
    >>> mean.tolist(), scale.round(3).tolist(), seen.tolist()
    ([2.0], [1.414], [2])
    """
    n_columns = rows.shape[1]
    share = weight / weight.sum()
    total, mass = np.zeros(n_columns), np.zeros(n_columns)
    low, high = np.full(n_columns, np.inf), np.full(n_columns, -np.inf)
    seen = np.zeros(n_columns, dtype=np.int64)
    for values, part in _chunks(rows, index, share):
        there = ~np.isnan(values)
        seen += there.sum(axis=0)
        mass += (part * there).sum(axis=0)
        low = np.fmin(low, np.fmin.reduce(values, axis=0))
        high = np.fmax(high, np.fmax.reduce(values, axis=0))
        total += (part * np.where(there, values, 0.0)).sum(axis=0)
    present = seen > 0
    mean = np.divide(total, mass, out=np.zeros(n_columns), where=present)
    varies = present & (low < high)
    low, high = np.where(present, low, 0.0), np.where(present, high, 0.0)
    mean = np.clip(mean, low, high)
    # Squares of large deviations overflow; relative to the largest one they do not.
    largest = np.where(varies, np.maximum(high - mean, mean - low), 1.0)
    squares = np.zeros(n_columns)
    for values, part in _chunks(rows, index, share):
        relative = np.where(np.isnan(values), 0.0, (values - mean) / largest)
        squares += (part * relative**2).sum(axis=0)
    variance = np.divide(squares, mass, out=np.zeros(n_columns), where=present)
    return mean, np.where(varies, largest * np.sqrt(variance), 0.0), seen


def _chunks(
    rows: NDArray[Any], index: IntArray, share: FloatArray
) -> Iterator[tuple[FloatArray, FloatArray]]:
    step = max(1, _CHUNK_NUMBERS // max(1, rows.shape[1]))
    for start in range(0, len(index), step):
        part = slice(start, start + step)
        yield rows[index[part]].astype(np.float64), share[part, None]


def _inverse(scale: FloatArray) -> FloatArray:
    return np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 1e-290)


def _held(source: Source, budget: int) -> NDArray[Any] | None:
    """Return the rows as one array; None for a data set too large for memory."""
    if source.kind == "array":
        return np.asarray(source.inputs)
    if source.kind == "dataset":
        from bltm.data.torch_items import in_memory

        held = in_memory(source, budget)
        return None if held is None else _held(held, budget)
    if source.kind == "table":
        try:
            return np.asarray(source.inputs.to_numpy(dtype=np.float64, na_value=np.nan))
        except (TypeError, ValueError) as error:
            raise InputError(
                "X", f"needs numbers only ({error})", "The training data was an array of numbers."
            ) from error
    raise InputError(
        "X", f"is of the kind {source.kind!r}", "The training data was an array of numbers."
    )
