"""Runs in processes of this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

from bltm.benchmark.engines.dispatch import dispatch
from bltm.benchmark.engines.events import DIED, Event, failed_row
from bltm.benchmark.engines.worker import thread_variables
from bltm.benchmark.spec import RunSpec
from bltm.core.errors import InputError

LOOK_EVERY = 1.0


class LocalEngine:
    """Worker processes that share the processors of this machine.

    A worker lives for many runs. One that dies takes only its run with it: another takes its place.
    When this process ends, even by SIGKILL, its workers end.

    Parameters
    ----------
    jobs
        Number of worker processes.
    threads
        Threads of each; by default the processors are divided among them.

    Examples
    --------
    >>> LocalEngine(jobs=10_000).threads
    1
    """

    def __init__(self, jobs: int, threads: int | None = None) -> None:
        for name, value in (("jobs", jobs), ("threads", threads)):
            if value is not None and value < 1:
                raise InputError(name, f"must be at least 1, got {value}")
        self.jobs = jobs
        self.threads = max(1, processors() // jobs) if threads is None else threads

    def run(self, groups: Sequence[Sequence[RunSpec]], work: Path) -> Generator[Event, None, None]:
        """Yield what becomes of the runs, see :meth:`Engine.run`."""
        workers: list[_Worker] = []
        try:
            for _ in range(min(self.jobs, len(groups))):
                workers.append(_Worker(self.threads, work.resolve()))
            yield from dispatch(groups, workers, _first_to_end)
        finally:
            for worker in workers:
                worker.stop()


class _Worker:
    """A worker process, and the connection over which it gets runs and gives rows."""

    # An order that comes while the process is starting waits in the connection.
    ready = True

    def __init__(self, threads: int, work: Path) -> None:
        self._threads, self._work = threads, work
        self._process, self.connection = _spawn(threads)

    @property
    def name(self) -> str:
        return f"process-{self._process.pid}"

    def start(self, spec: RunSpec) -> None:
        order = json.dumps({"spec": spec.to_json(), "work": str(self._work)}).encode()
        try:
            self.connection.send_bytes(order)
        except OSError:
            # It has died since its last run.
            self._replace()
            self.connection.send_bytes(order)

    def has_ended(self) -> bool:
        return self._process.poll() is not None or self.connection.poll()

    def finish(self, spec: RunSpec) -> dict[str, Any]:
        try:
            # Without a look before, reading would wait for processes that inherited the other end.
            if self.connection.poll():
                row: dict[str, Any] = json.loads(self.connection.recv_bytes())
                return row
        except (EOFError, OSError):
            pass
        code = self._process.wait()
        self._replace()
        return failed_row(spec, DIED, f"the worker process {in_words(code)}")

    def stop(self) -> None:
        # Whatever is lost was not finished, and is resumed from the last checkpoint.
        self._process.kill()
        self._process.wait()
        self.connection.close()

    def _replace(self) -> None:
        self.stop()
        self._process, self.connection = _spawn(self._threads)


def _spawn(threads: int) -> tuple[subprocess.Popen[bytes], Connection]:
    ours, theirs = Pipe()
    # The worker imports from where this process does, and "-P" keeps the current folder out.
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    code = f"from bltm.benchmark.engines.worker import serve; serve({theirs.fileno()}, {threads})"
    with theirs, _interrupts_held():
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            env={**os.environ, **thread_variables(threads), **path},
            stdin=subprocess.DEVNULL,
            # No other descriptor is inherited: the worker alone holds its end, and we ours.
            pass_fds=[theirs.fileno()],
        )
    return process, ours


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back; a process that is started meanwhile inherits that until it ignores it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _first_to_end(workers: Sequence[_Worker]) -> _Worker:
    while True:
        for worker in workers:
            if worker.has_ended():
                return worker
        # Now and then without a message: processes of a dead worker may hold its end open.
        wait([worker.connection for worker in workers], timeout=LOOK_EVERY)


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_words(code: int) -> str:
    """Say how a process ended.

    Examples
    --------
    >>> in_words(3)
    'ended with exit code 3'
    >>> in_words(-9)
    'was ended by SIGKILL, as the system does when memory runs out'
    """
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    cause = ", as the system does when memory runs out" if -code == signal.SIGKILL else ""
    return f"was ended by {name}{cause}"
