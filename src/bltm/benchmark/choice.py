"""Choose runs of a grid: some methods, data sets, rates or seeds of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from bltm.benchmark.grid import BOUNDS, Grid
from bltm.benchmark.spec import FLOOR, RunSpec
from bltm.core.errors import InputError


@dataclass(frozen=True)
class Choice:
    """Which runs are wanted; where nothing is named, all are.

    Attributes
    ----------
    methods
        They are run beside the bounds. One that the grid lacks is run on all cells.
    data, rates, seeds
        Data sets, nominal noise rates and seeds of the grid.

    Examples
    --------
    >>> from bltm.benchmark.grid import load_grid
    >>> grid = Choice(methods=("gce",), rates=(0.3,)).of(load_grid("paper-fmnist-cpu", quick=True))
    >>> [run.method for run in grid.runs]
    ['clean', 'cross-entropy', 'gce']
    """

    methods: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    rates: tuple[float, ...] = ()
    seeds: tuple[int, ...] = ()

    def of(self, grid: Grid) -> Grid:
        """Return the grid with the runs that are wanted."""
        grid = _kept(grid, "data", self.data, lambda run: run.cell.data)
        grid = _kept(grid, "rate", self.rates, lambda run: run.cell.rate)
        grid = _kept(grid, "seed", self.seeds, lambda run: run.cell.seed)
        return self._with_methods(grid) if self.methods else grid

    def _with_methods(self, grid: Grid) -> Grid:
        there = {run.method for run in grid.runs}
        runs = [run for run in grid.runs if run.method in {*BOUNDS, *self.methods}]
        for method in self.methods:
            if method not in there:
                floor = [run for run in grid.runs if run.method == FLOOR]
                runs += [replace(run, method=method) for run in floor]
        places = {run.cell.id: place for place, run in reversed(list(enumerate(grid.runs)))}
        return replace(grid, runs=tuple(sorted(runs, key=lambda run: places[run.cell.id])))


def _kept(grid: Grid, what: str, wanted: tuple[Any, ...], of_run: Callable[[RunSpec], Any]) -> Grid:
    """Return the grid with the runs of which something is wanted; what it lacks is refused."""
    if not wanted:
        return grid
    known = [value for value in dict.fromkeys(map(of_run, grid.runs)) if value is not None]
    if not known:
        raise InputError(what, f"grid '{grid.name}' has none", "Leave it out.")
    for value in wanted:
        if value not in known:
            raise InputError(
                what,
                f"grid '{grid.name}' has no {value!r}",
                f"Use some of {', '.join(str(one) for one in known)}.",
            )
    return replace(grid, runs=tuple(run for run in grid.runs if of_run(run) in wanted))
