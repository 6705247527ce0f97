"""What ``bltm bench`` does: check, forecast, run, and say how far the grid is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bltm.benchmark.choice import Choice
from bltm.benchmark.engines import Engine, LocalEngine, RayEngine
from bltm.benchmark.engines.local import processors
from bltm.benchmark.forecast import forecast
from bltm.benchmark.grid import Grid, built_in_grids, load_grid
from bltm.benchmark.progress import in_words, make_progress
from bltm.benchmark.rows import read_rows
from bltm.benchmark.runner import RESULTS, WORK, Standing, check_grid, run_grid, standing
from bltm.core.errors import InputError
from bltm.runs.estimate import duration

ENGINES = ("local", "ray")


@dataclass(frozen=True)
class BenchOptions:
    """What the user asked for; see ``bltm bench --help``."""

    grid: str
    out: Path | None = None
    jobs: int = 1
    threads: int | None = None
    engine: str = "local"
    ray_address: str | None = None
    gpus: float = 0.0
    quick: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)
    choice: Choice = Choice()
    retry_failed: bool = False
    dry_run: bool = False
    quiet: bool = False


@dataclass(frozen=True)
class BenchResult:
    """How far the grid is, and where its rows are."""

    out: Path
    rows: Path
    done: int
    failed: int
    left: int

    def in_words(self) -> str:
        """Return one sentence."""
        text = f"{self.done} runs are done; rows: {self.rows}."
        if self.failed:
            text += (
                f" {self.failed} failed: their rows say why, and --retry-failed tries them again."
            )
        return text


def run_bench(options: BenchOptions, say: Callable[[str], None]) -> BenchResult | None:
    """Run what is missing of a grid; None after a dry run.

    Parameters
    ----------
    options
        What to do.
    say
        Takes a line for the user.
    """
    grid = load_grid(options.grid, quick=options.quick, parameters=options.parameters)
    grid = options.choice.of(grid)
    check_grid(grid)
    out = options.out or Path(f"{grid.name}-quick" if options.quick else grid.name)
    threads = options.threads or _threads(options.jobs)
    engine = _make_engine(options, threads)
    before = standing(grid, out, options.retry_failed)
    missing = [run for group in before.missing for run in group]
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch) if options.dry_run else out / WORK
        expected = forecast(missing, read_rows(out / RESULTS), work, threads)
    if options.dry_run or not options.quiet:
        for line in _plan(grid, before, expected, options):
            say(line)
    if options.dry_run:
        return None
    progress = make_progress(expected, options.jobs, options.quiet)
    after = run_grid(grid, out, engine, progress, retry_failed=options.retry_failed)
    return BenchResult(out, out / RESULTS, after.done, after.failed, after.left)


def list_grids() -> str:
    """Return the built-in grids with their descriptions, a line for each."""
    grids = [load_grid(name) for name in built_in_grids()]
    width = max(len(grid.name) for grid in grids)
    return "\n".join(f"{grid.name:<{width}}  {grid.description}" for grid in grids)


def _threads(jobs: int) -> int:
    """Return the threads of a run: what the user's environment says, or the cores divided."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    return int(said) if said.isdecimal() and int(said) else max(1, processors() // jobs)


def _make_engine(options: BenchOptions, threads: int) -> Engine:
    if options.engine == "local":
        if options.gpus != 0:
            raise InputError(
                "gpus",
                f"is the share of a GPU on a Ray cluster, got {options.gpus} with the local engine",
                "Leave it out: local runs use the GPU by themselves, and CUDA_VISIBLE_DEVICES says "
                "which.",
            )
        return LocalEngine(options.jobs, threads)
    if options.engine == "ray":
        return RayEngine(options.ray_address, threads, options.gpus)
    raise InputError("engine", f"unknown: {options.engine!r}", f"Use one of {', '.join(ENGINES)}.")


def _plan(
    grid: Grid, before: Standing, expected: Mapping[str, float], options: BenchOptions
) -> list[str]:
    lines = [
        f"{grid.title}: {len(grid.runs)} runs, {before.done} done, {before.failed} failed, "
        f"{before.left} to do."
    ]
    if options.dry_run:
        lines += [
            f"  {in_words(run)}: about {duration(expected[run.id])}"
            for group in before.missing
            for run in group
        ]
    if before.left:
        total = sum(expected.values()) / options.jobs
        at_once = f" with {options.jobs} at a time" if options.jobs > 1 else ""
        lines.append(f"About {duration(total)}{at_once}, a forecast from a few steps of training.")
    return lines
