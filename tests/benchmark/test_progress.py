"""What a user is told while a grid runs."""

import io

import pytest
from rich.console import Console

from bltm.benchmark.engines import Finished, Started
from bltm.benchmark.progress import LineProgress, Progress, TableProgress, make_progress
from bltm.benchmark.runner import Standing
from bltm.benchmark.spec import Cell, RunSpec

RUNS = [
    RunSpec(Cell("digits", None, "instance", 0.3, seed), method)
    for seed in (0, 1)
    for method in ("gce", "bltm")
]
EXPECTED = {run.id: 100.0 for run in RUNS}


def done(run: RunSpec, worker: str) -> Finished:
    row = {"status": "done", "figures": {"accuracy": 0.8765}, "cost": {"seconds": 75.0}}
    return Finished(run, row, worker)


def failed(run: RunSpec, worker: str) -> Finished:
    error = {"kind": "TrainingError", "message": "diverged [red]", "traceback": ""}
    return Finished(run, {"status": "failed", "error": error}, worker)


def begun(progress: Progress) -> Progress:
    progress.begin(Standing(3, 1, tuple((run,) for run in RUNS)))
    return progress


def test_counts_and_time_left() -> None:
    progress = begun(Progress(EXPECTED, jobs=2))
    assert progress.seconds_left() == pytest.approx(200.0)
    progress.tell(Started(RUNS[0], "a"))
    progress.tell(Started(RUNS[1], "b"))
    progress.tell(done(RUNS[0], "a"))
    progress.tell(failed(RUNS[1], "b"))
    assert (progress.done, progress.failed, len(progress.left)) == (4, 2, 2)
    assert not progress.running
    # Both took no time at all, and the estimate believes that only a little.
    assert 60.0 < progress.seconds_left() < 100.0


def test_the_table_shows_what_is_done_running_and_failed() -> None:
    text = io.StringIO()
    console = Console(file=text, width=120, force_terminal=False)
    progress = TableProgress(EXPECTED, 2, console)
    begun(progress)
    progress.tell(Started(RUNS[0], "a"))
    progress.tell(done(RUNS[0], "a"))
    progress.tell(Started(RUNS[1], "a"))
    progress.tell(failed(RUNS[1], "a"))
    progress.tell(Started(RUNS[2], "a"))
    progress.end()
    shown = text.getvalue()
    assert "gce on digits, instance 30 %, seed 0" in shown
    assert "87.65 %" in shown
    # What users wrote is text, not markup.
    assert "failed: TrainingError: diverged [red]" in shown
    assert "running" in shown
    assert "4 done, 1 running, 2 failed, 1 waiting; about" in shown


def test_lines_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    progress = begun(LineProgress(EXPECTED, 1))
    for run in RUNS:
        progress.tell(Started(run, "a"))
        progress.tell(done(run, "a"))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("[5/8] gce on digits, instance 30 %, seed 0: 87.65 %; ")
    assert lines[-1].endswith("all done")


def test_silence_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    progress = begun(make_progress(EXPECTED, 1, quiet=True))
    progress.tell(Started(RUNS[0], "a"))
    progress.tell(done(RUNS[0], "a"))
    assert capsys.readouterr().err == ""
