"""Tables of test accuracy: the paper's layout, shares of the gap, paired differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import fmean

from bltm.benchmark.spec import CEILING, FLOOR
from bltm.report.captions import SEEDS_NOTE, behind, comparability, has_published
from bltm.report.layout import (
    NOTHING,
    Cell,
    Column,
    Row,
    Section,
    Table,
    absent_cell,
    has_marks,
    joined_cell,
    published_cell,
    seeds_mark,
    signed,
    stat_cell,
)
from bltm.report.names import (
    BOUNDS,
    COLLECTION,
    COMPARED,
    OURS,
    PROPOSED,
    SECTIONS,
    method_name,
    section,
)
from bltm.report.paper_values import published_accuracy
from bltm.report.runs import rate_name
from bltm.report.summary import ACCURACY, Entry, Grid

METHOD = "method"
_UNTITLED = (BOUNDS, COMPARED, PROPOSED)


def accuracy_table(grid: Grid, decimals: int = 2, published: bool = True) -> Table | None:
    """Return the paper's table: methods by noise rates, with the paper's values beside ours.

    Parameters
    ----------
    grid
        What was measured.
    decimals
        Of our percentages.
    published
        Whether to show the paper's values, where it has any.
    """
    labels = compared_labels(grid)
    if not labels:
        return None
    rates = _published_rates(grid) if published else ()
    columns = [*map(Column, map(rate_name, grid.rates)), Column("mean rank")]
    columns += [Column(rate_name(rate), "paper") for rate in rates]

    def cells(label: str) -> Iterable[Cell]:
        for rate in grid.rates:
            entry = grid.entries.get((label, rate))
            best = entry is not None and entry.rank == 1
            yield stat_cell(entry, ACCURACY, decimals, 100, bold=best)
        rank = grid.mean_rank(label)
        yield Cell(NOTHING if rank is None else f"{rank:.1f}")
        for rate in rates:
            yield published_cell(published_accuracy(grid.setting.data, grid.methods[label], rate))

    sections = sectioned(grid, labels, cells, bounds=True)
    notes = [
        f"{behind(grid)}; mean ± standard deviation of test accuracy in percent, of the "
        "epoch selected on noisy validation labels.",
        "Bold: best method of a column with all seeds, bounds and oracles apart.",
    ]
    if rates:
        notes.append(comparability(grid))
    if has_marks(sections):
        notes.append(SEEDS_NOTE)
    return Table("accuracy", "Test accuracy, %", METHOD, tuple(columns), sections, tuple(notes))


def gap_table(grid: Grid) -> Table | None:
    """Return the share of the gap between the two bounds that methods recover."""
    labels = [
        label
        for label in compared_labels(grid)
        if grid.methods[label] not in (CEILING, FLOOR) and any(e.gap for e in grid.of(label))
    ]
    if not labels:
        return None

    def cells(label: str) -> Iterable[Cell]:
        shares = []
        for rate in grid.rates:
            entry = grid.entries.get((label, rate))
            if entry is None or entry.gap is None:
                yield Cell(NOTHING)
                continue
            share, mark = entry.gap.share, seeds_mark(entry, len(entry.gap.seeds))
            shares += [] if mark else [share]
            yield Cell(_share(share), entry.rank == 1, mark)
        yield Cell(_share(fmean(shares)) if len(shares) == len(grid.rates) else NOTHING)

    sections = sectioned(grid, labels, cells)
    notes = [
        f"{behind(grid)}. Share of the way from cross-entropy on the noisy labels (0 %) to "
        "cross-entropy on the right labels (100 %), from means over the same seeds. Where noise is "
        "weak the way is short, and the share is uncertain."
    ]
    if has_marks(sections):
        notes.append(SEEDS_NOTE)
    columns = [*map(Column, map(rate_name, grid.rates)), Column("mean")]
    title = "Share of the clean–noisy gap recovered"
    return Table("gap", title, METHOD, tuple(columns), sections, tuple(notes))


def paired_table(grid: Grid) -> Table | None:
    """Return differences to BLTM-V with the p-values of paired tests."""
    labels = [label for label in compared_labels(grid) if grid.methods[label] != OURS]
    if not any(entry.paired for label in labels for entry in grid.of(label)):
        return None

    def cells(label: str) -> Iterable[Cell]:
        for rate in grid.rates:
            entry = grid.entries.get((label, rate))
            yield Cell(NOTHING) if entry is None else _paired_cell(entry)

    sections = sectioned(grid, labels, cells, bounds=True)
    notes = (
        f"{behind(grid)}. Accuracy of the method minus that of {method_name(OURS)} in points, mean "
        "over the seeds that both have, and the p-value of a two-sided paired t-test over these "
        "seeds (none with fewer than three pairs, in brackets the pairs where seeds are missing). "
        "The values are not corrected for the number of comparisons, and few seeds show large "
        "differences only.",
    )
    columns = tuple(map(Column, map(rate_name, grid.rates)))
    title = f"Difference to {method_name(OURS)}, points"
    return Table("paired", title, METHOD, columns, sections, notes)


def selection_table(grid: Grid) -> Table | None:
    """Return what the choice of the epoch makes: selected, last, and best by the test set."""
    paths = [("figures", name) for name in ("accuracy", "accuracy_last", "oracle_best")]

    def cells(label: str) -> Iterable[Cell]:
        for rate in grid.rates:
            yield joined_cell(grid.entries.get((label, rate)), paths, 1, 100)

    labels = [
        label
        for label in compared_labels(grid)
        if any(entry.stat("figures", "oracle_best") for entry in grid.of(label))
    ]
    if not labels:
        return None
    sections = sectioned(grid, labels, cells, bounds=True)
    notes = [
        f"{behind(grid)}. Mean test accuracy in percent of the epoch selected on noisy validation "
        "labels (the result), of the last epoch, and of the epoch that is best on the test set "
        "(never a result: what looking at the test set would seem to gain)."
    ]
    if has_marks(sections):
        notes.append(SEEDS_NOTE)
    columns = tuple(map(Column, map(rate_name, grid.rates)))
    title = "Accuracy of the selected / last / best test epoch, %"
    return Table("selection", title, METHOD, columns, sections, tuple(notes))


def networks_table(grid: Grid) -> Table | None:
    """Return what several networks that answer together are worth: one of them, and all."""
    paths = [("figures", name) for name in ("accuracy_of_each", "accuracy")]

    def cells(label: str) -> Iterable[Cell]:
        for rate in grid.rates:
            entry = grid.entries.get((label, rate))
            known = entry is not None and entry.stat(*paths[0])
            yield joined_cell(entry if known else None, paths, 1, 100)

    labels = [
        label
        for label in compared_labels(grid)
        if any(entry.stat(*paths[0]) for entry in grid.of(label))
    ]
    if not labels:
        return None
    sections = sectioned(grid, labels, cells)
    notes = [
        f"{behind(grid)}. Mean test accuracy in percent of a single network of those that answer "
        "together, and of all together. Methods that answer with one network are left out."
    ]
    if has_marks(sections):
        notes.append(SEEDS_NOTE)
    columns = tuple(map(Column, map(rate_name, grid.rates)))
    title = "One network / all networks of a method, %"
    return Table("networks", title, METHOD, columns, sections, tuple(notes))


def compared_labels(grid: Grid) -> list[str]:
    """Return the labels of a grid whose classifiers are meant to be compared."""
    return [label for label in grid.labels if grid.methods[label] != COLLECTION]


def sectioned(
    grid: Grid,
    labels: Iterable[str],
    cells: Callable[[str], Iterable[Cell]],
    bounds: bool = False,
) -> tuple[Section, ...]:
    """Return rows in sections; with ``bounds`` the headings say which bound is which."""
    suffix = {CEILING: " (ceiling)", FLOOR: " (floor)"} if bounds else {}
    found: dict[str, list[Row]] = {name: [] for name in SECTIONS}
    for label in labels:
        method = grid.methods[label]
        heading = grid.title_of(label) + suffix.get(method, "")
        found[section(method)].append(Row(heading, tuple(cells(label))))
    return tuple(
        Section("" if name in _UNTITLED else name, tuple(rows))
        for name, rows in found.items()
        if rows
    )


def _published_rates(grid: Grid) -> tuple[float | None, ...]:
    if not has_published(grid):
        return ()
    data, methods = grid.setting.data, set(grid.methods.values())
    return tuple(
        rate
        for rate in grid.rates
        if any(published_accuracy(data, method, rate) for method in methods)
    )


def _share(share: float) -> str:
    return f"{signed(100 * share, 0).removeprefix('+')} %"


def _paired_cell(entry: Entry) -> Cell:
    found = entry.paired
    if found is None:
        return absent_cell(entry)
    text = signed(100 * found.difference, 2)
    if found.p_value is not None:
        p_value = "p < 0.001" if found.p_value < 0.001 else f"p = {found.p_value:.3f}"
        text = f"{text} ({p_value})"
    return Cell(text, mark=seeds_mark(entry, found.pairs))
