"""Runs on a Ray cluster."""

from __future__ import annotations

import logging
import os
import socket
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import Any

from bltm.benchmark.engines.dispatch import dispatch
from bltm.benchmark.engines.events import DIED, Event, failed_row
from bltm.benchmark.engines.worker import perform, thread_variables
from bltm.benchmark.spec import RunSpec
from bltm.core.errors import InputError

ATTEMPTS = 3
"""How often in a row a worker may fail to start."""
SMALLEST_SHARE = 0.0001
"""The least of a GPU that Ray gives away."""


class RayEngine:
    """Workers on the nodes of a Ray cluster, as many as its processors and GPUs allow.

    bltm must be installed on all nodes, and the folder of the working files must be one that all of
    them see under the same path. ``BLTM_DATA`` and the like hold on all nodes as they do here.

    Parameters
    ----------
    address
        Of the cluster; "auto" for the one that this machine belongs to; "local" to start a Ray on
        this machine and end it afterwards. None is "auto" where there is a cluster, else "local".
    threads
        Threads of each worker; it takes as many processors of its node.
    gpus
        The share of a GPU that each worker takes, such as 0.5 for two on each; above 1 a whole
        number of them. With 0 Ray does not give them any: by its version and settings, workers then
        see no GPU, or they all see the same ones.
    """

    def __init__(self, address: str | None, threads: int, gpus: float = 0.0) -> None:
        if threads < 1:
            raise InputError("threads", f"must be at least 1, got {threads}")
        if not (gpus == 0 or SMALLEST_SHARE <= gpus <= 1 or (gpus > 1 and gpus % 1 == 0)):
            raise InputError(
                "gpus",
                f"must be 0, a share from {SMALLEST_SHARE} to 1 or a whole number, got {gpus}",
                "Use 1 for a GPU of its own, 0.5 for half of one.",
            )
        self.address, self.threads, self.gpus = address, threads, gpus

    def run(self, groups: Sequence[Sequence[RunSpec]], work: Path) -> Generator[Event, None, None]:
        """Yield what becomes of the runs, see :meth:`Engine.run`."""
        workers: list[_Worker] = []
        with _connected(self.address), _marked(work.resolve()) as mark:
            try:
                for _ in range(min(_places(self.threads, self.gpus), len(groups))):
                    workers.append(_Worker(self.threads, self.gpus, mark))
                yield from dispatch(groups, workers, _first_to_end(workers))
            finally:
                for worker in workers:
                    worker.stop()


class _Actor:
    """What lives on a node."""

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def greet(self, mark: str) -> tuple[str, bool]:
        return f"{socket.gethostname()}-{os.getpid()}", Path(mark).exists()

    def run(self, spec: dict[str, Any], work: str) -> dict[str, Any]:
        return perform(RunSpec.from_json(spec), Path(work), self._threads)


class _Worker:
    """An actor, and the answer that it owes: its greeting at first, then the row of its run."""

    def __init__(self, threads: int, gpus: float, mark: Path) -> None:
        self._threads, self._gpus, self._mark, self._attempts = threads, gpus, mark, 0
        self._create()

    def _create(self) -> None:
        import ray

        self.name, self.ready = "", False
        settings = {name: value for name, value in os.environ.items() if name.startswith("BLTM_")}
        variables = {**settings, **thread_variables(self._threads)}
        actor = ray.remote(_Actor).options(
            num_cpus=self._threads,
            num_gpus=self._gpus,
            max_restarts=0,
            runtime_env={"env_vars": variables},
        )
        self._actor = actor.remote(self._threads)
        self.answer: Any = self._actor.greet.remote(str(self._mark))

    def welcome(self) -> None:
        """Take the greeting; a worker that died before it is replaced."""
        import ray

        try:
            self.name, sees_work = ray.get(self.answer)
        except ray.exceptions.RayError as error:
            self._attempts += 1
            if self._attempts == ATTEMPTS:
                raise InputError(
                    "engine",
                    f"a worker cannot be started on the Ray cluster: {_in_short(error)}",
                    "The same bltm and Python must be installed on all nodes.",
                ) from error
            self._replace()
            return
        if not sees_work:
            raise InputError(
                "out",
                f"the worker {self.name} does not see the folder '{self._mark.parent}'",
                "Write to a folder that all nodes of the Ray cluster have under the same path.",
            )
        self.ready, self.answer, self._attempts = True, None, 0

    def start(self, spec: RunSpec) -> None:
        self.answer = self._actor.run.remote(spec.to_json(), str(self._mark.parent))

    def finish(self, spec: RunSpec) -> dict[str, Any]:
        import ray

        try:
            row: dict[str, Any] = ray.get(self.answer)
        except ray.exceptions.RayError as error:
            name = self.name
            self._replace()
            return failed_row(spec, DIED, f"the worker {name} died: {_in_short(error)}")
        self.answer = None
        return row

    def stop(self) -> None:
        import ray

        ray.kill(self._actor)

    def _replace(self) -> None:
        # Ray may have lost one that is still alive; two must not make runs of one group.
        self.stop()
        self._create()


def _first_to_end(workers: Sequence[_Worker]) -> Callable[[Sequence[_Worker]], _Worker | None]:
    import ray

    def wait(running: Sequence[_Worker]) -> _Worker | None:
        owing = {worker.answer: worker for worker in workers if worker.answer is not None}
        (answer,), _ = ray.wait(list(owing), num_returns=1)
        worker = owing[answer]
        if worker in running:
            return worker
        worker.welcome()
        return None

    return wait


def _places(threads: int, gpus: float = 0.0) -> int:
    """Return how many workers find room on the nodes of the cluster."""
    import ray

    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]

    def most(kind: str) -> int:
        return max((int(node.get(kind, 0)) for node in nodes), default=0)

    if most("CPU") < threads:
        raise InputError(
            "threads",
            f"no node of the Ray cluster has {threads} processors",
            f"Use at most {most('CPU')}.",
        )
    places = sum(_room(node, threads, gpus) for node in nodes)
    if places == 0:
        raise InputError(
            "gpus",
            f"no node of the Ray cluster has {gpus:g} of a GPU and {threads} processors",
            f"The most GPUs of a node are {most('GPU')}: use less of them, fewer threads, or 0 to "
            "ask for none.",
        )
    return places


def _room(node: Mapping[str, float], threads: int, gpus: float) -> int:
    """Return how many workers find room on a node with these resources."""
    room = int(node.get("CPU", 0)) // threads
    if gpus == 0:
        return room
    count = int(node.get("GPU", 0))
    # What is left of one GPU and what is left of another do not make a share.
    return min(room, count * int(1 / gpus) if gpus <= 1 else count // int(gpus))


@contextmanager
def _connected(address: str | None) -> Iterator[None]:
    """Hold a connection to Ray; one that was there before stays."""
    try:
        import ray
    except ImportError as error:
        raise InputError(
            "engine", "Ray is not installed", "Install it with: pip install 'bltm[ray]'"
        ) from error
    if ray.is_initialized():
        yield
        return
    try:
        ray.init(
            address=address,
            include_dashboard=False,
            logging_level=logging.ERROR,
            log_to_driver=False,
        )
    except (ConnectionError, ValueError) as error:
        raise InputError("address", f"there is no Ray cluster: {_in_short(error)}") from error
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _marked(work: Path) -> Iterator[Path]:
    """Put a file into the folder, by which nodes recognise it."""
    work.mkdir(parents=True, exist_ok=True)
    mark = work / f".seen-by-all-nodes-{uuid.uuid4().hex}"
    mark.touch()
    try:
        yield mark
    finally:
        mark.unlink(missing_ok=True)


def _in_short(error: Exception) -> str:
    """Return the last line, where Ray says what happened after whom it happened to."""
    return shorten(str(error).strip(" .\n").rpartition("\n")[2], width=300, placeholder=" ...")
