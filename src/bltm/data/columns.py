"""How one table column becomes network inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bltm.core.errors import InputError
from bltm.data.encode_arrays import LARGEST, weighted_moments

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Categories beyond the most frequent ones share one input.
MAX_LEVELS = 50
# Text with more values than that, most of them in one row only, is no category.
MAX_UNIQUE_SHARE = 0.5
# In tables of fewer rows a category may be seen once and have an input of its own.
MIN_ROWS_FOR_RARE = 20


@dataclass(frozen=True)
class NumberColumn:
    """A standardised number or truth value; missing ones are set to the mean and marked."""

    name: str
    mean: float
    scale: float
    marked: bool
    kind: str = "number"

    @property
    def width(self) -> int:
        """Return the number of network inputs."""
        return 1 + self.marked

    def encode(self, column: pd.Series[Any]) -> FloatArray:
        """Return the inputs, shape (N, width)."""
        from bltm.data.recognise import as_numbers

        return _standardised(finite_numbers(self.name, as_numbers(column)), self)


@dataclass(frozen=True)
class DateColumn:
    """Days since 1970, standardised, and where in the year and the week the date lies."""

    name: str
    mean: float
    scale: float
    marked: bool
    kind: str = "date"

    @property
    def width(self) -> int:
        """Return the number of network inputs."""
        return 5 + self.marked

    def encode(self, column: pd.Series[Any]) -> FloatArray:
        """Return the inputs, shape (N, width)."""
        from bltm.data.recognise import as_dates

        days, cycles = as_dates(column)
        return np.concatenate([cycles, _standardised(days, self)], axis=1)


@dataclass(frozen=True)
class CategoryColumn:
    """One input for each frequent category, one for all others, one for missing values.

    A category that was not seen in training counts as other, or is all zeros if nothing was.
    """

    name: str
    levels: tuple[str, ...]
    other: bool
    marked: bool
    kind: str = "category"

    @property
    def width(self) -> int:
        """Return the number of network inputs."""
        return len(self.levels) + self.other + self.marked

    def encode(self, column: pd.Series[Any]) -> FloatArray:
        """Return the inputs, shape (N, width)."""
        import pandas as pd

        from bltm.data.recognise import as_text

        text = as_text(column)
        gone = text == None  # noqa: E711
        code = pd.Index(list(self.levels), dtype=object).get_indexer(pd.Index(text, dtype=object))
        result = np.zeros((len(text), self.width))
        known = np.flatnonzero(code >= 0)
        result[known, code[known]] = 1.0
        if self.other:
            result[:, len(self.levels)] = (code < 0) & ~gone
        if self.marked:
            result[:, -1] = gone
        return result


Column = NumberColumn | DateColumn | CategoryColumn
_KINDS: dict[str, Any] = {
    "number": NumberColumn,
    "boolean": NumberColumn,
    "date": DateColumn,
    "category": CategoryColumn,
}


def fit_column(
    name: str, column: pd.Series[Any], index: IntArray, weight: FloatArray
) -> tuple[Column | None, str]:
    """Return how to encode a column, or None for one that carries nothing; and a remark."""
    from bltm.data.recognise import as_dates, as_numbers, recognise

    kind = recognise(column.iloc[index])
    if kind == "category":
        return _fit_category(name, column, index, weight)
    values = as_dates(column)[0] if kind == "date" else finite_numbers(name, as_numbers(column))
    mean, scale, seen = weighted_moments(values[:, None], index, weight)
    lost = len(index) - int(seen[0])
    if seen[0] == 0:
        return None, "empty"
    if scale[0] == 0.0 and lost == 0:
        return None, "constant"
    remark = f"{lost} missing" if lost else ""
    unread = lost - int(column.iloc[index].isna().sum())
    if unread > 0 and kind == "number" and column.dtype.kind not in "iufb":
        remark += f", of them {unread} that are no numbers"
    made = _KINDS[kind](name, float(mean[0]), float(scale[0]), lost > 0, kind=kind)
    return made, remark


def column_to_json(column: Column) -> dict[str, Any]:
    """Return a JSON object for a column."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(column).items()}


def column_from_json(value: Mapping[str, Any]) -> Column:
    """Return the column that ``column_to_json`` described."""
    fields = {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}
    made: Column = _KINDS[value["kind"]](**fields)
    return made


def finite_numbers(name: str, values: FloatArray) -> FloatArray:
    """Return the numbers unless one is infinite."""
    if np.isinf(values).any():
        raise InputError(
            f"column '{name}'", "contains infinity", "Replace it, or leave the cell empty."
        )
    return values


def _fit_category(
    name: str, column: pd.Series[Any], index: IntArray, weight: FloatArray
) -> tuple[CategoryColumn | None, str]:
    import pandas as pd

    from bltm.data.recognise import as_text

    codes, values = pd.factorize(as_text(column.iloc[index]))
    present = codes >= 0
    counts = np.bincount(codes[present], minlength=len(values))
    lost = int((~present).sum())
    if len(values) == 0:
        return None, "empty"
    if len(values) == 1 and lost == 0:
        return None, "constant"
    if len(values) > MAX_LEVELS and len(values) > MAX_UNIQUE_SHARE * present.sum():
        return None, f"text, {len(values)} different values"
    heavy = np.bincount(codes[present], weights=weight[present], minlength=len(values))
    rare = (counts == 1) & (len(index) >= MIN_ROWS_FOR_RARE) & (len(values) > 2)
    ranked = sorted(np.flatnonzero(~rare).tolist(), key=lambda code: (-heavy[code], values[code]))
    levels = tuple(str(values[code]) for code in ranked[:MAX_LEVELS])
    others = len(values) - len(levels)
    remark = f"{len(levels)} categories"
    remark += f", {others} rare ones together" if others else ""
    remark += f", {lost} missing" if lost else ""
    return CategoryColumn(name, levels, others > 0, lost > 0), remark


def _standardised(values: FloatArray, column: NumberColumn | DateColumn) -> FloatArray:
    gone = np.isnan(values)
    factor = 1.0 / column.scale if column.scale > 1e-290 else 0.0
    plain = np.where(gone, 0.0, np.clip((values - column.mean) * factor, -LARGEST, LARGEST))
    return np.stack([plain, gone], axis=1) if column.marked else plain[:, None]
