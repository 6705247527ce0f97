"""``--devices 2`` on a CPU: two processes, one result."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from safetensors.numpy import load_file

from .processes import ENVIRONMENT, Shell
from .test_resume import wait_for

# Half a batch is summed in another order, by processor; a high rate would enlarge the difference.
FIT = (
    *("fit", "tiny.npz", "--epochs", "3", "--batch-size", "20", "--lr", "5e-4", "--device", "cpu"),
    *("--checkpoint-every", "0"),
)


def launch(shell: Shell, *args: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "bltm", *FIT, *args, "--devices", "2"],
        cwd=shell.cwd,
        env=ENVIRONMENT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_two_processes__stopped_and_resumed__give_the_result_of_one(
    shell: Shell, tiny_npz: Path
) -> None:
    process = launch(shell, "--out", "two")
    wait_for(shell.cwd / "two/checkpoint/warm_up.fold-2.partial.safetensors", process)
    os.kill(process.pid, signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "--resume" in errors
    assert "Traceback" not in errors
    process = launch(shell, "--out", "two", "--resume")
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert output.count("Next: bltm predict two") == 1
    shell.succeed(*FIT, "--out", "one", "--quiet")
    one, two = (load_file(shell.cwd / run / "model.safetensors") for run in ("one", "two"))
    assert one.keys() == two.keys()
    assert max(abs(one[key] - two[key]).max() for key in one) < 1e-5
    config = json.loads((shell.cwd / "two/config.json").read_text())
    assert config["devices"] == 2


def test_bad_input__ends_before_processes_are_launched(shell: Shell, tiny_npz: Path) -> None:
    (shell.cwd / "run").mkdir()
    assert "exists already" in shell.fail(*FIT, "--out", "run", "--devices", "2")
