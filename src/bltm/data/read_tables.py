"""Tables: CSV, TSV, Parquet and DataFrames, their label and their id columns."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bltm.core.errors import DataQualityWarning, InputError
from bltm.data.labels import missing_labels
from bltm.data.source import ImageFiles, Source

LABEL_NAMES = ("label", "labels", "target", "class", "y")
_ID_NAME = re.compile(
    r"(?i:(^|[_\s.-])(id|uuid|guid)|^(index|idx|row|rownumber|row_number))$|[a-z]I[dD]$"
)
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})(\.0+)?")
_DELIMITERS = (",", ";", "\t", "|")


def read_table(
    path: Path,
    *,
    label: str | None = None,
    image: str | None = None,
    id: str | None = None,
    for_prediction: bool = False,
) -> Source:
    """Read a table file; see ``open_source``."""
    if path.suffix.lower() == ".parquet":
        frame, notes = _read_parquet(path)
        name = _label_column(frame.columns, label, for_prediction)
    else:
        frame, name, notes = _read_text(path, label, for_prediction)
    if len(frame) == 0:
        raise InputError("data", f"'{path}' has no rows", "Give at least one example.")
    for column in (c for c in (image, id) if c is not None):
        _require(column, frame.columns)
    labels = None
    if name in frame.columns:
        if not for_prediction:
            labels = _label_values(frame[name])
            if label is None:
                notes.append(f"Took column '{name}' for the labels; label= names another.")
        frame = frame.drop(columns=[name])
    label_name = name or "label"
    if image is not None:
        return _image_table(path, frame, image, id, labels, label_name, notes)
    return from_frame(frame, labels=labels, label_name=label_name, id=id, notes=notes)


def from_frame(
    frame: pd.DataFrame,
    *,
    labels: NDArray[Any] | None = None,
    label_name: str = "label",
    id: str | None = None,
    notes: list[str] | None = None,
) -> Source:
    """Return the source of a DataFrame whose columns are all inputs, but for an id column."""
    frame = frame.copy(deep=False)
    frame.columns = pd.Index([str(name) for name in frame.columns])
    if not frame.columns.is_unique:
        double = sorted(set(frame.columns[frame.columns.duplicated()]))
        raise InputError("X", f"has several columns called {double}", "Give each its own name.")
    ids, id_name, said = _ids(frame, id)
    return Source(
        kind="table",
        inputs=frame.reset_index(drop=True),
        labels=labels,
        ids=ids,
        id_name=id_name,
        label_name=label_name,
        notes=(*(notes or ()), *said),
    )


def is_id_column(name: str, column: pd.Series[Any]) -> bool:
    """Return whether a column only names the rows: an id by name, or whole numbers without a name.

    Examples
    --------
    >>> is_id_column("customer_id", pd.Series(["a", "b"]))
    True
    >>> is_id_column("customer_id", pd.Series(["a", "a"]))
    False
    >>> is_id_column("width", pd.Series([1, 2]))
    False
    """
    if len(column) < 2:
        return False
    if re.fullmatch(r"Unnamed: \d+|", name):
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
        return bool((numbers == np.rint(numbers)).all() and len(np.unique(numbers)) == len(column))
    if not _ID_NAME.search(name) or pd.api.types.is_float_dtype(column.dtype):
        return False
    return bool(column.notna().all() and column.is_unique)


def _ids(frame: pd.DataFrame, id: str | None) -> tuple[NDArray[Any], str, list[str]]:
    """Return ids, their name, and what was recognised."""
    if id is not None:
        _require(id, frame.columns)
        if frame[id].isna().any() or (frame[id].astype(str).str.strip() == "").any():
            raise InputError("id", f"column '{id}' has empty cells", "Every example needs an id.")
        if not frame[id].is_unique:
            warnings.warn(
                f"The ids in column '{id}' are not unique.", DataQualityWarning, stacklevel=4
            )
        return _id_values(frame[id]), id, [f"Column '{id}' names the examples; not learned from."]
    for name in frame.columns:
        if is_id_column(name, frame[name]):
            note = f"Took column '{name}' for ids, as no two rows share one; not learned from."
            return _id_values(frame[name]), name, [note]
    index = frame.index
    if isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1:
        return np.arange(len(frame), dtype=np.int64), _free_name("row", frame), []
    values = index.to_numpy()
    plain = values if values.dtype.kind in "iu" else _objects(values.tolist())
    return plain, _free_name(str(index.name or "index"), frame), []


def _free_name(name: str, frame: pd.DataFrame) -> str:
    """Return the name, changed if a column has it: a column of the name of the ids is no input."""
    while name in frame.columns:
        name = f"{name}_"
    return name


def _image_table(
    path: Path,
    frame: pd.DataFrame,
    image: str,
    id: str | None,
    labels: NDArray[Any] | None,
    label_name: str,
    notes: list[str],
) -> Source:
    gone = frame[image].isna() | (frame[image].astype(str).str.strip() == "")
    if gone.any():
        raise InputError(
            "image",
            f"column '{image}' has {int(gone.sum())} empty cells, the first in row "
            f"{int(np.flatnonzero(gone)[0])}",
            "Give a path for each example or leave the row out.",
        )
    names = _objects(frame[image].astype(str).str.strip().tolist())
    ids, id_name, said = (names, image, []) if id is None else _ids(frame, id)
    unused = [name for name in frame.columns if name not in (image, id)]
    if unused:
        said = [*said, f"Not used beside the images: {', '.join(unused)}."]
    files = ImageFiles(path.parent, names)
    return Source("files", files, labels, ids, id_name, label_name, (*notes, *said))


def _read_parquet(path: Path) -> tuple[pd.DataFrame, list[str]]:
    try:
        frame = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise InputError("data", f"'{path}' is no readable Parquet file ({error})", "") from error
    frame.columns = pd.Index([str(name) for name in frame.columns])
    return frame, []


def _read_text(
    path: Path, label: str | None, for_prediction: bool
) -> tuple[pd.DataFrame, str | None, list[str]]:
    """Read CSV or TSV; labels and ids stay as they are written."""
    notes = []
    encoding = _encoding(path)
    if encoding != "utf-8-sig":
        notes.append("The file is not UTF-8; read as Windows-1252.")
    with path.open(encoding=encoding, newline="") as file:
        header = next((line for line in file if line.strip()), "")
    separator = "\t" if path.suffix.lower() == ".tsv" else _delimiter(header)
    if separator != "," and path.suffix.lower() == ".csv":
        notes.append(f"Columns are separated by {separator!r}.")
    options: dict[str, Any] = {
        "sep": separator,
        "encoding": encoding,
        "decimal": "," if separator == ";" else ".",
        "skipinitialspace": True,
    }
    try:
        columns = pd.read_csv(path, nrows=0, **options).columns
        name = _label_column(columns, label, for_prediction)
        as_text = [c for c in columns if c == name or _ID_NAME.search(str(c))]
        frame = pd.read_csv(path, low_memory=False, **options)
        # Apart, because "007" is not 7 here and "NA" may be the name of a class.
        written = pd.read_csv(path, dtype=str, keep_default_na=False, usecols=as_text, **options)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(
            "data", f"'{path}' is no readable table ({error})", "Check separators and quotes."
        ) from error
    if not isinstance(frame.index, pd.RangeIndex):
        raise InputError(
            "data",
            f"'{path}' has rows with more cells than the header",
            "Check separators and quotes.",
        )
    for column in as_text:
        frame[column] = _objects(written[column].str.strip().tolist())
    return frame, name, notes


def _encoding(path: Path) -> str:
    try:
        with path.open(encoding="utf-8-sig") as file:
            while file.read(1 << 20):
                pass
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"


def _delimiter(header: str) -> str:
    outside = re.sub(r'"[^"]*"', "", header)
    return max(_DELIMITERS, key=lambda mark: (outside.count(mark), -_DELIMITERS.index(mark)))


def _label_column(columns: Any, label: str | None, for_prediction: bool) -> str | None:
    if label is not None:
        if not for_prediction:
            _require(label, columns, "label")
        return label
    if for_prediction:
        return None
    found = [str(name) for name in columns if str(name).lower() in LABEL_NAMES]
    if len(found) != 1:
        problem = f"columns {found} could all be it" if found else "no column is called that"
        raise InputError(
            "label",
            f"which column holds the labels? {problem.capitalize()}",
            f"Name it with label=; there are {_listing(columns)}.",
        )
    return found[0]


def _require(name: str, columns: Any, argument: str = "column") -> None:
    if name not in list(columns):
        raise InputError(
            argument, f"there is no column '{name}'", f"The columns are {_listing(columns)}."
        )


def _listing(columns: Any) -> str:
    shown = ", ".join(f"'{name}'" for name in list(columns)[:30])
    return shown if len(columns) <= 30 else f"{shown}, ... ({len(columns)} in all)"


def _label_values(column: pd.Series[Any]) -> NDArray[Any]:
    """Text that reads as whole numbers becomes integers; everything else stays as it is."""
    if column.dtype.kind in "iufb":
        return column.to_numpy()
    values = _objects(column.tolist())
    gone = missing_labels(values)
    present = values[~gone].tolist()
    if not present or not all(isinstance(v, str) and _WHOLE.fullmatch(v) for v in present):
        return values
    values[~gone] = [int(v.partition(".")[0]) for v in present]
    return values if gone.any() else values.astype(np.int64)


def _id_values(column: pd.Series[Any]) -> NDArray[Any]:
    if column.dtype.kind in "iu":
        return column.to_numpy()
    values = column.tolist()
    if all(isinstance(v, str) and _WHOLE.fullmatch(v) and "." not in v for v in values):
        return np.array([int(v) for v in values], dtype=np.int64)
    return _objects(values)


def _objects(values: list[Any]) -> NDArray[Any]:
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result
