"""What a table is, before it is Markdown, LaTeX, CSV or text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from bltm.report.paper_values import Published
from bltm.report.summary import Entry

NOTHING = "–"
PLUS_MINUS = "±"


@dataclass(frozen=True)
class Cell:
    """One place of a table.

    Attributes
    ----------
    text
        What it says.
    bold
        Whether it is the best of its column.
    mark
        What is missing behind it, such as "2/3" seeds; shown in brackets.
    """

    text: str = ""
    bold: bool = False
    mark: str = ""

    @property
    def full(self) -> str:
        """Return text and mark."""
        return f"{self.text} [{self.mark}]" if self.mark else self.text


@dataclass(frozen=True)
class Row:
    """A line of a table: its heading, and one cell for each column."""

    heading: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Section:
    """Lines that are set apart from others; an empty title is not shown."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Column:
    """A column, and the group of columns that it stands in."""

    name: str
    group: str = ""

    @property
    def full(self) -> str:
        """Return group and name, for formats that have one line of headings."""
        return f"{self.group}: {self.name}" if self.group else self.name


@dataclass(frozen=True)
class Table:
    """A table with its title and notes.

    Attributes
    ----------
    name
        Of its files.
    title
        What it shows.
    corner
        Heading of the first column.
    columns
        The other columns.
    sections
        Its lines.
    notes
        Sentences that a reader needs.
    """

    name: str
    title: str
    corner: str
    columns: tuple[Column, ...]
    sections: tuple[Section, ...]
    notes: tuple[str, ...] = ()


def stat_cell(
    entry: Entry | None,
    path: tuple[str, ...],
    decimals: int,
    scale: float = 1.0,
    bold: bool = False,
) -> Cell:
    """Return mean ± standard deviation, with a mark where seeds are missing or failed."""
    stat = None if entry is None else entry.stat(*path)
    if entry is None or stat is None:
        return absent_cell(entry)
    return Cell(stat_text(stat.mean, stat.std, decimals, scale), bold, seeds_mark(entry, stat.n))


def joined_cell(
    entry: Entry | None,
    paths: Sequence[tuple[str, ...]],
    decimals: int,
    scale: float = 1.0,
    bold: bool = False,
) -> Cell:
    """Return the means of several numbers, ``a / b / c``, over the seeds that have them all.

    A number that no row has is left out at the end, and a dash elsewhere.
    """
    found = [] if entry is None else [entry.numbers(*path) for path in paths]
    there = [set(numbers) for numbers in found if numbers]
    if entry is None or not there:
        return absent_cell(entry)
    seeds = set.intersection(*there)
    if not seeds:
        return Cell(NOTHING, mark=seeds_mark(entry, 0))
    texts = [
        f"{scale * fmean(numbers[seed] for seed in seeds):.{decimals}f}" if numbers else NOTHING
        for numbers in found
    ]
    while texts[-1] == NOTHING:
        texts.pop()
    return Cell(" / ".join(texts), bold, seeds_mark(entry, len(seeds)))


def absent_cell(entry: Entry | None) -> Cell:
    """Return a cell without a number: a failure, or nothing."""
    return Cell("failed" if entry is not None and entry.failed and not entry.runs else NOTHING)


def stat_text(mean: float, std: float | None, decimals: int, scale: float = 1.0) -> str:
    """Return ``mean ± std``, or the mean alone.

    Examples
    --------
    >>> stat_text(0.8512, 0.011, 2, scale=100)
    '85.12 ± 1.10'
    """
    text = f"{scale * mean:.{decimals}f}"
    return text if std is None else f"{text} {PLUS_MINUS} {scale * std:.{decimals}f}"


def seeds_mark(entry: Entry, n: int) -> str:
    """Return how many of the grid's seeds are behind a number, if not all, and how many failed."""
    if n == len(entry.seeds):
        return ""
    failed = f", {len(entry.failed)} failed" if entry.failed else ""
    return f"{n}/{len(entry.seeds)}{failed}"


def published_cell(value: Published | None) -> Cell:
    """Return a published accuracy as it is printed in the paper."""
    return Cell(NOTHING) if value is None else Cell(stat_text(value.mean, value.std, 2))


def has_marks(sections: Sequence[Section]) -> bool:
    """Return whether anything is missing behind any number of a table."""
    return any(cell.mark for part in sections for row in part.rows for cell in row.cells)


def signed(value: float, decimals: int) -> str:
    """Return a difference with its sign, and a true minus.

    Examples
    --------
    >>> signed(-0.314, 1), signed(0.004, 1)
    ('−0.3', '0.0')
    """
    rounded = round(value, decimals)
    sign = "−" if rounded < 0 else "+" if rounded > 0 else ""
    return f"{sign}{abs(rounded):.{decimals}f}"
