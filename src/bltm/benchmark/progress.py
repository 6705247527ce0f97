"""Tell how a grid goes: a live table on a terminal, a line for each run elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bltm.benchmark.engines import Event, Finished, Started
from bltm.benchmark.spec import RunSpec
from bltm.runs.estimate import duration

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

    from bltm.benchmark.runner import Standing

RECENT = 6


class Progress:
    """Says nothing, but knows what runs and how long the rest will take.

    Parameters
    ----------
    expected
        Estimated seconds of each run, by its id.
    jobs
        How many run at a time.
    """

    def __init__(self, expected: Mapping[str, float], jobs: int) -> None:
        self.expected, self.jobs = dict(expected), jobs
        self.left: dict[str, RunSpec] = {}
        self.running: dict[str, tuple[RunSpec, float]] = {}
        self.finished: list[Finished] = []
        self.done = self.failed = 0
        self.spent = self.foreseen = 0.0

    def begin(self, standing: Standing) -> None:
        """Take note of what there is to do."""
        self.done, self.failed = standing.done, standing.failed
        self.left = {run.id: run for group in standing.missing for run in group}

    def tell(self, event: Event) -> None:
        """Take note of a run that has started or ended."""
        if isinstance(event, Started):
            self.running[event.worker] = (event.spec, time.monotonic())
            return
        _, since = self.running.pop(event.worker, (event.spec, time.monotonic()))
        self.left.pop(event.spec.id, None)
        self.finished.append(event)
        self.spent += time.monotonic() - since
        self.foreseen += self.expected.get(event.spec.id, 0.0)
        if event.row["status"] == "done":
            self.done += 1
        else:
            self.failed += 1

    def end(self) -> None:
        """Take note that nothing runs any more."""

    def seconds_left(self) -> float:
        """Return how long the rest will take, from the estimates and how true they have been."""
        now = time.monotonic()
        expected = sum(self.expected.get(name, 0.0) for name in self.left)
        # A few runs say little of all of them: the estimate weighs as much as ten minutes.
        trust = (self.spent + 600.0) / (self.foreseen + 600.0)
        under_way = sum(now - since for _, since in self.running.values())
        return max(0.0, expected * trust - under_way) / self.jobs


class LineProgress(Progress):
    """Prints a line for each run that ends."""

    def tell(self, event: Event) -> None:
        """Print the line."""
        super().tell(event)
        if isinstance(event, Finished):
            count = f"[{self.done + self.failed}/{self.done + self.failed + len(self.left)}]"
            left = f"{duration(self.seconds_left())} left" if self.left else "all done"
            print(f"{count} {in_words(event.spec)}: {outcome(event.row)}; {left}", file=sys.stderr)
            sys.stderr.flush()


class TableProgress(Progress):
    """Shows a table that is always up to date."""

    def __init__(
        self, expected: Mapping[str, float], jobs: int, console: Console | None = None
    ) -> None:
        super().__init__(expected, jobs)
        from rich.console import Console

        self.console = console or Console(stderr=True)
        self._live: Live | None = None

    def begin(self, standing: Standing) -> None:
        """Start the table."""
        from rich.live import Live

        super().begin(standing)
        self._live = Live(
            get_renderable=self.table, console=self.console, refresh_per_second=2, transient=False
        )
        self._live.start()

    def end(self) -> None:
        """Leave the last state standing."""
        if self._live is not None:
            self._live.stop()
        self._live = None

    def table(self) -> Table:
        """Return the table as it is now."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, title_justify="left", expand=False)
        for heading in ("run", "", "time"):
            table.add_column(heading, justify="right" if heading == "time" else "left")
        for event in self.finished[-RECENT:]:
            style = "" if event.row["status"] == "done" else "red"
            seconds = event.row.get("cost", {}).get("seconds")
            cells = (in_words(event.spec), outcome(event.row), duration(seconds) if seconds else "")
            table.add_row(*(Text(cell, style=style) for cell in cells))
        now = time.monotonic()
        for spec, since in self.running.values():
            table.add_row(Text(in_words(spec), style="bold"), "running", duration(now - since))
        waiting = len(self.left) - len(self.running)
        table.caption = Text(
            f"{self.done} done, {len(self.running)} running, {self.failed} failed, {waiting} "
            f"waiting; about {duration(self.seconds_left())} left"
            if self.left
            else f"{self.done} done, {self.failed} failed"
        )
        return table


def make_progress(expected: Mapping[str, float], jobs: int, quiet: bool = False) -> Progress:
    """Return a table on a terminal, lines elsewhere, and silence where it is asked for."""
    if quiet:
        return Progress(expected, jobs)
    kind = TableProgress if sys.stderr.isatty() else LineProgress
    return kind(expected, jobs)


def in_words(spec: RunSpec) -> str:
    """Return a short name of a run.

    Examples
    --------
    >>> from bltm.benchmark.spec import Cell
    >>> in_words(RunSpec(Cell("digits", None, "instance", 0.3, 1), "bltm"))
    'bltm on digits, instance 30 %, seed 1'
    """
    cell = spec.cell
    noise = "" if cell.rate is None else f", {cell.noise} {100 * cell.rate:g} %"
    return f"{spec.method} on {cell.data}{noise}, seed {cell.seed}"


def outcome(row: Mapping[str, Any]) -> str:
    """Return what came of a run.

    Examples
    --------
    >>> outcome({"status": "done", "figures": {"accuracy": 0.8512}})
    '85.12 %'
    """
    if row["status"] == "done":
        return f"{100 * row['figures']['accuracy']:.2f} %"
    return f"failed: {row['error']['kind']}: {row['error']['message'][:80]}"
