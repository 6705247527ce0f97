"""What happens inside a worker process."""

from __future__ import annotations

import json
import os
import signal
import threading
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from bltm.benchmark.engines.events import failed_row
from bltm.benchmark.spec import RunSpec

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def thread_variables(threads: int) -> dict[str, str]:
    """Return the environment that numerical libraries read when they are loaded.

    Examples
    --------
    >>> thread_variables(2)["OMP_NUM_THREADS"]
    '2'
    """
    return dict.fromkeys(THREAD_VARIABLES, str(threads))


def perform(spec: RunSpec, work: Path, threads: int) -> dict[str, Any]:
    """Return the row of a run, as plain values that can be written as JSON.

    Whatever is raised becomes a row. One that cannot be written is a failure of its run, and not
    of the grid.
    """
    try:
        import torch

        from bltm.benchmark.execute import execute

        torch.set_num_threads(threads)
        row: dict[str, Any] = json.loads(json.dumps(execute(spec, work), allow_nan=False))
    except BaseException as error:
        return failed_row(spec, type(error).__name__, str(error), traceback.format_exc())
    return row


def serve(descriptor: int, threads: int) -> None:
    """Make the runs that come over a connection, until its other end is closed."""
    # Ctrl-C reaches all processes of a terminal; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    connection = Connection(descriptor)
    orders: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_listen, args=(connection, orders), daemon=True).start()
    while True:
        order = orders.get()
        row = perform(RunSpec.from_json(order["spec"]), Path(order["work"]), threads)
        connection.send_bytes(json.dumps(row).encode())


def _listen(connection: Connection, orders: SimpleQueue[dict[str, Any]]) -> None:
    """Take orders, during a run as well: the end of the parent process is the end of this one."""
    while True:
        try:
            orders.put(json.loads(connection.recv_bytes()))
        except (EOFError, OSError):
            os._exit(0)
