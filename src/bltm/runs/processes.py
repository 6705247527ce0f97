"""Which of several processes this one is, and how all of them stop together."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightning_fabric import Fabric

SIGNALS = (signal.SIGINT, signal.SIGTERM)
ASK_EVERY = 8


def is_first_process() -> bool:
    """Tell whether this process writes, before any process group exists.

    Launchers (Lightning's own, torchrun, Slurm) number their processes in the environment.
    """
    names = ("RANK", "SLURM_PROCID", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK")
    return all(int(os.environ.get(name, "0")) == 0 for name in names)


class StopSignal:
    """Turns Ctrl-C and SIGTERM into a question that training asks after each step.

    Until :meth:`arm` is called there is nothing to save, and from the second signal on nobody
    wants to wait: then the signal interrupts at once.

    Parameters
    ----------
    say
        Tells the user that the wish was heard.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._armed = self._requested = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignal:
        # Python allows signal handlers in the main thread only.
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                # A signal that the caller ignores (nohup, a job in the background) stays ignored.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self) -> bool:
        """Return whether the user asked to stop."""
        return self._requested

    def arm(self) -> None:
        """Wait for the end of a step from now on."""
        self._armed = True

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._requested or not self._armed:
            raise KeyboardInterrupt
        self._requested = True
        self._say("Stopping after this step and saving; once more stops at once.")


def agreed(stop: Callable[[], bool], fabric: Fabric) -> Callable[[], bool]:
    """Return the question whether *any* process was asked to stop, answered alike in all.

    With several processes it is put every eighth step, for it costs an exchange.
    """
    if fabric.world_size == 1:
        return stop
    import torch

    from bltm.engine.devices import all_sum

    asked = 0

    def stop_all() -> bool:
        nonlocal asked
        asked += 1
        if asked % ASK_EVERY:
            return False
        return bool(all_sum(fabric, torch.tensor(float(stop()), device=fabric.device)) > 0)

    return stop_all
