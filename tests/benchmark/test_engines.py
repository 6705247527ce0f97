"""Engines with real processes, some of which are killed."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bltm.benchmark.engines import Event, Finished, LocalEngine, RayEngine, Started
from bltm.benchmark.engines.local import processors
from bltm.benchmark.engines.ray import _places
from bltm.benchmark.engines.worker import perform
from bltm.benchmark.spec import Cell, RunSpec
from bltm.core.errors import InputError

pytestmark = pytest.mark.xdist_group("engines")
PATIENCE = 120.0


def run(seed: int, **parameters: Any) -> RunSpec:
    cell = Cell("digits", None, "instance", 0.3, seed)
    return RunSpec(cell, "cross-entropy", {"net": "mlp", "epochs": 1, **parameters})


def endless(seed: int) -> RunSpec:
    return run(seed, epochs=10**6)


# Seeds tell them apart: a failing run in the first group, one to be killed in the second.
GROUPS = [[run(0), run(1, batch_size=-3), run(2)], [endless(3), run(4)], [run(5)], [run(6)]]


def pid_of(worker: str) -> int:
    return int(worker.rpartition("-")[2])


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


def is_training(work: Path) -> bool:
    return any(path.stat().st_size for path in work.glob("stages/*/history.jsonl"))


@dataclass(frozen=True)
class Story:
    """What an engine told, with the environment of each worker when it began a run."""

    events: list[Event]
    environments: list[str]

    def rows(self) -> dict[int, dict[str, Any]]:
        return {e.spec.cell.seed: e.row for e in self.events if isinstance(e, Finished)}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    work = tmp_path_factory.mktemp("local")
    found = Story([], [])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "3")
        for event in LocalEngine(jobs=2, threads=1).run(GROUPS, work):
            found.events.append(event)
            if isinstance(event, Started):
                environment = Path(f"/proc/{pid_of(event.worker)}/environ")
                # A program that has just been loaded has none for a moment.
                wait_until(lambda path=environment: bool(path.read_bytes()))
                found.environments.append(environment.read_text(encoding="utf-8"))
                if event.spec.cell.seed == 3:
                    place = work / "epochs" / event.spec.id
                    wait_until(place.exists)
                    os.kill(pid_of(event.worker), signal.SIGKILL)
    return found


def test_each_run_starts_and_then_ends_once(story: Story) -> None:
    told = [(type(event), event.spec.cell.seed) for event in story.events]
    assert sorted(seed for kind, seed in told if kind is Started) == list(range(7))
    assert sorted(seed for kind, seed in told if kind is Finished) == list(range(7))
    assert all(told.index((Started, seed)) < told.index((Finished, seed)) for seed in range(7))


def test_groups_start_in_order_two_at_a_time(story: Story) -> None:
    starts = [e.spec.cell.seed for e in story.events if isinstance(e, Started)]
    assert starts[:2] == [0, 3]
    assert [seed for seed in starts if seed in (0, 3, 5, 6)] == [0, 3, 5, 6]
    running, most = 0, 0
    for event in story.events:
        running += 1 if isinstance(event, Started) else -1
        most = max(most, running)
    assert most == 2


def test_runs_of_a_group_follow_each_other_in_one_worker(story: Story) -> None:
    first = [e for e in story.events if e.spec.cell.seed in (0, 1, 2)]
    assert [(type(e), e.spec.cell.seed) for e in first] == [
        (kind, seed) for seed in (0, 1, 2) for kind in (Started, Finished)
    ]
    assert len({event.worker for event in first}) == 1


def test_a_failing_run_is_a_row_and_the_grid_goes_on(story: Story) -> None:
    rows = story.rows()
    assert [rows[seed]["status"] for seed in (0, 1, 2)] == ["done", "failed", "done"]
    error = rows[1]["error"]
    assert error["kind"] == "InputError"
    assert "batch_size" in error["message"]
    assert "Traceback" in error["traceback"]


def test_a_killed_worker_is_a_row_and_another_takes_its_place(story: Story) -> None:
    row = story.rows()[3]
    assert row["id"] == GROUPS[1][0].id
    assert row["spec"] == GROUPS[1][0].to_json()
    assert (row["status"], row["error"]["kind"]) == ("failed", "WorkerDied")
    assert "SIGKILL" in row["error"]["message"]
    assert story.rows()[4]["status"] == "done"
    workers = {e.spec.cell.seed: e.worker for e in story.events}
    assert workers[3] != workers[4]


def test_workers_have_their_threads_whatever_the_environment_says(story: Story) -> None:
    assert all("\0OMP_NUM_THREADS=1\0" in f"\0{text}" for text in story.environments)
    assert {row["recipe"]["threads"] for row in story.rows().values() if "recipe" in row} == {1}


def test_no_worker_is_left_at_the_end(story: Story) -> None:
    assert not any(is_alive(pid_of(event.worker)) for event in story.events)


def test_closing_ends_the_workers(tmp_path: Path) -> None:
    events = LocalEngine(jobs=2, threads=1).run([[endless(0)], [endless(1)]], tmp_path)
    with closing(events):
        pids = [pid_of(next(events).worker) for _ in range(2)]
        assert all(map(is_alive, pids))
        began = time.monotonic()
    assert time.monotonic() - began < 2
    assert not any(map(is_alive, pids))


def test_processors_are_divided_among_the_jobs() -> None:
    assert LocalEngine(jobs=1).threads == processors()
    assert LocalEngine(jobs=2).threads == max(1, processors() // 2)
    assert LocalEngine(jobs=2, threads=5).threads == 5
    for wrong in ((0, None), (1, 0)):
        with pytest.raises(InputError, match="at least 1"):
            LocalEngine(*wrong)


@contextmanager
def script(engine: str, groups: list[list[RunSpec]], work: Path, **env: str) -> Iterator[Any]:
    """Start a process that uses an engine, in a process group of its own."""
    texts = json.dumps([[spec.to_json() for spec in group] for group in groups])
    process = subprocess.Popen(
        [
            sys.executable,
            "-W",
            "error",
            str(Path(__file__).with_name("engine_script.py")),
            engine,
            str(work),
            texts,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, **env},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    with script("local", [[endless(0)], [endless(1)]], tmp_path) as process:
        pids = [pid_of(json.loads(process.stdout.readline())["worker"]) for _ in range(2)]
        wait_until(lambda: is_training(tmp_path))
        assert all(map(is_alive, pids))
        process.kill()
        wait_until(lambda: not any(map(is_alive, pids)), 5)


def test_an_interrupt_ends_everything_and_only_the_parent_speaks_of_it(tmp_path: Path) -> None:
    with script("local", [[endless(0)], [endless(1)]], tmp_path) as process:
        pids = [pid_of(json.loads(process.stdout.readline())["worker"]) for _ in range(2)]
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
        assert not any(map(is_alive, pids))
    assert errors.count("Traceback") == 1
    assert "KeyboardInterrupt" in errors


@pytest.mark.parametrize("result", [{"accuracy": math.nan}, {"accuracy": object()}, SystemExit(3)])
def test_what_cannot_be_written_is_a_failure_of_the_run(
    result: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    def execute(spec: RunSpec, work: Path) -> Any:
        if isinstance(result, BaseException):
            raise result
        return result

    monkeypatch.setattr("bltm.benchmark.execute.execute", execute)
    row = perform(run(0), tmp_path, torch.get_num_threads())
    assert (row["id"], row["status"]) == (run(0).id, "failed")
    assert "Traceback" in row["error"]["traceback"]


def test_without_ray_the_engine_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'bltm\[ray\]'"):
        next(RayEngine(None, threads=1).run(GROUPS, tmp_path))


def fake_ray(monkeypatch: pytest.MonkeyPatch, *nodes: tuple[int, int]) -> None:
    """A Ray that knows the processors and GPUs of its nodes."""
    found = [{"Alive": True, "Resources": {"CPU": float(c), "GPU": float(g)}} for c, g in nodes]
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(nodes=lambda: found))


def test_each_node_of_ray_has_the_workers_that_it_has_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cpus = {3.0: True, 5.0: True, 64.0: False}
    nodes = [{"Alive": alive, "Resources": {"CPU": count}} for count, alive in cpus.items()]
    nodes.append({"Alive": True, "Resources": {}})
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(nodes=lambda: nodes))
    assert _places(2) == 3
    with pytest.raises(InputError, match="no node .* has 6 processors. Use at most 5"):
        _places(6)


@pytest.mark.parametrize(
    ("gpus", "expected"),
    # Of the nodes with 2 and 4 GPUs, the second has processors for three workers only.
    [(0.0, 13), (1.0, 5), (0.5, 7), (0.4, 7), (0.75, 5), (2.0, 3), (4.0, 1)],
)
def test_each_node_of_ray_has_the_workers_that_its_gpus_have_room_for(
    gpus: float, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_ray(monkeypatch, (8, 2), (3, 4), (2, 0))
    assert _places(1, gpus) == expected


def test_a_share_is_of_one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_ray(monkeypatch, (64, 2))
    shares = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 1.0)
    assert [_places(1, gpus) for gpus in shares] == [20, 10, 6, 4, 4, 2, 2]


def test_gpus_that_no_node_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_ray(monkeypatch, (8, 1), (4, 0))
    with pytest.raises(InputError, match="gpus: no node .* most GPUs of a node are 1: use less"):
        _places(1, 2.0)
    fake_ray(monkeypatch, (8, 0), (2, 1))
    with pytest.raises(InputError, match="gpus: no node .* 0.5 of a GPU and 4 processors"):
        _places(4, 0.5)
    assert _places(2, 0.5) == 1


@pytest.mark.parametrize("gpus", [-1.0, 1.5, 1e-5, math.nan, math.inf, -math.inf])
def test_gpus_that_ray_cannot_give_are_refused(gpus: float) -> None:
    with pytest.raises(InputError, match="gpus: must be 0, a share from 0.0001 to 1"):
        RayEngine(None, threads=1, gpus=gpus)


@pytest.fixture
def ray_home() -> Iterator[Path]:
    """A folder with a short name: Ray puts sockets there."""
    folder = Path(tempfile.mkdtemp(prefix="ray"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_ray_gives_the_same_rows(story: Story, ray_home: Path, tmp_path: Path) -> None:
    env = {"HOME": str(ray_home), "RAY_TMPDIR": str(ray_home), "RAY_USAGE_STATS_ENABLED": "0"}
    with script("ray", GROUPS[:2], tmp_path, **env) as process:
        seeds = {spec.id: spec.cell.seed for group in GROUPS for spec in group}
        rows, starts = {}, []
        # Ray prints notes of its own about workers that died.
        for line in (line for line in process.stdout if line.startswith("{")):
            event = json.loads(line)
            seed = seeds[event["id"]]
            if event["row"] is not None:
                rows[seed] = event["row"]
                continue
            starts.append(seed)
            if seed == 3:
                place = tmp_path / "epochs" / event["id"]
                wait_until(place.exists)
                os.kill(pid_of(event["worker"]), signal.SIGKILL)
        assert process.wait(PATIENCE) == 0, process.stderr.read()
    assert starts[:2] == [0, 3] or processors() == 1
    expected = story.rows()
    assert {seed: row["status"] for seed, row in rows.items()} == {
        seed: expected[seed]["status"] for seed in range(5)
    }
    assert [rows[seed]["figures"] for seed in (0, 2, 4)] == [
        expected[seed]["figures"] for seed in (0, 2, 4)
    ]
    assert rows[0]["recipe"]["threads"] == 1
    assert rows[1]["error"]["message"] == expected[1]["error"]["message"]
    assert rows[3]["error"]["kind"] == "WorkerDied"
    assert list(tmp_path.glob(".seen*")) == []
