"""``bltm bench`` as users start it: whole, killed and started again, and with mistakes."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from bltm.benchmark.rows import read_rows

from .processes import Shell

GRID = """
title = "Digits"
data = "digits"
images = 200
rates = [0.3]
seeds = [0, 1]
methods = ["forward", "bltm", "bltm-v"]
parameters = { net = "mlp", epochs = 3, batch_size = 16 }
"""
# Seconds; a run takes one.
PATIENCE = 300.0


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(GRID)
    return path


def figures(folder: Path) -> dict[str, Any]:
    return {row["id"]: row["figures"] for row in read_rows(folder / "results.jsonl")}


def wait_for_rows(folder: Path, enough: int) -> None:
    """Wait until as many runs are done; a grid that ends before or hangs is a failure."""
    deadline = time.monotonic() + PATIENCE
    while len(read_rows(folder / "results.jsonl")) < enough:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_killed_and_started_again_nothing_is_lost_and_nothing_run_twice(
    grid: Path, tmp_path: Path, shell: Shell
) -> None:
    grid.write_text(GRID.replace("[0, 1]", "[0]"))
    whole = shell.run("bench", "mine.toml", "--out", "whole")
    assert whole.code == 0, whole.stderr
    assert "5 runs are done" in whole.stdout
    assert "BLTM-V" in whole.stdout
    expected = figures(tmp_path / "whole")
    assert len(expected) == 5

    rows = tmp_path / "killed" / "results.jsonl"
    for enough, jobs in ((1, "1"), (3, "2")):
        process = shell.start("bench", "mine.toml", "--out", "killed", "--jobs", jobs, "--quiet")
        wait_for_rows(tmp_path / "killed", enough)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait().code == -signal.SIGKILL
        # As if the power had gone in the middle of a write.
        with rows.open("ab") as file:
            file.write(b'{"id": "cut')
    last = shell.run("bench", "mine.toml", "--out", "killed")
    assert last.code == 0, last.stderr
    assert figures(tmp_path / "killed") == expected
    ids = [json.loads(line)["id"] for line in rows.read_text().splitlines() if line[-1] == "}"]
    assert sorted(ids) == sorted(expected)
    assert not list((tmp_path / "killed" / "work").rglob("*.safetensors"))

    again = shell.run("bench", "mine.toml", "--out", "killed", "--dry-run")
    assert again.code == 0
    assert "0 to do" in again.stdout


def test_a_method_that_the_grid_lacks_is_compared_with_its_bounds(
    grid: Path, tmp_path: Path, shell: Shell
) -> None:
    result = shell.run("bench", "mine.toml", "--method", "gce", "--quiet", "--set", "epochs=1")
    assert result.code == 0, result.stderr
    out = tmp_path / "mine"
    assert {row["spec"]["method"] for row in read_rows(out / "results.jsonl")} == {
        "clean",
        "cross-entropy",
        "gce",
    }
    assert "GCE" in (out / "tables" / "accuracy.md").read_text()
    assert (out / "tables" / "accuracy.tex").exists()
    assert (out / "figures" / "cost.svg").exists()


def test_a_run_that_fails_does_not_stop_the_grid(grid: Path, tmp_path: Path, shell: Shell) -> None:
    grid.write_text(GRID + "method_parameters = { forward = { lr = 1e30 } }\n")
    result = shell.run("bench", "mine.toml")
    assert result.code == 1
    assert "8 runs are done" in result.stdout
    assert "2 failed" in result.stdout
    failed = [r for r in read_rows(tmp_path / "mine" / "results.jsonl") if r["status"] == "failed"]
    assert {row["spec"]["method"] for row in failed} == {"forward"}
    assert "diverged" in failed[0]["error"]["message"]
    assert "Traceback" in failed[0]["error"]["traceback"]
    again = shell.run("bench", "mine.toml", "--dry-run")
    assert "8 done, 2 failed, 0 to do" in again.stdout
    retried = shell.run("bench", "mine.toml", "--dry-run", "--retry-failed")
    assert "8 done, 0 failed, 2 to do" in retried.stdout


def test_a_dry_run_runs_nothing(grid: Path, tmp_path: Path, shell: Shell) -> None:
    result = shell.run("bench", "mine.toml", "--dry-run", "--jobs", "2")
    assert result.code == 0
    assert "10 runs, 0 done, 0 failed, 10 to do" in result.stdout
    assert "bltm-v on digits, instance 30 %, seed 1: about" in result.stdout
    assert "with 2 at a time" in result.stdout
    assert not (tmp_path / "mine").exists()


def test_a_part_of_a_grid_can_be_run(tmp_path: Path, shell: Shell) -> None:
    options = ["--method", "gce", "--dry-run"]
    digits = GRID.replace('data = "digits"\n', "")
    parts = '[[parts]]\ndata = "digits"\n\n[[parts]]\ndata = "cifar100"\n'
    (tmp_path / "parts.toml").write_text(digits + parts)
    result = shell.run("bench", "parts.toml", "--data", "digits", "--seed", "1", *options)
    assert result.code == 0, result.stderr
    assert "3 runs, 0 done" in result.stdout
    assert "cifar100" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.toml"], "there is no file 'none.toml'"),
        (["papers"], "there is no grid 'papers'"),
        ([], "GRID: is missing"),
        (["mine.toml", "--engine", "slurm"], "engine: unknown: 'slurm'"),
        (["mine.toml", "--gpus", "0.5"], "gpus: is the share of a GPU on a Ray cluster"),
        (["mine.toml", "--gpus", "nan"], "gpus"),
        (["mine.toml", "--gpus", "-1"], "'--gpus'"),
        (["mine.toml", "--engine", "ray", "--gpus", "inf"], "gpus: must be 0, a share from"),
        (["mine.toml", "--quick"], "no quick form"),
        (["mine.toml", "--method", "gcce"], "there is no method 'gcce'"),
        (["mine.toml", "--set", "epoch=1"], "'epoch' is no parameter"),
        (["mine.toml", "--data", "toy"], "data: grid 'mine' has no 'toy'. Use some of digits"),
        (["mine.toml", "--rate", "0.35"], "rate: grid 'mine' has no 0.35. Use some of 0.3"),
        (["mine.toml", "--seed", "2"], "seed: grid 'mine' has no 2. Use some of 0, 1"),
    ],
)
def test_mistakes(grid: Path, shell: Shell, arguments: list[str], message: str) -> None:
    result = shell.run("bench", *arguments)
    assert result.code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_the_built_in_grids_are_listed(shell: Shell) -> None:
    assert "paper-fmnist-cpu" in shell.run("bench", "--list").stdout


def test_an_interrupt_says_how_to_go_on(grid: Path, tmp_path: Path, shell: Shell) -> None:
    process = shell.start("bench", "mine.toml", "--quiet")
    wait_for_rows(tmp_path / "mine", 1)
    os.kill(process.pid, signal.SIGINT)
    ended = process.wait()
    assert ended.code == 130
    assert "Repeat the command to go on" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_two_processes_do_not_share_a_folder(grid: Path, tmp_path: Path, shell: Shell) -> None:
    first = shell.start("bench", "mine.toml", "--quiet")
    try:
        wait_for_rows(tmp_path / "mine", 1)
        second = shell.run("bench", "mine.toml")
        assert second.code == 2
        assert "another process is running a grid" in second.stderr
    finally:
        os.kill(first.pid, signal.SIGKILL)
        assert first.wait().code == -signal.SIGKILL
