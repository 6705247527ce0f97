"""Run a grid: what is missing, in an order that shares work, with rows written as they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from bltm.benchmark.engines import Engine, Finished
from bltm.benchmark.execute import clean_up, family, planned_stages
from bltm.benchmark.grid import Grid
from bltm.benchmark.progress import Progress
from bltm.benchmark.rows import append_row, read_rows
from bltm.benchmark.spec import RunSpec
from bltm.core.errors import InputError
from bltm.core.files import write_json

RESULTS, WORK, GRID = "results.jsonl", "work", "grid.json"


@dataclass(frozen=True)
class Standing:
    """How far a grid is.

    Attributes
    ----------
    done, failed
        Runs that have a row.
    missing
        Runs to do, in groups that share stages, in the order of the grid.
    """

    done: int
    failed: int
    missing: tuple[tuple[RunSpec, ...], ...]

    @property
    def left(self) -> int:
        """Return the number of runs to do."""
        return sum(len(group) for group in self.missing)


def standing(grid: Grid, out: Path, retry_failed: bool = False) -> Standing:
    """Return which runs of a grid have rows in a folder and which are missing.

    Parameters
    ----------
    grid
        The grid.
    out
        Its folder.
    retry_failed
        Whether runs that failed count as missing.
    """
    status = {row["id"]: row["status"] for row in read_rows(out / RESULTS)}
    groups: dict[str, list[RunSpec]] = {}
    for run in grid.runs:
        if run.id not in status or (retry_failed and status[run.id] == "failed"):
            groups.setdefault(family(run), []).append(run)
    found = [status[run.id] for run in grid.runs if run.id in status]
    missing = tuple(tuple(group) for group in groups.values())
    failed = 0 if retry_failed else found.count("failed")
    return Standing(found.count("done"), failed, missing)


def check_grid(grid: Grid) -> None:
    """Refuse a grid with a method, parameter or data set that cannot be, before anything runs."""
    from bltm.data.registry import dataset_info
    from bltm.noise.registry import NOISE_MODELS

    seen = set()
    for run in grid.runs:
        dataset_info(run.cell.data)
        if run.cell.noise not in ("none", *NOISE_MODELS):
            known = ", ".join(("none", *NOISE_MODELS))
            raise InputError("noise", f"unknown: {run.cell.noise!r}", f"Use one of {known}.")
        what = (run.method, repr(run.parameters))
        if what not in seen:
            seen.add(what)
            planned_stages(run, 100)


def run_grid(
    grid: Grid, out: Path, engine: Engine, progress: Progress, *, retry_failed: bool = False
) -> Standing:
    """Do what is missing of a grid and return how far it is then.

    It can be killed at any moment and started again: rows that are there are not made again, and a
    run that was under way goes on from its last checkpoint.

    Parameters
    ----------
    grid
        What to run.
    out
        Folder of the rows (``results.jsonl``) and of working files.
    engine
        Who runs it.
    progress
        Who tells the user.
    retry_failed
        Whether to try runs again that failed.
    """
    check_grid(grid)
    out.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(out / ".lock", timeout=0).acquire()
    except Timeout:
        raise InputError(
            "out", f"another process is running a grid in '{out}'", "Wait, or use another folder."
        ) from None
    with lock:
        write_json(out / GRID, {"name": grid.name, "title": grid.title})
        before = standing(grid, out, retry_failed)
        # A process that was killed may have written a row and left the files it was made with.
        _clean_up(grid.runs, out)
        progress.begin(before)
        events = engine.run(before.missing, out / WORK)
        try:
            for event in events:
                if isinstance(event, Finished):
                    append_row(out / RESULTS, event.row)
                    relatives = [r for r in grid.runs if family(r) == family(event.spec)]
                    _clean_up(relatives, out)
                progress.tell(event)
        finally:
            events.close()
            progress.end()
        return standing(grid, out)


def _clean_up(runs: Sequence[RunSpec], out: Path) -> None:
    """Delete the working files of runs that share stages where all of them have rows."""
    have_rows = {row["id"] for row in read_rows(out / RESULTS)}
    families: dict[str, list[RunSpec]] = {}
    for run in runs:
        families.setdefault(family(run), []).append(run)
    for relatives in families.values():
        if all(run.id in have_rows for run in relatives):
            clean_up(relatives, out / WORK)
