"""Corrected labels that come back from a spreadsheet, a report or a script."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bltm.audit.cells import Lookup, cell
from bltm.core.errors import InputError

LABEL_COLUMNS = ("corrected_label", "label")
_DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True, eq=False)
class Corrections:
    """Ids and labels as a file has them; rows without a label are left out.

    Attributes
    ----------
    ids, labels
        Cells of the same length.
    source
        The file, for messages.
    """

    ids: list[Any]
    labels: list[Any]
    source: str = "corrections"

    def __len__(self) -> int:
        return len(self.ids)


def read_corrections(path: str | Path, id_name: str | None = None) -> Corrections:
    """Read a table of corrected labels.

    The labels are in the column ``corrected_label``, or else ``label``; an empty cell means that
    nothing was decided. The ids are in the column ``id_name``, or else in the first one.

    Parameters
    ----------
    path
        CSV (separated by commas, semicolons or tabs) or Parquet.
    id_name
        What the ids are called.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError("corrections", f"there is no file '{path}'", "Check the name.")
    columns = _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_text(path)
    found = [name for name in LABEL_COLUMNS if name in columns]
    if not found:
        raise InputError(
            "corrections",
            f"'{path}' has no column 'corrected_label' or 'label'",
            f"Its columns are {_listing(list(columns))}.",
        )
    others = [name for name in columns if name not in LABEL_COLUMNS]
    wanted = {id_name, cell(id_name)} if id_name is not None else set(others[:1])
    ids = [name for name in columns if name in wanted and name != found[0]]
    if not ids:
        raise InputError(
            "corrections",
            f"'{path}' has no column {id_name or 'of ids'!r}",
            "Corrected labels find their examples by the ids of the audit.",
        )
    pairs = zip(columns[ids[0]], columns[found[0]], strict=True)
    decided = [(name, label) for name, label in pairs if str(label).strip() and label is not None]
    return Corrections(
        [name for name, _ in decided], [label for _, label in decided], source=str(path)
    )


def apply_corrections(
    ids: Sequence[Any] | NDArray[Any],
    labels: ArrayLike,
    classes: Sequence[Any] | NDArray[Any],
    corrections: Corrections,
    *,
    new_classes: bool = False,
) -> NDArray[Any]:
    """Return the labels with the corrections put in.

    Parameters
    ----------
    ids
        Ids of the N examples, all different.
    labels
        Their labels in the user's own terms, shape (N,).
    classes
        The C classes.
    corrections
        What :func:`read_corrections` read. Examples that it does not name keep their label.
    new_classes
        Whether labels may name classes that do not exist yet.

    Examples
    --------
    >>> corrections = Corrections(["b"], ["dog"])
    >>> apply_corrections(["a", "b"], ["cat", "cat"], ["cat", "dog"], corrections).tolist()
    ['cat', 'dog']
    """
    given: NDArray[Any] = np.asarray(labels)
    if len(given) != len(ids):
        raise InputError("ids", f"has {len(ids)} entries for {len(given)} labels", "")
    names = classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
    decided, unnamed = _resolved(ids, names, corrections)
    if unnamed and not new_classes:
        raise InputError(
            "corrections",
            f"{corrections.source} has labels that are no class: {_listing(unnamed)}",
            f"The classes are {_listing(names)}.",
        )
    result = given.astype(object)
    positions = np.fromiter(decided, dtype=np.int64, count=len(decided))
    values = np.empty(len(decided), dtype=object)
    values[:] = list(decided.values())
    result[positions] = values
    keeps_type = given.dtype.kind in "iub" and not unnamed
    return result.astype(given.dtype) if keeps_type else result


def _resolved(
    ids: Sequence[Any] | NDArray[Any], names: list[Any], corrections: Corrections
) -> tuple[dict[int, Any], list[Any]]:
    """Return the label for each corrected position, and labels that are no class."""
    rows, columns = Lookup(ids, "ids"), Lookup(names, "classes")
    decided: dict[int, Any] = {}
    unknown, unnamed = [], []
    for name, label in zip(corrections.ids, corrections.labels, strict=True):
        position, code = rows.find(name), columns.find(label)
        if position is None:
            unknown.append(name)
            continue
        if position in decided:
            raise InputError(
                "corrections",
                f"{corrections.source} has the id {name!r} twice",
                "Decide for each example once.",
            )
        if code is None:
            unnamed.append(label)
        decided[position] = label if code is None else names[code]
    if unknown:
        raise InputError(
            "corrections",
            f"{corrections.source} has {len(unknown)} ids that the data does not have: "
            f"{_listing(unknown)}",
            "Were they changed by a spreadsheet (007 to 7), or are they of other data?",
        )
    return decided, unnamed


def _read_parquet(path: Path) -> dict[str, list[Any]]:
    from pyarrow import ArrowException, parquet

    try:
        table = parquet.read_table(path)
    except (OSError, ArrowException) as error:
        raise InputError(
            "corrections", f"'{path}' is no readable Parquet file ({error})", ""
        ) from error
    return {str(name): table[name].to_pylist() for name in table.column_names}


def _read_text(path: Path) -> dict[str, list[Any]]:
    """Read CSV cell by cell: a library that guesses would take "007" for 7 and " " for nothing."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            separator = max(_DELIMITERS, key=file.readline().count)
            file.seek(0)
            rows = csv.reader(file, delimiter=separator)
            header = next(rows, [])
            columns: dict[str, list[Any]] = {name: [] for name in header}
            for row in rows:
                # Spreadsheets leave out empty cells at the end of a row.
                for place, name in enumerate(header if row else []):
                    columns[name].append(row[place] if place < len(row) else "")
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            "corrections", f"'{path}' is no readable table ({error})", "Save it as CSV in UTF-8."
        ) from error
    if len(columns) < len(header):
        raise InputError("corrections", f"'{path}' has two columns of one name", "Remove one.")
    return columns


def _listing(values: list[Any]) -> str:
    shown = ", ".join(repr(value) for value in values[:5])
    return shown if len(values) <= 5 else f"{shown}, ... ({len(values)})"
