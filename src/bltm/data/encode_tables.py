"""Tables: each column by what it holds, matched by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from bltm.core.errors import InputError
from bltm.data.columns import Column, column_from_json, column_to_json, fit_column
from bltm.data.examples import MEMORY_BUDGET, VectorExamples
from bltm.data.source import Source

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class TableEncoder:
    """Encodes the columns of a table by name.

    Attributes
    ----------
    columns
        How each column that is used is encoded.
    names
        All columns of the training table, in their order; those that are not in ``columns`` are
        not used.
    """

    columns: tuple[Column, ...]
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape ``(d,)`` of one network input."""
        return (sum(column.width for column in self.columns),)

    def encode(
        self, source: Source, *, budget: int = MEMORY_BUDGET, workers: int | None = None
    ) -> VectorExamples:
        """Return the encoded rows; columns of other names are ignored, and that is noted."""
        frame, notes = self._frame(source)
        missing = [column.name for column in self.columns if column.name not in frame.columns]
        if missing:
            raise InputError(
                "X",
                f"lacks the columns {', '.join(map(repr, missing))}",
                f"The model was trained with {', '.join(repr(c.name) for c in self.columns)}.",
            )
        known = {*self.names, source.id_name}
        extra = [name for name in frame.columns if name not in known]
        if extra:
            notes.append(f"Ignored columns that training did not have: {', '.join(extra)}.")
        result = np.empty((len(source), *self.shape), dtype=np.float32)
        start = 0
        for column in self.columns:
            result[:, start : start + column.width] = column.encode(frame[column.name])
            start += column.width
        return VectorExamples(torch.from_numpy(result), tuple(notes))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; floats survive it unchanged."""
        return {
            "encoder": "table",
            "columns": [column_to_json(column) for column in self.columns],
            "names": list(self.names),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> TableEncoder:
        """Return the encoder that ``to_json`` described."""
        fields = {k: tuple(v) for k, v in value.items()}
        fields["columns"] = tuple(column_from_json(column) for column in value["columns"])
        return cls(**fields)

    def _frame(self, source: Source) -> tuple[pd.DataFrame, list[str]]:
        if source.kind == "table":
            return source.inputs, []
        if source.kind != "array" or source.inputs.shape[1] != len(self.names):
            raise InputError(
                "X",
                f"is of the kind {source.kind!r}, but the model was trained on a table",
                f"Give a table with the columns {', '.join(map(repr, self.names))}.",
            )
        import pandas as pd

        note = "The array has no column names; took its columns in the order of training."
        return pd.DataFrame(source.inputs, columns=list(self.names)), [note]


def fit_table(source: Source, index: IntArray, weight: FloatArray) -> TableEncoder:
    """Learn from rows how each column is encoded; sums go over the rows in the given order."""
    from bltm.data.read_tables import is_id_column

    frame: pd.DataFrame = source.inputs
    columns: list[Column] = []
    remarks: dict[str, list[str]] = {}
    for name in frame.columns:
        if name == source.id_name:
            continue
        if is_id_column(name, frame[name]):
            remarks.setdefault("dropped", []).append(f"'{name}' (an id)")
            continue
        column, remark = fit_column(name, frame[name], index, weight)
        if column is None:
            remarks.setdefault("dropped", []).append(f"'{name}' ({remark})")
        else:
            columns.append(column)
            said = f"'{name}'" + (f" ({remark})" if remark else "")
            remarks.setdefault(column.kind, []).append(said)
    if not columns:
        raise InputError(
            "X",
            f"has no column to learn from: {', '.join(remarks.get('dropped', ['none at all']))}",
            "Constant columns, ids and free text carry nothing that can be learned.",
        )
    return TableEncoder(tuple(columns), tuple(frame.columns), _notes(remarks))


def _notes(remarks: dict[str, list[str]]) -> tuple[str, ...]:
    titles = {
        "number": "Numbers, standardised",
        "boolean": "Truth values",
        "category": "Categories, one input each",
        "date": "Dates, as elapsed days with month and weekday",
        "dropped": "Not learned from",
    }
    return tuple(
        f"{title}: {', '.join(remarks[kind])}." for kind, title in titles.items() if kind in remarks
    )
