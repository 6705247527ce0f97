"""What a table column holds, and its values as numbers, dates or text."""

from __future__ import annotations

import datetime
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
ColumnKind = Literal["number", "boolean", "date", "category"]

# A column of text is one of numbers if this share of it reads as numbers; the rest is missing.
NUMERIC_SHARE = 0.95
_ISO_DATE = r"\d{4}[-/]\d{2}[-/]\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?\s?(Z|[+-]\d{2}:?\d{2})?"


def recognise(column: pd.Series[Any]) -> ColumnKind:
    """Return what a column holds.

    Examples
    --------
    >>> [recognise(pd.Series(v)) for v in (["1", "2.5"], ["2024-01-31", None], ["a", "1"])]
    ['number', 'date', 'category']
    """
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "category"
    if pd.api.types.is_bool_dtype(dtype):
        return "boolean"
    if pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_timedelta64_dtype(dtype):
        return "number"
    if pd.api.types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        return "date"
    codes, values = _distinct(column)
    filled = [not _blank(value) for value in values]
    present = [value for value, full in zip(values, filled, strict=True) if full]
    if not present:
        return "category"
    if all(isinstance(value, bool | np.bool_) for value in present):
        return "boolean"
    if all(isinstance(value, datetime.date) for value in present):
        return "date"
    texts = pd.Series([str(value).strip() for value in present], dtype=object)
    counts = np.bincount(codes[codes >= 0], minlength=len(values))[filled]
    numeric = pd.to_numeric(texts, errors="coerce").notna().to_numpy()
    if counts[numeric].sum() >= NUMERIC_SHARE * counts.sum():
        return "number"
    return "date" if texts.str.fullmatch(_ISO_DATE).all() else "category"


def as_numbers(column: pd.Series[Any]) -> FloatArray:
    """Return numbers, NaN where there is none; lengths of time count in days."""
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        return np.asarray(column.dt.total_seconds().to_numpy(dtype=np.float64) / 86_400.0)
    if not pd.api.types.is_numeric_dtype(column.dtype):
        codes, values = _distinct(column)
        texts = [None if _blank(v) else v.strip() if isinstance(v, str) else v for v in values]
        numbers = pd.to_numeric(pd.Series([*texts, None], dtype=object), errors="coerce")
        return np.asarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan)[codes])
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def as_dates(column: pd.Series[Any]) -> tuple[FloatArray, FloatArray]:
    """Return days since 1970 (NaN where missing), and sine and cosine of month and weekday."""
    if isinstance(column.dtype, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    if not pd.api.types.is_datetime64_any_dtype(column.dtype):
        codes, values = _distinct(column)
        texts = [None if _blank(v) else str(v).strip().replace("/", "-") for v in values]
        days, cycles = _days_and_cycles(pd.Series([*texts, None], dtype=object))
        return days[codes], cycles[codes]
    return _days_and_cycles(column)


def _days_and_cycles(column: pd.Series[Any]) -> tuple[FloatArray, FloatArray]:
    dates = pd.to_datetime(column, utc=True, errors="coerce", format="ISO8601")
    epoch = pd.Timestamp("1970-01-01", tz="UTC")
    days = (dates - epoch).dt.total_seconds().to_numpy(dtype=np.float64) / 86_400.0
    month = 2 * np.pi * (dates.dt.month.to_numpy(dtype=np.float64) - 1) / 12
    weekday = 2 * np.pi * dates.dt.day_of_week.to_numpy(dtype=np.float64) / 7
    cycles = np.stack([np.sin(month), np.cos(month), np.sin(weekday), np.cos(weekday)], axis=1)
    return np.asarray(days), np.asarray(np.nan_to_num(cycles))


def as_text(column: pd.Series[Any]) -> NDArray[Any]:
    """Return the values as text, None where there is none; 2.0 and 2 are the same text."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        names = np.array([*map(_text, column.cat.categories.tolist()), None], dtype=object)
        return np.asarray(names[column.cat.codes.to_numpy()])
    codes, values = _distinct(column)
    texts = np.empty(len(values) + 1, dtype=object)
    texts[:-1] = [None if _blank(value) else _text(value) for value in values]
    return np.asarray(texts[codes])


def _distinct(column: pd.Series[Any]) -> tuple[NDArray[np.int64], list[Any]]:
    """Return the number of each value, -1 for missing ones, and the different values."""
    try:
        codes, values = pd.factorize(column)
    except TypeError:  # lists and other values that cannot be hashed
        codes, values = pd.factorize(column.astype(str))
    return np.asarray(codes, dtype=np.int64), values.tolist()


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _blank(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or value is pd.NA or value is pd.NaT or value != value
