"""Which run goes to which worker when; the same for all engines."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol, TypeVar

from bltm.benchmark.engines.events import Event, Finished, Started
from bltm.benchmark.spec import RunSpec


class Slot(Protocol):
    """A worker, and the one that takes its place when it dies."""

    @property
    def name(self) -> str:
        """Return the worker's name."""

    @property
    def ready(self) -> bool:
        """Return whether it can begin a run now."""

    def start(self, spec: RunSpec) -> None:
        """Begin a run."""

    def finish(self, spec: RunSpec) -> dict[str, Any]:
        """Return the row of the run that has ended; a worker that died is replaced."""


AnySlot = TypeVar("AnySlot", bound=Slot)


def dispatch(
    groups: Sequence[Sequence[RunSpec]],
    slots: Sequence[AnySlot],
    wait: Callable[[Sequence[AnySlot]], AnySlot | None],
) -> Generator[Event, None, None]:
    """Hand out groups in order, and the runs of a group one after another to the same worker.

    Parameters
    ----------
    groups
        Runs that must not run at the same time are in one group.
    slots
        Workers.
    wait
        Waits until one of the workers that are given has ended its run, and returns it; or until
        another has become ready, and returns None.
    """
    pending = deque(deque(group) for group in groups if group)
    running: dict[AnySlot, tuple[Started, deque[RunSpec]]] = {}

    def begin(slot: AnySlot, group: deque[RunSpec]) -> Started:
        spec = group.popleft()
        slot.start(spec)
        started = Started(spec, slot.name)
        running[slot] = started, group
        return started

    while pending or running:
        for slot in slots:
            if pending and slot not in running and slot.ready:
                yield begin(slot, pending.popleft())
        ended = wait(list(running))
        if ended is None:
            continue
        started, rest = running.pop(ended)
        yield Finished(started.spec, ended.finish(started.spec), started.worker)
        if rest and ended.ready:
            yield begin(ended, rest)
        elif rest:
            pending.appendleft(rest)
