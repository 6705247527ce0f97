"""The table of appendix A: how many examples are collected, and how many of them are right."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from bltm.report.captions import SEEDS_NOTE, behind, has_published
from bltm.report.comparison import Stat
from bltm.report.layout import (
    NOTHING,
    Cell,
    Column,
    Row,
    Section,
    Table,
    has_marks,
    seeds_mark,
    stat_text,
)
from bltm.report.paper_values import DISTILLATION
from bltm.report.runs import Run, rate_name
from bltm.report.summary import Entry, Grid

RHOS = (0.3, 0.5)
RIGHT, NUMBER = "right, %", "number"


def collection_table(grid: Grid) -> Table | None:
    """Return appendix A: noise rates by rho_max, with the paper's values where it has any."""
    labels = [
        label
        for label in grid.labels
        if any(run.get("figures", "collection") for e in grid.of(label) for run in e.runs.values())
    ]
    if not labels:
        return None
    paper = DISTILLATION.get(grid.setting.data, {}) if has_published(grid) else {}
    columns = [Column(RIGHT, "as used"), Column(NUMBER, "as used")]
    for rho in RHOS:
        columns += [Column(name, f"rho_max {rho}") for name in (RIGHT, NUMBER)]
    if paper:
        for rho in RHOS:
            columns += [Column(name, f"paper, rho_max {rho}") for name in (RIGHT, NUMBER)]

    def cells(entry: Entry) -> Iterable[Cell]:
        yield from _quality(entry, {seed: _used(run) for seed, run in entry.runs.items()})
        for rho in RHOS:
            found = {seed: at_threshold(run, (1 + rho) / 2) for seed, run in entry.runs.items()}
            yield from _quality(entry, found)
        if paper:
            for rho in RHOS:
                value = paper.get((entry.rate or 0.0, rho))
                yield Cell(f"{100 * value.right:.0f}" if value else NOTHING)
                yield Cell(f"{value.count:,} of 50,000" if value else NOTHING)

    by_rows: dict[tuple[Row, ...], list[str]] = {}
    for label in labels:
        rows = tuple(Row(rate_name(e.rate), tuple(cells(e))) for e in grid.of(label))
        by_rows.setdefault(rows, []).append(grid.title_of(label))
    sections = tuple(
        Section(", ".join(titles) if len(labels) > 1 else "", rows)
        for rows, titles in by_rows.items()
    )
    notes = [
        f"{behind(grid)}. Of the examples that trained: how many were collected, and for how many "
        "of these the inferred label is the right one. 'As used' is the collection that the "
        "method ended with, after all its rounds; the other columns apply the threshold "
        "(1 + rho_max) / 2 to the noisy posterior of the warm-up."
    ]
    if paper:
        notes.append("The paper collects from 50,000 images with ResNet-34.")
    if has_marks(sections):
        notes.append(SEEDS_NOTE)
    title = "Quality of the collected examples"
    return Table("collection", title, "noise", tuple(columns), sections, tuple(notes))


def at_threshold(run: Run, threshold: float) -> dict[str, float | None] | None:
    """Return number and share of right labels at a threshold of a run's sweep, if it has it."""
    total = run.number("figures", "collection", "of")
    for point in run.get("figures", "collection", "sweep") or ():
        if abs(point["threshold"] - threshold) < 1e-9:
            return {"count": point["count"], "right": point.get("right"), "of": total}
    return None


def _used(run: Run) -> dict[str, float | None] | None:
    if run.get("figures", "collection") is None:
        return None
    return {name: run.number("figures", "collection", name) for name in ("count", "right", "of")}


def _quality(entry: Entry, by_seed: dict[int, dict[str, float | None] | None]) -> Iterable[Cell]:
    found = [point for point in by_seed.values() if point is not None]
    right = Stat.of(p["right"] for p in found if p["right"] is not None)
    mark = seeds_mark(entry, right.n) if right else ""
    yield Cell(stat_text(right.mean, right.std, 1, 100) if right else NOTHING, mark=mark)
    counts = [p["count"] for p in found if p["count"] is not None]
    totals = [p["of"] for p in found if p["of"] is not None]
    if not counts:
        yield Cell(NOTHING)
        return
    of = f" of {fmean(totals):,.0f}" if totals else ""
    yield Cell(f"{fmean(counts):,.0f}{of}", mark=seeds_mark(entry, len(counts)))
