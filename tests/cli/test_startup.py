"""Help answers at once; the command line is a real program."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from .processes import ENVIRONMENT

HEAVY = ("torch", "numpy", "pandas", "sklearn", "scipy", "lightning_fabric")


@pytest.mark.parametrize("args", [["--help"], ["fit", "--help"], ["--version"]])
def test_help__imports_nothing_heavy(args: list[str]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "bltm", *args]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not imported & set(HEAVY)
    assert done.stdout


def test_help__answers_within_a_second() -> None:
    def seconds() -> float:
        started = time.perf_counter()
        command = [sys.executable, "-m", "bltm", "--help"]
        subprocess.run(command, capture_output=True, env=ENVIRONMENT, check=True)
        return time.perf_counter() - started

    # The best of a few: the machine may be busy with other things.
    assert min(seconds() for _ in range(5)) < 1.0


def test_every_option_of_fit__has_a_help_line() -> None:
    from typer.main import get_command

    from bltm.cli import app

    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert set(commands) == {
        "fit",
        "predict",
        "noise",
        "demo",
        "methods",
        "data",
        "bench",
        "tables",
        "report",
        "audit",
    }
    for command in commands.values():
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{command.name} {parameter.name}"


def test_installed_script__is_the_same_program() -> None:
    script = Path(sys.executable).with_name("bltm")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("bltm ")
