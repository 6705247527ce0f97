"""What the benchmarks share: the recipe of a measurement, tables, child processes and data.

Torch is imported where it is used. A child process starts with its parent's peak memory on its
account, so a parent that measures memory has to stay small.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bltm.benchmark.machine import cpu_name
from bltm.core.errors import InputError

if TYPE_CHECKING:
    from bltm.data.source import Source
    from bltm.noise import NoisyLabels

PACKAGES = ("torch", "lightning-fabric", "numpy", "scikit-learn", "pillow")
NOISE_RATE = 0.3
Floats = NDArray[np.floating[Any]]


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return an argument parser with the options that all benchmarks have."""
    result = argparse.ArgumentParser(
        description=(description or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    result.add_argument("--json", type=Path, metavar="PATH", help="write figures and recipe here")
    result.add_argument("--repeats", type=int, default=5, help="how often each side is run")
    return result


def recipe() -> dict[str, Any]:
    """Return what a reader needs to know about how and where something was measured."""
    return {
        "command": " ".join(["python", *sys.argv]),
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "libc": " ".join(platform.libc_ver()),
        "cpu": cpu_name(),
        "cpus": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS", "default"),
        "load_average": [round(value, 2) for value in os.getloadavg()],
    }


def report(title: str, rows: Sequence[Mapping[str, Any]], path: Path | None, **more: Any) -> None:
    """Print rows as a table with the recipe below; write both as JSON if a path is given."""
    print(f"\n{title}")
    print_table(rows)
    how = recipe()
    load = ", ".join(map(str, how["load_average"]))
    print(
        f"{how['cpu']}, {how['cpus']} CPUs, threads: {how['threads']}, load average {load}; "
        f"torch {how['versions']['torch']}, Python {how['python']}, {how['date']}",
        flush=True,
    )
    if path is not None:
        path.write_text(json.dumps({"recipe": how, "rows": list(rows), **more}, indent=2) + "\n")


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows with aligned columns; a row may lack columns that others have."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names, *([_text(row.get(name)) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    for line in cells:
        first, *rest = (cell for cell in zip(line, widths, strict=True))
        print(
            "  ".join([first[0].ljust(first[1]), *(text.rjust(width) for text, width in rest)]),
            flush=True,
        )


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of results, one JSON object a line; none where there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    """Add a row and its recipe to a file of results."""
    path.parent.mkdir(exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**row, "recipe": recipe()}) + "\n")


def mean_and_spread(values: Sequence[float]) -> str:
    """Return mean and standard deviation of shares over seeds, in per cent.

    Examples
    --------
    >>> mean_and_spread([0.81, 0.83]), mean_and_spread([0.81])
    ('82.0 ± 1.4', '81.0')
    """
    mean = f"{100 * statistics.fmean(values):.1f}"
    return f"{mean} ± {100 * statistics.stdev(values):.1f}" if len(values) > 1 else mean


def figure_tables(
    rows: Sequence[Mapping[str, Any]],
    lines: Mapping[str, Mapping[str, Any]],
    cells: Mapping[str, Mapping[str, Any]],
    figures: Mapping[str, str],
) -> str:
    """Return a Markdown table for each figure, mean and spread over the rows of a place.

    Parameters
    ----------
    rows
        The rows.
    lines, cells
        What the rows of a line and of a column have, by the title of that.
    figures
        Titles of the figures, by their names in rows.

    Examples
    --------
    >>> rows = [{"method": "ce", "rate": 0.2, "accuracy": a} for a in (0.81, 0.83)]
    >>> cells = {"20 %": {"rate": 0.2}, "40 %": {"rate": 0.4}}
    >>> print(figure_tables(rows, {"CE": {"method": "ce"}}, cells, {"accuracy": "accuracy, %"}))
    | accuracy, % | 20 % | 40 % |
    |---|---|---|
    | CE | 82.0 ± 1.4 |  |
    """
    parts = []
    for figure, title in figures.items():
        table = ["| " + " | ".join([title, *cells]) + " |", "|---" * (len(cells) + 1) + "|"]
        for name, line in lines.items():
            shown = []
            for cell in cells.values():
                here = {**line, **cell}.items()
                found = [row[figure] for row in rows if here <= row.items() and figure in row]
                shown.append(mean_and_spread(found) if found else "")
            if any(shown):
                table.append("| " + " | ".join([name, *shown]) + " |")
        parts.append("\n".join(table))
    return "\n\n".join(parts)


@dataclass(frozen=True)
class Time:
    """Wall-clock and CPU seconds of a piece of work."""

    wall: float
    cpu: float


def timed(work: Callable[[], Any]) -> Time:
    """Run work and return the time it took in this process and its children."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    work()
    return Time(time.perf_counter() - wall, cpu_seconds() - cpu)


def cpu_seconds() -> float:
    """Return the CPU time of this process and of the children that have ended."""
    return sum(os.times()[:4])


def median(values: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(values)


@dataclass(frozen=True)
class Child:
    """What a child process printed as its last line, and what it used."""

    result: dict[str, Any]
    seconds: float
    cpu_seconds: float
    peak_bytes: int


def run_child(
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
    last_line_is_json: bool = True,
) -> Child:
    """Run Python with arguments; the last line that it prints is a JSON object, if it says so."""
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [sys.executable, *arguments], stdout=output, env={**os.environ, **(environment or {})}
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        lines = output.read().splitlines()
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with exit code {process.returncode}")
    return Child(
        result=json.loads(lines[-1]) if last_line_is_json and lines else {},
        seconds=time.perf_counter() - started,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        peak_bytes=usage.ru_maxrss * 1024,
    )


def noisy_fashion(n: int) -> Source:
    """Return the first ``n`` images of Fashion-MNIST with symmetric label noise."""
    from dataclasses import replace

    from bltm.data.registry import load_dataset
    from bltm.noise import symmetric_noise

    source = load_dataset("fashion-mnist").train.take(range(n))
    return replace(source, labels=symmetric_noise(None, source.labels, NOISE_RATE, seed=0).y_noisy)


def instance_noise(rate: float, seed: int, images: int) -> tuple[Source, Source, NoisyLabels]:
    """Return training images of Fashion-MNIST, all test images, and noisy labels of the former."""
    from bltm.core.random import stream
    from bltm.data.registry import load_dataset
    from bltm.noise import make_noise

    bundle = load_dataset("fashion-mnist")
    assert bundle.test is not None
    chosen = stream(seed, "images").permutation(len(bundle.train))[:images]
    train = bundle.train.take(np.sort(chosen))
    assert train.labels is not None
    return train, bundle.test, make_noise(train.inputs, train.labels, "instance", rate, seed)


def rater_rows(doubt: Floats, right: NDArray[np.int64], rate: float) -> Floats:
    """Return the rows of T(x) of labels like a person's, wrong where examples are hard.

    Parameters
    ----------
    doubt
        The probabilities with which a rater would give each label, shape (N, C).
    right
        Right labels, which these are mixed with so that the rate are wrong, shape (N,).
    rate
        Expected share of wrong labels.
    """
    wrong = 1.0 - float(doubt[np.arange(len(right)), right].mean())
    if wrong < rate:
        raise InputError("rate", f"is {rate:g}, and the rater is wrong in {wrong:.2f} only")
    share = rate / wrong
    return np.asarray((1.0 - share) * np.eye(doubt.shape[1])[right] + share * doubt)


def start_torch() -> None:
    """Do what torch does once in a process, such as imports at the first optimiser step."""
    import torch

    layer = torch.nn.Linear(1, 1)
    for kind in (torch.optim.SGD, torch.optim.Adam):
        optimizer = kind(layer.parameters(), lr=0.1)
        layer(torch.ones(2, 1)).sum().backward()
        optimizer.step()
