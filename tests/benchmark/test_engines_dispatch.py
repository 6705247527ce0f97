"""Which run goes to which worker when, with workers that are no processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bltm.benchmark.engines.dispatch import dispatch
from bltm.benchmark.engines.events import Finished
from bltm.benchmark.spec import Cell, RunSpec


class FakeSlot:
    def __init__(self, name: str) -> None:
        self.name, self.ready, self.dies = name, True, False

    def start(self, spec: RunSpec) -> None:
        assert self.ready

    def finish(self, spec: RunSpec) -> dict[str, Any]:
        self.ready = not self.dies
        return {"id": spec.id}


def trace(
    sizes: Sequence[int],
    slots: Sequence[FakeSlot],
    wait: Callable[[Sequence[FakeSlot]], FakeSlot | None],
) -> list[str]:
    """Runs are numbered through all groups; "2@b" is the start of run 2 at slot b, "2." its end."""
    numbers = iter(range(sum(sizes)))
    groups = [
        [RunSpec(Cell("digits", None, "x", 0.1, next(numbers)), "m") for _ in range(size)]
        for size in sizes
    ]
    return [
        f"{event.spec.cell.seed}" + ("." if isinstance(event, Finished) else f"@{event.worker}")
        for event in dispatch(groups, slots, wait)
    ]


def test_groups_go_out_in_order_and_stay_with_their_worker() -> None:
    slots = [FakeSlot("a"), FakeSlot("b")]
    # The one that began last ends first.
    found = trace([2, 1, 0, 2], slots, lambda running: running[-1])
    assert found == ["0@a", "2@b", "2.", "3@b", "3.", "4@b", "4.", "0.", "1@a", "1."]


def test_the_rest_of_a_group_waits_for_nobody_when_its_worker_does_not_come_back() -> None:
    slots = [FakeSlot("a"), FakeSlot("b")]
    slots[0].dies = True
    found = trace([2, 1, 1], slots, lambda running: running[0])
    assert found == ["0@a", "2@b", "0.", "2.", "1@b", "1.", "3@b", "3."]


def test_a_worker_gets_nothing_before_it_is_ready() -> None:
    slots = [FakeSlot("a"), FakeSlot("b")]
    slots[0].ready = False
    waits: list[int] = []

    def wait(running: Sequence[FakeSlot]) -> FakeSlot | None:
        waits.append(len(running))
        if len(waits) == 1:
            slots[0].ready = True
            return None
        return running[0]

    assert trace([1, 1], slots, wait) == ["0@b", "1@a", "0.", "1."]
    assert waits == [1, 2, 1]


def test_no_runs_are_no_events() -> None:
    assert trace([0, 0], [FakeSlot("a")], lambda running: running[0]) == []
