"""Runs over seeds: means, spreads, the share of the gap, ranks and paired tests.

Nothing is averaged over different seeds without saying so: an entry knows the seeds it has and
those that the grid has, comparisons use the seeds that both sides have, and ranks are given among
entries with the same seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

from bltm.benchmark.spec import CEILING, FLOOR
from bltm.report.comparison import Gap, Paired, Stat, gap_recovered, paired_comparison
from bltm.report.labels import run_labels
from bltm.report.names import COMPARED, OURS, PROPOSED, method_name, order, section
from bltm.report.runs import Run, Setting

ACCURACY = ("figures", "accuracy")
ROW_ERROR = ("figures", "row_error", "all")


@dataclass(frozen=True, eq=False)
class Entry:
    """A method at a noise rate: one place of a table.

    Attributes
    ----------
    label
        The method, with the parameters that tell it from others of its name.
    method, rate
        What was run.
    runs
        By seed, those that have figures.
    failed
        By seed, those that failed.
    seeds
        All seeds of the grid.
    rank
        Position by mean accuracy among ``ranked`` methods with the same seeds; None for bounds,
        variants and oracles, and where seeds are missing that other methods have.
    gap, paired
        Comparisons with the bounds and with BLTM-V, where there are seeds in common.
    """

    label: str
    method: str
    rate: float | None
    runs: Mapping[int, Run]
    failed: Mapping[int, Run]
    seeds: tuple[int, ...]
    rank: int | None = None
    ranked: int = 0
    gap: Gap | None = None
    paired: Paired | None = None

    @property
    def complete(self) -> bool:
        """Return whether the entry has all seeds of the grid."""
        return set(self.runs) == set(self.seeds)

    @property
    def done(self) -> tuple[int, ...]:
        """Return the seeds that have figures."""
        return tuple(sorted(self.runs))

    def numbers(self, *path: str) -> dict[int, float]:
        """Return a number of each row, by seed, where rows have it."""
        found = {seed: run.number(*path) for seed, run in sorted(self.runs.items())}
        return {seed: value for seed, value in found.items() if value is not None}

    def stat(self, *path: str) -> Stat | None:
        """Return mean and spread of a number of the rows over seeds."""
        return Stat.of(self.numbers(*path).values())

    @property
    def accuracy(self) -> Stat | None:
        """Return mean and spread of the test accuracy."""
        return self.stat(*ACCURACY)


@dataclass(frozen=True, eq=False)
class Grid:
    """All entries of one setting.

    Attributes
    ----------
    setting
        Data and noise.
    labels
        Methods in the paper's order.
    rates
        Noise rates, ascending.
    seeds
        All seeds that any run has.
    entries
        By label and rate.
    """

    setting: Setting
    labels: tuple[str, ...]
    rates: tuple[float | None, ...]
    seeds: tuple[int, ...]
    entries: Mapping[tuple[str, float | None], Entry]

    @cached_property
    def methods(self) -> dict[str, str]:
        """Return the method of each label."""
        return {entry.label: entry.method for entry in self.entries.values()}

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Return all runs that have figures."""
        return tuple(run for entry in self.entries.values() for run in entry.runs.values())

    @cached_property
    def failures(self) -> tuple[Run, ...]:
        """Return all runs that failed."""
        return tuple(run for entry in self.entries.values() for run in entry.failed.values())

    def of(self, label: str) -> tuple[Entry, ...]:
        """Return the entries of a method, by rate."""
        found = (self.entries.get((label, rate)) for rate in self.rates)
        return tuple(entry for entry in found if entry is not None)

    def mean_rank(self, label: str) -> float | None:
        """Return the mean of a method's ranks, or None unless it has one at each rate."""
        ranks = [entry.rank for entry in self.of(label) if entry.rank is not None]
        return fmean(ranks) if len(ranks) == len(self.rates) else None

    def best(self, rate: float | None, *path: str, smallest: bool = False) -> str | None:
        """Return the label with the best mean of a number, of those that have all seeds.

        Variants and oracles do not take part.
        """
        found = [e for e in self.entries.values() if e.rate == rate and e.complete]
        means = {e.label: e.stat(*path) for e in found if takes_part(e.method)}
        there = {label: stat.mean for label, stat in means.items() if stat is not None}
        return (min if smallest else max)(there, key=lambda label: there[label], default=None)

    @cached_property
    def highlighted(self) -> str:
        """Return the method that figures highlight: BLTM-V, or BLTM where that is not there."""
        return OURS if OURS in self.methods.values() else "bltm"

    def title_of(self, label: str) -> str:
        """Return what a method is called in tables."""
        method = self.methods[label]
        return method_name(method) + label.removeprefix(method)


def summarise(runs: Sequence[Run]) -> tuple[Grid, ...]:
    """Return one grid for each setting, in alphabetic order.

    Parameters
    ----------
    runs
        Of one file of results; they may be incomplete.
    """
    settings = sorted({run.setting for run in runs})
    return tuple(_grid(s, [run for run in runs if run.setting == s]) for s in settings)


def _grid(setting: Setting, runs: Sequence[Run]) -> Grid:
    labels = run_labels(runs)
    seeds = tuple(sorted({run.seed for run in runs}))
    places: dict[tuple[str, float | None], list[Run]] = {}
    for run in runs:
        places.setdefault((labels[run.id], run.rate), []).append(run)
    entries = {
        (label, rate): Entry(
            label,
            found[0].method,
            rate,
            {run.seed: run for run in found if run.done},
            {run.seed: run for run in found if not run.done},
            seeds,
        )
        for (label, rate), found in places.items()
    }
    rates = sorted({rate for _, rate in entries}, key=lambda rate: -1.0 if rate is None else rate)
    compared: dict[tuple[str, float | None], Entry] = {}
    for rate in rates:
        column = {label: entry for (label, at), entry in entries.items() if at == rate}
        compared |= {(label, rate): entry for label, entry in _compared(column).items()}
    methods = {label: entry.method for (label, _), entry in entries.items()}
    ordered = sorted(methods, key=lambda label: (order(methods[label]), label))
    return Grid(setting, tuple(ordered), tuple(rates), seeds, compared)


def _compared(column: Mapping[str, Entry]) -> dict[str, Entry]:
    """Return the entries of one rate with ranks, gaps and tests."""
    seeds = {seed for entry in column.values() for seed in entry.runs}
    accuracy = {label: entry.numbers(*ACCURACY) for label, entry in column.items()}
    # Of several with one name the first; there are several if their parameters differ.
    by_method = {entry.method: label for label, entry in sorted(column.items(), reverse=True)}
    nothing: dict[int, float] = {}
    floor = accuracy.get(by_method.get(FLOOR, ""), nothing)
    ceiling = accuracy.get(by_method.get(CEILING, ""), nothing)
    ours = accuracy.get(by_method.get(OURS, ""), nothing)
    candidates = {
        label: fmean(accuracy[label].values())
        for label, entry in column.items()
        if takes_part(entry.method) and seeds and set(entry.runs) == seeds
    }
    result = {}
    for label, entry in column.items():
        mean = candidates.get(label)
        better = [other for other in candidates.values() if mean is not None and other > mean]
        result[label] = replace(
            entry,
            rank=None if mean is None else len(better) + 1,
            ranked=len(candidates),
            gap=gap_recovered(accuracy[label], floor, ceiling),
            paired=None if entry.method == OURS else paired_comparison(ours, accuracy[label]),
        )
    return result


def takes_part(method: str) -> bool:
    """Return whether a method is one of those that are ranked: no ceiling, variant or oracle."""
    return method == FLOOR or section(method) in (COMPARED, PROPOSED)
