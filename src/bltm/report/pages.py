"""Pages of results: the tables and figures of a grid with what a reader has to know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import Any

from bltm.benchmark.grid import built_in_grids, load_grid
from bltm.report.accuracy_tables import accuracy_table
from bltm.report.captions import behind
from bltm.report.figures import TITLES
from bltm.report.layout import NOTHING, Cell, Column, Row, Section, Table
from bltm.report.names import OURS, method_name
from bltm.report.render import markdown
from bltm.report.runs import Run, rate_name, read_runs
from bltm.report.summary import Grid, summarise
from bltm.report.tables import tables_of, tables_over

RESULTS_STEM = "results"
"""Rows under this name are called by their folder, which is the grid's."""

# Which tables a figure follows.
_AFTER = {
    "accuracy": ("accuracy",),
    "transition": ("transition-error", "matrices"),
    "collection": ("collection",),
    "cost": ("cost",),
}
HOW_TO_READ = """\
Every number is from a run of `bltm bench`. A method sees examples and noisy labels; the runner
scores it from outside. Accuracy is on a test set with right labels, of the epoch that was selected
on noisy validation labels. Two bounds stand in every table: cross-entropy on the right labels (the
ceiling) and cross-entropy on the noisy labels (the floor, CE in the paper); the *gap* is between
them. ± is the standard deviation over seeds (with n − 1). [2/3] marks numbers behind which seeds
are missing: they are means over the seeds that are there, have no rank, and should not be compared
with means over all seeds. By default BLTM and BLTM-V answer with the four networks of their
rounds (with those of the last two in rows that do not tell what one of them has by itself, which
are of the recipe before), DivideMix with its two, every other method and both bounds with one, so a
method can pass the ceiling. Convolutional networks of BLTM learn at a rate of 0.006, those of other
methods at 0.002 where their grid says nothing else; rows that do not tell a rate are older, and
BLTM had 0.002 by default then, too. From its second round on BLTM redirects flips by the input;
where a page does not say so, its rows are of a recipe before. Of the published grids,
docs/recipe.md tells which are by the present one.
Oracles are told what no method can know and are no methods. The columns *paper* hold the values of
Yang et al. (ICML 2022), as published."""


@dataclass(frozen=True, eq=False)
class Results:
    """The results of one grid.

    Attributes
    ----------
    name
        Of the grid: the name of the file of rows, or of its folder.
    grids
        Its summary, one for each data set and noise model.
    """

    name: str
    grids: tuple[Grid, ...]

    @property
    def title(self) -> str:
        """Return the title of a built-in grid, or the name."""
        known = self.name in built_in_grids()
        return load_grid(self.name).title if known else self.name

    def prefix(self, grid: Grid) -> str:
        """Return what tells the files of a grid from those of others of these results."""
        if len(self.grids) == 1:
            return ""
        parts = [(g.setting.data, g.setting.images or "all", g.setting.noise) for g in self.grids]
        own = (grid.setting.data, grid.setting.images or "all", grid.setting.noise)
        varying = [i for i in range(3) if len({part[i] for part in parts}) > 1]
        name = "-".join(str(own[i]) for i in varying) or "setting"
        same = [g for g, part in zip(self.grids, parts, strict=True) if part == own]
        return f"{name}-" if len(same) == 1 else f"{name}-{same.index(grid) + 1}-"


def read_results(rows: Sequence[Path]) -> tuple[Results, ...]:
    """Return the results of files of rows; files of one name hold one grid."""
    by_name: dict[str, list[Path]] = {}
    for path in rows:
        name = path.resolve().parent.name if path.stem == RESULTS_STEM else path.stem
        by_name.setdefault(name, []).append(path)
    return tuple(Results(name, summarise(read_runs(*paths))) for name, paths in by_name.items())


def results_section(results: Results, level: int, link: Callable[[str], str | None]) -> str:
    """Return all tables and figures of a grid as Markdown.

    Parameters
    ----------
    results
        Of one grid.
    level
        Of the heading.
    link
        Returns the address of a figure from its name, or None where there is no such figure.
    """
    parts = [f"{'#' * level} {results.title}", provenance(results)]
    for grid in results.grids:
        deeper = level
        if len(results.grids) > 1:
            deeper += 1
            parts.append(f"{'#' * deeper} {grid.setting.title}")
        for table in tables_of(grid):
            parts.append(_table_part(table, deeper + 1))
            for name in _AFTER.get(table.name, ()):
                address = link(f"{results.prefix(grid)}{name}")
                parts += [f"![{TITLES[name]}]({address})"] if address else []
    parts += [_table_part(table, level + 1) for table in tables_over(results.grids)]
    failures = [run for grid in results.grids for run in grid.failures]
    if failures:
        parts.append("\n".join([f"{'#' * (level + 1)} Failed runs", "", *_failures(failures)]))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def provenance(results: Results) -> str:
    """Return how results were made: command, runs, time, machines and versions."""
    runs = [run for grid in results.grids for run in grid.runs]
    failed = sum(len(grid.failures) for grid in results.grids)
    known = results.name in built_in_grids()
    command = results.name if known else "GRID.toml"
    lines = [load_grid(results.name).description] if known else []
    lines.append(f"Reproduce with `bltm bench {command}`.")
    spent, overhead = _times(runs)
    text = f"{len(runs)} runs" + (f" and {failed} that failed" if failed else "")
    if spent:
        time = f"{spent / 3600:.1f} hours" if spent >= 3600 else f"{spent / 60:.1f} minutes"
        text += f", {time} of fitting and scoring, and {overhead:.1%} of all time outside of both"
    lines.append(text + ".")
    recipes = [run.get("recipe") or {} for run in runs]
    lines.append(f"Machine: {'; '.join(_distinct(recipes, _machine)) or 'not recorded'}.")
    lines.append(f"Software: {'; '.join(_distinct(recipes, _software)) or 'not recorded'}.")
    lines += _learning_rates(runs) + _redirected(runs)
    dates = sorted({str(recipe["date"]) for recipe in recipes if recipe.get("date")})
    if dates:
        lines.append(f"Run {dates[0] if len(dates) == 1 else f'{dates[0]} to {dates[-1]}'}.")
    return " ".join(lines)


def short_table(results: Results) -> str | None:
    """Return the table for a first page: accuracies, and the share of the gap BLTM-V recovers.

    Methods are left out of which seeds are missing at some rate.
    """
    grid = results.grids[0]
    table = accuracy_table(grid, decimals=1, published=False)
    if table is None:
        return None
    columns = tuple(Column(f"noise {rate_name(rate)}") for rate in grid.rates)
    sections = [
        Section(section.title, tuple(Row(row.heading, row.cells[: len(columns)]) for row in rows))
        for section in table.sections
        if (rows := [row for row in section.rows if _whole(row.cells[: len(columns)])])
    ]
    left_out = sum(len(part.rows) for part in table.sections) - sum(
        len(part.rows) for part in sections
    )
    ours = [grid.entries.get((OURS, rate)) for rate in grid.rates]
    shares = [f"{entry.gap.share:.0%}" if entry and entry.gap else "–" for entry in ours]
    heading = f"share of the gap that {method_name(OURS)} recovers"
    sections.append(Section("", (Row(heading, tuple(map(Cell, shares))),)))
    short = Table(table.name, table.title, "test accuracy, %", columns, tuple(sections))
    text = f"{markdown(short, title=False)}\n{behind(grid)}; mean ± standard deviation."
    return f"{text} Methods of which seeds are missing are left out." if left_out else text


def _whole(cells: Sequence[Cell]) -> bool:
    """Return whether all numbers are there and no seeds are missing behind them."""
    return not any(cell.mark or cell.text == NOTHING for cell in cells)


def _table_part(table: Table, level: int) -> str:
    return f"{'#' * level} {table.title}\n\n{markdown(table, title=False)}"


def _failures(runs: Sequence[Run]) -> list[str]:
    """Return a line for each method and message, with the rates and seeds that it concerns."""
    found: dict[str, list[str]] = {}
    for run in runs:
        kind, message = run.get("error", "kind") or "", run.get("error", "message") or ""
        text = f"{kind}: {str(message).strip().partition(chr(10))[0]}"
        place = f"{rate_name(run.rate)} seed {run.seed}"
        found.setdefault(f"{method_name(run.method)}: {text}", []).append(place)
    return [f"- {text} ({', '.join(places)})" for text, places in found.items()]


def _times(runs: Sequence[Run]) -> tuple[float, float]:
    """Return seconds of fitting and scoring, and the share of all time that is neither."""
    fit, score, rest = (
        sum(run.number("cost", name) or 0.0 for run in runs)
        for name in ("seconds", "scoring_seconds", "overhead_seconds")
    )
    total = fit + score + rest
    return fit + score, rest / total if total else 0.0


def _learning_rates(runs: Sequence[Run]) -> list[str]:
    """Return which methods learned at which rate, the fastest of their stages, by their rows.

    Where not all rows of a method have that rate, or tell it, it is said of how many that is known.
    """
    found: dict[float, Counter[str]] = {}
    for run in runs:
        stages = run.get("recipe", "stages") or {}
        rates = [stage["lr"] for stage in stages.values() if stage["lr"] is not None]
        if rates:
            found.setdefault(max(rates), Counter())[method_name(run.method)] += 1
    if not found:
        return []
    parts = [f"{rate:g} ({_counted(found[rate], runs)})" for rate in sorted(found)]
    silent = sum(map(Counter.total, found.values())) < len(runs)
    rest = "; the other rows do not tell" if silent else ""
    return [f"Learning rates: {'; '.join(parts)}{rest}."]


def _redirected(runs: Sequence[Run]) -> list[str]:
    """Return which methods redirected flips by the input, in how many of their rows."""
    found = Counter(method_name(run.method) for run in runs if run.get("figures", "redirected"))
    return [f"Flips redirected by the input: {_counted(found, runs)}."] if found else []


def _counted(found: Counter[str], runs: Sequence[Run]) -> str:
    """Return methods, and where not all of their rows are meant, how many are."""
    rows = Counter(method_name(run.method) for run in runs)

    def told(method: str, count: int) -> str:
        return method if count == rows[method] else f"{method} in {count} of {rows[method]} rows"

    return ", ".join(starmap(told, found.items()))


def _distinct(recipes: Sequence[Any], describe: Callable[[Any], str]) -> list[str]:
    return list(dict.fromkeys(filter(None, map(describe, recipes))))


def _machine(recipe: Mapping[str, Any]) -> str:
    if not recipe.get("cpu"):
        return ""
    threads = recipe.get("threads")
    words = [f"{recipe['cpu']} with {recipe.get('cpus', '?')} CPUs", *(recipe.get("gpus") or ())]
    return ", ".join([*words, f"{threads} thread{'' if threads == 1 else 's'} a run"])


def _software(recipe: Mapping[str, Any]) -> str:
    if not recipe.get("bltm"):
        return ""
    versions = (recipe.get("versions") or {}).items()
    names = [f"bltm {recipe['bltm']}", f"Python {recipe.get('python', '?')}"]
    return ", ".join([*names, *(f"{name} {version}" for name, version in versions)])
