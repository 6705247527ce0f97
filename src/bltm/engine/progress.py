"""Say what is being done: nothing, a line per epoch, or a live bar."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bltm.engine.loop import EpochRecord

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Reporter:
    """Says nothing; the base of those that do."""

    def begin(self, stage: str, epochs: int, done: int) -> None:
        """Tell that a stage of so many epochs starts, some of them done before."""

    def step(self, epochs: float) -> None:
        """Tell how many epochs are done, parts of one included."""

    def epoch(self, record: EpochRecord) -> None:
        """Tell what came out of an epoch."""

    def end(self) -> None:
        """Tell that the stage is over."""

    def say(self, message: str) -> None:
        """Tell something in words."""


@dataclass
class LineReporter(Reporter):
    """Prints the last epoch of each stage, and others at least ``every`` seconds apart."""

    stream: Any = field(default_factory=lambda: sys.stderr)
    every: float = 10.0
    _printed: float = field(default_factory=time.monotonic)

    def epoch(self, record: EpochRecord) -> None:
        """Print the epoch's figures, if it is time to."""
        now = time.monotonic()
        if record.epoch == record.epochs or now - self._printed >= self.every:
            self._printed = now
            self.say(f"{record.stage}: epoch {record.epoch}/{record.epochs}, {figures(record)}")

    def say(self, message: str) -> None:
        """Print the message."""
        print(message, file=self.stream, flush=True)


class BarReporter(Reporter):
    """A live bar that names the stage and shows loss, validation accuracy and time left."""

    REFRESH = 0.1

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(stderr=True)
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._shown = 0.0

    def begin(self, stage: str, epochs: int, done: int) -> None:
        """Start the stage's bar."""
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("[bold]{task.description:<18}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
            console=self.console,
        )
        self._progress.start()
        self._task = self._progress.add_task(stage, total=epochs, completed=done, figures="")

    def step(self, epochs: float) -> None:
        """Move the bar, at most ten times a second."""
        now = time.monotonic()
        if now - self._shown > self.REFRESH and self._progress and self._task is not None:
            self._progress.update(self._task, completed=epochs)
            self._shown = now

    def epoch(self, record: EpochRecord) -> None:
        """Show the epoch's figures in the bar."""
        if self._progress and self._task is not None:
            self._progress.update(self._task, completed=record.epoch, figures=figures(record))

    def end(self) -> None:
        """Leave the finished bar standing."""
        if self._progress:
            self._progress.stop()
        self._progress, self._task = None, None

    def say(self, message: str) -> None:
        """Print the message above the bar."""
        self.console.print(message, highlight=False)


def figures(record: EpochRecord) -> str:
    """Return loss and validation accuracy in words."""
    text = f"loss {record.loss:.4f}"
    if "val_accuracy" in record.metrics:
        text += f", noisy validation accuracy {100 * record.metrics['val_accuracy']:.1f} %"
    return text


def make_reporter(verbose: int | bool) -> Reporter:
    """Return a silent reporter for 0, a bar on a terminal and lines elsewhere."""
    if not verbose:
        return Reporter()
    return BarReporter() if sys.stderr.isatty() else LineReporter()
