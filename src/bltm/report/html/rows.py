"""Rows of a table, cut to what a report can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bltm.report.html.content import Limits, TableRows
from bltm.report.html.embed import embedded_json

CHUNK = 256


@dataclass(frozen=True)
class ShownRows:
    """Rows of the first examples asked for.

    Attributes
    ----------
    columns
        Names of the columns that are shown.
    cells
        Cells of each row, None for those without room.
    all_columns
        Number of columns that the table has beside the ids.
    left_out
        Number of rows for which there was no room.
    """

    columns: list[str]
    cells: list[list[str] | None]
    all_columns: int
    left_out: int

    def payload(self) -> dict[str, Any]:
        """Return what the script of the page reads."""
        return {"columns": self.columns, "cells": self.cells}


def fitting_rows(
    table_rows: TableRows, order: Sequence[int], id_name: str, room: int, limits: Limits
) -> ShownRows:
    """Return rows in this order until there is no more room.

    Parameters
    ----------
    table_rows
        Gives the rows.
    order
        Indices, those that matter most first.
    id_name
        The column of the ids, which are shown anyway.
    room
        The most characters that all of them may take.
    limits
        How many columns and how much of a cell is shown.
    """
    # Where there is no row, it says "null".
    room -= 5 * len(order)
    columns: list[str] = []
    every = 0
    cells: list[list[str] | None] = []
    for start in range(0, len(order), CHUNK):
        for row in table_rows(order[start : start + CHUNK]):
            if not columns:
                others = [name for name in row if name != id_name]
                every, columns = len(others), others[: limits.columns]
            shown = [_cut(str(row.get(name, "")), limits.cell) for name in columns]
            room -= len(embedded_json(shown)) + 1
            if room < 0:
                left_out = len(order) - len(cells)
                return ShownRows(columns, [*cells, *[None] * left_out], every, left_out)
            cells.append(shown)
    return ShownRows(columns, cells, every, 0)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
