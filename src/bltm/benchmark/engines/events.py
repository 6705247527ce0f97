"""What engines are asked for, and what they tell."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bltm.benchmark.spec import RunSpec

DIED = "WorkerDied"
"""The kind of error of runs whose process ended without a row."""


@dataclass(frozen=True)
class Started:
    """A worker has begun a run."""

    spec: RunSpec
    worker: str


@dataclass(frozen=True)
class Finished:
    """A run has ended, well or badly; its row says how."""

    spec: RunSpec
    row: dict[str, Any]
    worker: str


Event = Started | Finished


class Engine(Protocol):
    """Makes runs and tells what becomes of them."""

    def run(self, groups: Sequence[Sequence[RunSpec]], work: Path) -> Generator[Event, None, None]:
        """Yield an event when a run begins, and one with its row when it has ended.

        Each run gets one row, whatever happens to it. Before a worker begins its next run the
        caller has taken the row of the last one. Closing the generator stops all workers at once;
        a caller that may leave the loop early does so with ``contextlib.closing``.

        Parameters
        ----------
        groups
            Handed out in this order. The runs of a group go to one worker, one after another: they
            never run at the same time.
        work
            Folder of the working files.
        """


def failed_row(spec: RunSpec, kind: str, message: str, traceback: str = "") -> dict[str, Any]:
    """Return the row of a run that could not say itself why it failed.

    Examples
    --------
    >>> from bltm.benchmark.spec import Cell
    >>> spec = RunSpec(Cell("digits", None, "instance", 0.3, seed=0), "bltm")
    >>> failed_row(spec, DIED, "the process was ended by SIGKILL")["error"]["message"]
    'the process was ended by SIGKILL'
    """
    return {
        "id": spec.id,
        "status": "failed",
        "spec": spec.to_json(),
        "error": {"kind": kind, "message": message, "traceback": traceback},
    }
