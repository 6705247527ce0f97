"""The files of an audit, written block by block.

Columns of ``audit.csv`` and ``audit.parquet``, one row for each example in the order of the data:
the id under its own name, ``given_label``, ``suggested_label``, ``p_wrong``, ``verdict``,
``label_1`` and ``probability_1`` up to k, ``t_row``, ``collected`` (no, given, other),
``support_1`` to ``support_3`` (ids), ``split``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm import __version__
from bltm.audit.cells import cell
from bltm.audit.records import Audit
from bltm.audit.thresholds import VERDICTS
from bltm.core.blocks import blocks
from bltm.core.files import write_atomically, write_json

CSV, PARQUET, JSON = "audit.csv", "audit.parquet", "audit.json"
SCHEMA = 1
COLLECTED = ("no", "given", "other")
SPLITS = ("train", "validation", "unused", "used")
BLOCK_ROWS, BLOCK_ENTRIES = 2**16, 2**20
# Entries of T(x)'s row that a CSV names; with more classes than this, Parquet does likewise.
SHOWN_ENTRIES, LISTED_CLASSES = 3, 100


def write_audit(audit: Audit, directory: str | Path) -> list[Path]:
    """Write ``audit.csv``, ``audit.parquet`` and ``audit.json``; return their paths.

    User text that a spreadsheet would take for a formula is written with an apostrophe before it;
    ``apply_corrections`` knows both forms.

    Parameters
    ----------
    audit
        The audit.
    directory
        Where to write; made if it is missing. Files of these names are replaced, each as a whole.
    """
    directory = Path(directory)
    table = _Table(audit)
    write_atomically(directory / CSV, lambda path: _write_csv(table, path))
    write_atomically(directory / PARQUET, lambda path: _write_parquet(table, path))
    write_json(
        directory / JSON,
        {"schema": SCHEMA, "bltm": __version__, "id_name": audit.id_name} | audit.summary.to_json(),
    )
    return [directory / name for name in (CSV, PARQUET, JSON)]


def _write_csv(table: _Table, path: Path) -> None:
    from pyarrow import csv

    with csv.CSVWriter(path, table.block(slice(0, 0), lists=False).schema) as writer:
        for block in table.blocks():
            writer.write_table(table.block(block, lists=False))


def _write_parquet(table: _Table, path: Path) -> None:
    from pyarrow import parquet

    with parquet.ParquetWriter(path, table.block(slice(0, 0), lists=True).schema) as writer:
        for block in table.blocks():
            writer.write_table(table.block(block, lists=True))


class _Table:
    """The rows of an audit as Arrow tables, one block at a time."""

    def __init__(self, audit: Audit) -> None:
        import pyarrow as pa

        self.audit, self.pa = audit, pa
        self.names = _name_array(pa, audit.classes)
        self.texts = pa.array([cell(name) for name in audit.classes], pa.string())
        self.decimals = pa.array([f"{k / 1000:.3f}" for k in range(1001)], pa.string())
        self.split = _split(audit)

    def blocks(self) -> Any:
        """Yield the slices to write."""
        width = len(self.audit.classes)
        return blocks(len(self.audit), max(1, min(BLOCK_ROWS, BLOCK_ENTRIES // width)))

    def block(self, at: slice, *, lists: bool) -> Any:
        """Return the rows of a slice."""
        pa, audit = self.pa, self.audit
        columns: dict[str, Any] = {
            "given_label": self.names.take(pa.array(audit.labels[at])),
            "suggested_label": self.names.take(pa.array(audit.suggested[at])),
            "p_wrong": pa.array(audit.p_wrong[at]),
            "verdict": pa.array(VERDICTS, pa.string()).take(pa.array(audit.verdict[at])),
        }
        for k in range(audit.top.shape[1]):
            columns[f"label_{k + 1}"] = self.names.take(pa.array(audit.top[at, k]))
            columns[f"probability_{k + 1}"] = pa.array(audit.top_probs[at, k])
        columns["t_row"] = self._t_row(at, lists)
        columns["collected"] = pa.array(COLLECTED, pa.string()).take(pa.array(audit.collected[at]))
        for k in range(3):
            columns[f"support_{k + 1}"] = self._support(at, k)
        columns["split"] = pa.array(SPLITS, pa.string()).take(pa.array(self.split[at]))
        id_name = cell(audit.id_name)
        while id_name in columns or id_name in ("label", "corrected_label"):
            id_name += "_"
        return pa.table({id_name: self._ids(audit.ids[at])} | columns)

    def _ids(self, ids: NDArray[Any]) -> Any:
        if ids.dtype.kind in "iu":
            return self.pa.array(ids)
        return self.pa.array([cell(value) for value in ids.tolist()], self.pa.string())

    def _support(self, at: slice, k: int) -> Any:
        ids, n = self.audit.ids, len(self.audit.labels[at])
        kind = self.pa.int64() if ids.dtype.kind in "iu" else self.pa.string()
        if self.audit.support is None:
            return self.pa.nulls(n, kind)
        positions = self.audit.support[at, k]
        found: list[Any] = ids[np.maximum(positions, 0)].tolist()
        values = [
            None if position < 0 else (cell(value) if kind == self.pa.string() else value)
            for position, value in zip(positions.tolist(), found, strict=True)
        ]
        return self.pa.array(values, kind)

    def _t_row(self, at: slice, lists: bool) -> Any:
        pa, audit = self.pa, self.audit
        as_list = lists and len(audit.classes) <= LISTED_CLASSES
        n, width = len(audit.labels[at]), len(audit.classes)
        kind = pa.list_(pa.float32()) if as_list else pa.string()
        if audit.t_row is None:
            return pa.nulls(n, kind)
        rows = np.asarray(audit.t_row[at], dtype=np.float32)
        if as_list:
            offsets = pa.array(np.arange(0, n * width + 1, width, dtype=np.int32))
            return pa.ListArray.from_arrays(offsets, pa.array(rows.reshape(-1)))
        return self._largest(rows)

    def _largest(self, rows: NDArray[np.float32]) -> Any:
        """Return the largest entries as text: "label:probability; ..."."""
        from pyarrow import compute

        pa, b = self.pa, np.arange(len(rows))
        parts, left = [], rows.copy()
        for _ in range(min(SHOWN_ENTRIES, rows.shape[1])):
            best = left.argmax(axis=1) if len(left) else np.empty(0, dtype=np.int64)
            share = np.clip(np.rint(rows[b, best] * 1000), 0, 1000).astype(np.int32)
            left[b, best] = -1.0
            names, values = self.texts.take(pa.array(best)), self.decimals.take(pa.array(share))
            parts.append(compute.binary_join_element_wise(names, values, ":"))
        return compute.binary_join_element_wise(*parts, "; ")


def _name_array(pa: Any, classes: list[Any]) -> Any:
    """Return classes as an Arrow array: whole numbers as such, all else as text."""
    if all(isinstance(name, int) and not isinstance(name, bool) for name in classes):
        return pa.array(classes, pa.int64())
    return pa.array([cell(name) for name in classes], pa.string())


def _split(audit: Audit) -> NDArray[np.int8]:
    if audit.held_out is None:
        return np.where(audit.used, 3, 2).astype(np.int8)
    return np.where(audit.used, np.where(audit.held_out, 1, 0), 2).astype(np.int8)
