"""Print rows as columns."""

from __future__ import annotations

from collections.abc import Sequence

import typer


def print_rows(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of equal length, the first one a heading, columns as wide as they need to be."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())
