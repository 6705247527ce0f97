"""Processes that run bltm, and a small problem for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100", "BLTM_DATA": ""}


@dataclass(frozen=True)
class Ended:
    code: int
    stdout: str
    stderr: str


@dataclass
class Running:
    server: Server
    pid: int
    place: Path

    def wait(self) -> Ended:
        code = self.server.ask({"wait": self.pid})["code"]
        texts = [(self.place / name).read_text(encoding="utf-8") for name in ("stdout", "stderr")]
        return Ended(code, *texts)


class Server:
    def __init__(self, place: Path) -> None:
        self.place, self.count = place, 0
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def start(self, cwd: Path, *args: str, kill: tuple[str, int, str] | None = None) -> Running:
        self.count += 1
        place = self.place / str(self.count)
        place.mkdir()
        request = {
            "args": args,
            "cwd": str(cwd),
            "stdout": str(place / "stdout"),
            "stderr": str(place / "stderr"),
            "kill": kill,
        }
        return Running(self, self.ask(request)["pid"], place)

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


@dataclass(frozen=True)
class Shell:
    """Runs commands in a directory."""

    server: Server
    cwd: Path

    def run(self, *args: str) -> Ended:
        return self.server.start(self.cwd, *args).wait()

    def start(self, *args: str, kill: tuple[str, int, str] | None = None) -> Running:
        return self.server.start(self.cwd, *args, kill=kill)

    def succeed(self, *args: str) -> Ended:
        ended = self.run(*args)
        assert ended.code == 0, ended.stderr
        return ended

    def fail(self, *args: str, code: int = 2) -> str:
        """Return the message of a command that must end with one readable paragraph."""
        ended = self.run(*args)
        assert ended.code == code, ended.stderr
        assert "Traceback" not in ended.stderr
        errors = [x for x in ended.stderr.splitlines() if x and not x.startswith("note: ")]
        assert len(errors) == 1 or errors[0].startswith("Usage: ")
        return errors[-1]


def tiny(n: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three clouds of points, a fifth of the labels wrong."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = np.array([[0.0, 6.0], [6.0, -4.0], [-6.0, -4.0]])[y] + rng.normal(size=(n, 2))
    wrong = rng.random(n) < 0.2
    return X, np.where(wrong, (y + 1) % 3, y)
