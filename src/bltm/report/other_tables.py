"""Tables beside accuracy: the error of T, the audit, the collection, ablations and cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from bltm.benchmark.spec import CEILING
from bltm.report.accuracy_tables import METHOD, compared_labels, sectioned
from bltm.report.captions import SEEDS_NOTE, behind, has_published
from bltm.report.comparison import Stat, paired_comparison
from bltm.report.layout import (
    NOTHING,
    Cell,
    Column,
    Row,
    Section,
    Table,
    has_marks,
    joined_cell,
    signed,
    stat_cell,
    stat_text,
)
from bltm.report.names import DEVIATIONS, data_name, method_name, section
from bltm.report.paper_values import ABLATION
from bltm.report.runs import rate_name
from bltm.report.summary import ACCURACY, ROW_ERROR, Entry, Grid

BASE, BASE_REVISED = "deviation/base", "deviation/base-v"
REVISED = ("deviation/column-normalised",)
"""Deviations of the revision, which are compared with the revised base."""


def transition_table(grid: Grid) -> Table | None:
    """Return the error of the used row of T(x), beside that of the best single matrix."""
    labels = [label for label in grid.labels if any(e.stat(*ROW_ERROR) for e in grid.of(label))]
    if not labels:
        return None
    paths = [("figures", "row_error", part) for part in ("all", "collected", "rest")]

    def cells(label: str) -> Iterable[Cell]:
        for rate in grid.rates:
            best = label == grid.best(rate, *ROW_ERROR, smallest=True)
            yield joined_cell(grid.entries.get((label, rate)), paths, 3, bold=best)

    truth = (
        _reference(grid, "true class-average matrix", "figures", "class_row_error"),
        _reference(grid, "true targets, mean flip rate", "figures", "mean_flip_row_error"),
    )
    sections = (Section("", truth), *sectioned(grid, labels, cells))
    notes = [
        f"{behind(grid)}. Mean ℓ1 distance between the row of T(x) that a noisy label was drawn "
        "from and the estimated one, between 0 and 2: of all training examples / of those that "
        "were collected / of the rest. The true class-average matrix is about the best that one "
        "matrix for all examples can be; the true targets with the mean flip rate are about the "
        "best that T(x) can be, where flip rates do not depend on the example."
    ]
    columns = tuple(map(Column, map(rate_name, grid.rates)))
    title = "Error of the used row of T(x): all / collected / rest"
    return Table("transition", title, METHOD, columns, sections, _noted(notes, sections))


def audit_table(grid: Grid) -> Table | None:
    """Return how well methods find the labels that are wrong."""
    path = ("figures", "average_precision")
    labels = [
        label
        for label in compared_labels(grid)
        if grid.methods[label] != CEILING and any(e.stat(*path) for e in grid.of(label))
    ]
    if not labels:
        return None

    def cells(label: str) -> Iterable[Cell]:
        for rate in grid.rates:
            best = label == grid.best(rate, *path)
            yield stat_cell(grid.entries.get((label, rate)), path, 3, bold=best)
        runs = [run for entry in grid.of(label) for run in entry.runs.values()]
        yield Cell(", ".join(sorted({str(run.get("figures", "suspicion")) for run in runs})))

    truth = _reference(grid, "share of wrong labels (chance)", "noise", "realised_rate")
    truth = Row(truth.heading, (*truth.cells, Cell(NOTHING)))
    sections = (Section("", (truth,)), *sectioned(grid, labels, cells))
    notes = [
        f"{behind(grid)}. Average precision with which a method's suspicion ranks the wrong "
        "training labels before the right ones; a suspicion is a probability where the method has "
        "a model of the noise, else a score that only ranks."
    ]
    columns = (*map(Column, map(rate_name, grid.rates)), Column("suspicion"))
    title = "Wrong labels found: average precision"
    return Table("audit", title, METHOD, columns, sections, _noted(notes, sections))


def cost_table(grid: Grid) -> Table | None:
    """Return what methods cost, over all rates and seeds."""
    if not grid.runs:
        return None

    def cells(label: str) -> Iterable[Cell]:
        runs = [run for entry in grid.of(label) for run in entry.runs.values()]
        for path, scale, decimals in (
            (("figures", "passes"), 1.0, 1),
            (("cost", "seconds"), 1.0, 1),
            (("cost", "peak_memory"), 2.0**-20, 0),
        ):
            found = [run.number(*path) for run in runs]
            stat = Stat.of(value for value in found if value is not None)
            yield Cell(stat_text(stat.mean, stat.std, decimals, scale) if stat else NOTHING)
        yield Cell(str(len(runs)))
        yield Cell(str(sum(len(entry.failed) for entry in grid.of(label))))

    notes = (
        f"{behind(grid)}; mean ± standard deviation over all rates and seeds. Passes over the "
        "training data count every network and every length that was tried. Seconds are those of "
        "the fit, on the machine and with the threads that the rows name; where the machine did "
        "other work beside it they are too many, and passes are the better measure.",
    )
    columns = tuple(map(Column, ("passes", "seconds", "peak memory, MB", "runs", "failed")))
    return Table("cost", "Cost", METHOD, columns, sectioned(grid, grid.labels, cells), notes)


def ablation_table(grids: Sequence[Grid]) -> Table | None:
    """Return BLTM beside what its collected examples are worth without the transition network."""
    variants = ("collected-only", "relabelled")
    chosen = [grid for grid in grids if set(variants) & set(grid.methods.values())]
    if not chosen:
        return None
    places = [(grid, rate) for grid in chosen for rate in grid.rates]
    columns: list[Column] = []
    for grid, rate in places:
        heading = f"{data_name(grid.setting.data)} {rate_name(rate)}"
        columns += [Column(heading), *([Column("paper", heading)] if _has_ablation(grid) else [])]
    labels = [
        label
        for method in (*variants, "bltm", "bltm-v")
        for label in dict.fromkeys(label for grid in chosen for label in grid.labels)
        if any(grid.methods.get(label) == method for grid in chosen)
    ]

    def cells(label: str) -> Iterable[Cell]:
        for grid, rate in places:
            yield stat_cell(grid.entries.get((label, rate)), ACCURACY, 2, 100)
            if _has_ablation(grid):
                values = ABLATION[grid.setting.data].get(grid.methods.get(label, ""), {})
                yield Cell(f"{values[rate]:.2f}" if rate in values else NOTHING)

    titles = {label: grid.title_of(label) for grid in chosen for label in grid.labels}
    rows = tuple(Row(titles[label], tuple(cells(label))) for label in labels)
    notes = [
        f"{'; '.join(behind(grid) for grid in chosen)}. Test accuracy in percent. 'Collected "
        "examples only': cross-entropy on the collected examples with their inferred labels. "
        "'Relabelled': on all examples, as that classifier labels them."
    ]
    return Table(
        "ablation",
        "Ablation: what the transition network adds",
        METHOD,
        tuple(columns),
        (Section("", rows),),
        _noted(notes, (Section("", rows),)),
    )


def _has_ablation(grid: Grid) -> bool:
    return has_published(grid) and grid.setting.data in ABLATION


def deviations_table(grid: Grid) -> Table | None:
    """Return what each deviation changes against the base that it deviates from."""
    by_method = {method: label for label, method in grid.methods.items()}
    labels = [
        label
        for label, method in grid.methods.items()
        if section(method) == DEVIATIONS and method not in (BASE, BASE_REVISED)
    ]
    if not labels or BASE not in by_method:
        return None

    def cells(label: str, accuracy: Sequence[str] = ACCURACY) -> Iterable[Cell]:
        base = by_method.get(BASE_REVISED if grid.methods[label] in REVISED else BASE, "")
        pairs = [(grid.entries.get((label, r)), grid.entries.get((base, r))) for r in grid.rates]
        for entry, other in pairs:
            yield _difference(entry, other, accuracy, ACCURACY, scale=100.0, decimals=2)
        for entry, other in pairs:
            yield _difference(entry, other, ROW_ERROR, ROW_ERROR, scale=1.0, decimals=3)

    rows = [
        Row(grid.title_of(label), tuple(cells(label))) for label in grid.labels if label in labels
    ]
    on_test = tuple(cells(by_method[BASE], accuracy=("figures", "oracle_best")))
    rows.append(Row("epoch selected on the test set", on_test))
    sections = (Section("", tuple(rows)),)
    notes = [
        f"{behind(grid)}. What a deviation has minus what '{method_name(BASE)}' has (columns "
        f"normalised: '{method_name(BASE_REVISED)}'), mean and standard deviation over seeds: test "
        "accuracy in points, and the ℓ1 error of the used row of T(x), mean over all examples."
    ]
    groups = ("accuracy", "error of T(x)")
    columns = tuple(Column(rate_name(rate), group) for group in groups for rate in grid.rates)
    title = "Deviations: difference to the base"
    return Table("deviations", title, "deviation", columns, sections, _noted(notes, sections))


def _difference(
    entry: Entry | None,
    base: Entry | None,
    figure: Sequence[str],
    figure_of_base: Sequence[str],
    scale: float,
    decimals: int,
) -> Cell:
    if entry is None or base is None:
        return Cell(NOTHING)
    theirs, ours = entry.numbers(*figure), base.numbers(*figure_of_base)
    found = paired_comparison(ours, theirs)
    if found is None:
        return Cell(NOTHING)
    stat = Stat.of(theirs[seed] - ours[seed] for seed in set(ours) & set(theirs))
    spread = (
        f" ± {scale * stat.std:.{decimals}f}" if stat is not None and stat.std is not None else ""
    )
    mark = "" if found.pairs == len(entry.seeds) else f"{found.pairs}/{len(entry.seeds)}"
    return Cell(signed(scale * found.difference, decimals) + spread, mark=mark)


def _reference(grid: Grid, heading: str, *path: str) -> Row:
    """Return a row of something that all methods of a rate share, a mean over seeds."""
    cells = []
    for rate in grid.rates:
        runs = [run for run in grid.runs if run.rate == rate]
        found = {run.seed: run.number(*path) for run in runs}
        values = [value for value in found.values() if value is not None]
        cells.append(Cell(f"{fmean(values):.3f}" if values else NOTHING))
    return Row(heading, tuple(cells))


def _noted(notes: list[str], sections: Sequence[Section]) -> tuple[str, ...]:
    return (*notes, SEEDS_NOTE) if has_marks(sections) else tuple(notes)
