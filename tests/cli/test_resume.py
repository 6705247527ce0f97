"""Runs that are stopped, killed, resumed, replaced, or started twice."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from .processes import ENVIRONMENT, Running, Server, Shell, tiny

# Small batches and a rate at which three epochs are enough to be sure: all stages have work to do.
FIT = (
    *("fit", "tiny.npz", "--epochs", "3", "--batch-size", "20", "--lr", "0.02", "--device", "cpu"),
    *("--checkpoint-every", "0"),
)
WAIT = 120.0


def stages(run: Path) -> list[str]:
    lines = (run / "history.jsonl").read_text().splitlines()
    return list(dict.fromkeys(json.loads(line)["stage"] for line in lines))


def without_times(run: Path) -> list[dict[str, object]]:
    lines = map(json.loads, (run / "history.jsonl").read_text().splitlines())
    return [{k: v for k, v in line.items() if k != "seconds"} for line in lines]


def assert_same(run: Path, whole: Path) -> None:
    for name in ("model.safetensors", "posteriors.safetensors"):
        assert (run / name).read_bytes() == (whole / name).read_bytes(), name
    assert without_times(run) == without_times(whole)
    assert not (run / "checkpoint").exists()


def wait_for(path: Path, running: Running | subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + WAIT
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        if isinstance(running, subprocess.Popen):
            assert running.poll() is None, f"ended before {path} appeared"
        time.sleep(0.001)


@pytest.fixture(scope="module")
def undisturbed(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("undisturbed")
    X, y = tiny()
    np.savez(place / "tiny.npz", X=X, y=y)
    Shell(server, place).succeed(*FIT, "--out", "whole")
    return place / "whole"


@pytest.fixture
def whole(undisturbed: Path, tiny_npz: Path) -> Path:
    """Return the directory of a run on ``tiny.npz`` that nobody disturbed."""
    return Path(shutil.copytree(undisturbed, tiny_npz.with_name("whole")))


def test_killed_at_many_points_of_every_stage__resumed_run_is_identical(
    shell: Shell, whole: Path
) -> None:
    names = stages(whole)
    kinds = {name.split("/")[:2][-1].split("-")[0] for name in names}
    assert kinds == {"fold", "transition", "correct", "revise"}
    # Stages that compute records, in their places between those that train.
    records = {
        "warm_up/fold-3": ["posterior", "round-1/collect"],
        "round-1/correct": ["round-2/belief", "round-2/collect"],
    }
    points: list[tuple[str, int, str]] = [("config.json", 1, "before"), ("config.json", 1, "after")]
    for stage in names:
        # Inside an epoch, while a save is written, before and after the stage is marked done.
        points += [
            (f"{stage}.partial.safetensors", 2, "after"),
            (f"{stage}.partial.safetensors", 4, "before"),
            (f"{stage}.safetensors", 1, "before"),
        ]
        if stage == names[-1]:
            points.append((f"{stage}.safetensors", 1, "after"))
        for record in records.get(stage, []):
            points += [(f"{record}.safetensors", 1, moment) for moment in ("before", "after")]
    for file in ("posteriors.safetensors", "model.safetensors", "metadata.json"):
        points.append((file, 1, "before"))
    points.append(("metadata.json", 1, "after"))

    for name, count, moment in points:
        kill = (name.replace("/", "."), count, moment)
        ended = shell.start(*FIT, "--out", "run", "--resume", "--quiet", kill=kill).wait()
        assert ended.code == -signal.SIGKILL, f"{kill} was not reached: {ended.stderr}"
    ended = shell.succeed(*FIT, "--out", "run", "--resume")
    assert "nothing to do" in ended.stdout
    assert_same(shell.cwd / "run", whole)
    assert {path.name for path in (shell.cwd / "run").iterdir()} == {
        path.name for path in whole.iterdir()
    }


def test_killed_from_outside__resumed_run_is_identical(shell: Shell, whole: Path) -> None:
    command = [sys.executable, "-m", "bltm", *FIT, "--out", "run", "--quiet"]
    process = subprocess.Popen(command, cwd=shell.cwd, env=ENVIRONMENT, text=True)
    wait_for(shell.cwd / "run/checkpoint/round-1.correct.partial.safetensors", process)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert "not finished" in shell.fail(*FIT, "--out", "run")
    assert "not finished" in shell.fail("predict", "run", "tiny.npz", "--out", "p.csv")
    shell.succeed(*FIT, "--out", "run", "--resume")
    assert_same(shell.cwd / "run", whole)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop__saves_says_how_to_resume_and_ends_with_130(
    shell: Shell, whole: Path, number: signal.Signals
) -> None:
    running = shell.start(*FIT, "--out", "run")
    wait_for(shell.cwd / "run/checkpoint/warm_up.fold-2.partial.safetensors", running)
    os.kill(running.pid, number)
    ended = running.wait()
    assert ended.code == 130
    assert "--resume" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (shell.cwd / "run/metadata.json").exists()
    ended = shell.succeed(*FIT, "--out", "run", "--resume")
    assert "Resuming 'run'" in ended.stderr
    assert_same(shell.cwd / "run", whole)


def test_second_process__is_refused_while_the_first_writes(shell: Shell, tiny_npz: Path) -> None:
    long = ("fit", tiny_npz.name, "--epochs", "2000", "--device", "cpu", "--out", "run")
    running = shell.start(*long, "--checkpoint-every", "0")
    wait_for(shell.cwd / "run/checkpoint/warm_up.fold-1.partial.safetensors", running)
    for option in ("--resume", "--overwrite"):
        assert "another process is writing" in shell.fail(*long, option)
    os.kill(running.pid, signal.SIGINT)
    assert running.wait().code == 130


def test_existing_output__needs_resume_or_overwrite(shell: Shell, whole: Path) -> None:
    before = (whole / "model.safetensors").read_bytes()
    assert "finished run" in shell.fail(*FIT, "--out", "whole")
    assert "nothing to do" in shell.succeed(*FIT, "--out", "whole", "--resume").stdout
    message = shell.fail(*FIT, "--out", "whole", "--resume", "--seed", "9")
    assert "seed: 0, now 9" in message
    assert (whole / "model.safetensors").read_bytes() == before
    (whole / "notes.txt").write_text("mine")
    shell.succeed(*FIT, "--out", "whole", "--overwrite", "--seed", "9")
    assert (whole / "model.safetensors").read_bytes() != before
    assert (whole / "notes.txt").read_text() == "mine"


def test_changed_data__is_not_resumed(shell: Shell, whole: Path) -> None:
    shutil.copy(shell.cwd / "tiny.npz", shell.cwd / "elsewhere.npz")
    moved = ["elsewhere.npz" if arg == "tiny.npz" else arg for arg in FIT]
    assert "nothing to do" in shell.succeed(*moved, "--out", "whole", "--resume").stdout
    shell.succeed("noise", "tiny.npz", "--rate", "0.5", "--out", "elsewhere.npz", "--overwrite")
    assert "the data has changed" in shell.fail(*moved, "--out", "whole", "--resume")


def test_directory_of_the_user__is_never_touched(shell: Shell, tiny_npz: Path) -> None:
    mine = shell.cwd / "mine"
    mine.mkdir()
    (mine / "config.json").write_text('{"model_type": "of another program"}')
    for option in ((), ("--resume",), ("--overwrite",)):
        assert "not a run of bltm" in shell.fail(*FIT, "--out", "mine", *option)
    assert [path.name for path in mine.iterdir()] == ["config.json"]
    (shell.cwd / "file").write_text("x")
    assert "not a run of bltm" in shell.fail(*FIT, "--out", "file", "--overwrite")
    (shell.cwd / "empty").mkdir()
    assert "empty directory" in shell.fail(*FIT, "--out", "empty")
    shell.succeed(*FIT, "--out", "empty", "--overwrite")
