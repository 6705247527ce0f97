"""A run directory: which files it has, who may write it, and how far it is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from bltm.core.errors import InputError
from bltm.core.files import read_json, write_json
from bltm.runs.config import RunConfig

if TYPE_CHECKING:
    from bltm.engine.store import DirectoryStore

CONFIG, HISTORY, POSTERIORS = "config.json", "history.jsonl", "posteriors.safetensors"
MODEL, METADATA = "model.safetensors", "metadata.json"
CHECKPOINT, LOCK = "checkpoint", ".lock"
AUDIT = ("audit.csv", "audit.parquet", "audit.json", "report.html")
# The first makes a run unfinished when it is removed, the last makes it a run at all.
FILES = (METADATA, MODEL, *AUDIT, POSTERIORS, HISTORY, CONFIG)


class State(Enum):
    """How far a run directory is."""

    ABSENT = "absent"
    EMPTY = "empty"
    UNFINISHED = "unfinished"
    FINISHED = "finished"
    FOREIGN = "not a run"


class RunDirectory:
    """The files of one run.

    ``metadata.json`` is written last: a run is finished when it is there. One process at a time
    may write, see :meth:`claimed`.

    Examples
    --------
    >>> RunDirectory(Path("/no/such/run")).state
    <State.ABSENT: 'absent'>
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def state(self) -> State:
        """Look at the files and tell."""
        if not self.path.exists() and not self.path.is_symlink():
            return State.ABSENT
        if not self.path.is_dir():
            return State.FOREIGN
        if set(self.path.iterdir()) <= {self.path / LOCK, *self._half_written()}:
            return State.EMPTY
        if not self._has_config():
            return State.FOREIGN
        return State.FINISHED if (self.path / METADATA).exists() else State.UNFINISHED

    def check(self, *, resume: bool, overwrite: bool) -> None:
        """Refuse a directory that may not be written; nothing is touched."""
        state = self.state
        if resume and overwrite:
            raise InputError("resume", "contradicts overwrite", "Give one of the two.")
        if state is State.ABSENT:
            return
        if state is State.FOREIGN:
            raise InputError(
                "out",
                f"'{self.path}' exists and is not a run of bltm",
                "Choose another place; bltm does not touch files that it did not write.",
            )
        if not (resume or overwrite):
            found = {
                State.EMPTY: "is an empty directory",
                State.UNFINISHED: "holds a run that is not finished",
                State.FINISHED: "holds a finished run",
            }
            raise InputError(
                "out",
                f"'{self.path}' exists already: it {found[state]}",
                "Choose another place, continue the run with --resume, or replace it with "
                "--overwrite.",
            )

    @contextmanager
    def claimed(self, *, resume: bool, overwrite: bool) -> Iterator[None]:
        """Hold the directory for writing; what was begun with unusable input is removed."""
        fresh = self.state is State.ABSENT
        self.check(resume=resume, overwrite=overwrite)
        self.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path / LOCK, timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise InputError(
                "out",
                f"another process is writing '{self.path}'",
                "Wait until it is done, stop it, or choose another place.",
            ) from None
        try:
            if not fresh or self.state is not State.EMPTY:
                # Another process may have been here between the check and the lock.
                self.check(resume=resume, overwrite=overwrite)
            yield
        except InputError:
            if fresh:
                self.remove()
            raise
        finally:
            lock.release()

    def begin(self, config: RunConfig, *, overwrite: bool) -> None:
        """Write the config of a new run, or see that an unfinished one has the same."""
        if overwrite:
            self.erase()
        self._sweep()
        if self.state is State.UNFINISHED:
            self.compare(config)
            return
        write_json(self.path / CONFIG, config.to_json())

    def compare(self, config: RunConfig) -> None:
        """Raise if the run was started with another config or other data."""
        different = self.config().differences(config)
        if different:
            raise InputError(
                "resume",
                f"'{self.path}' was started differently ({'; '.join(different)})",
                "Give the options and the data of the first start, or --overwrite to start anew.",
            )

    def config(self) -> RunConfig:
        """Read the config."""
        path = self.path / CONFIG
        return RunConfig.from_json(read_json(path), str(path))

    def store(self, *, writes: bool) -> DirectoryStore:
        """Return where stages keep their state."""
        from bltm.engine.store import DirectoryStore

        return DirectoryStore(self.path / CHECKPOINT, self.path / HISTORY, writes)

    def drop_checkpoint(self) -> None:
        """Remove the state of stages, which a finished run does not need."""
        shutil.rmtree(self.path / CHECKPOINT, ignore_errors=True)

    def erase(self) -> None:
        """Remove the files of a run, and no others."""
        *most, last = FILES
        for name in most:
            (self.path / name).unlink(missing_ok=True)
        self.drop_checkpoint()
        self._sweep()
        (self.path / last).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the files of a run and, if nothing else is in it, the directory."""
        if self.state in (State.ABSENT, State.FOREIGN):
            return
        self.erase()
        if self.state is State.EMPTY:
            (self.path / LOCK).unlink(missing_ok=True)
            self.path.rmdir()

    def _half_written(self) -> list[Path]:
        """Return temporary files that a killed process left behind."""
        return [path for name in FILES for path in self.path.glob(f".{name}.*")]

    def _sweep(self) -> None:
        for path in self._half_written():
            path.unlink(missing_ok=True)

    def _has_config(self) -> bool:
        try:
            values = read_json(self.path / CONFIG)
        except (OSError, ValueError):
            return False
        return {"bltm", "method", "data"} <= set(values)
