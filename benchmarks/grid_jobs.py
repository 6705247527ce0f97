"""Runs an hour with several jobs of one thread and with one job of several threads; and overhead.

The same small grid of Fashion-MNIST is run with ``bltm bench`` in turns, in new folders::

    python benchmarks/grid_jobs.py --repeats 3

``outside`` is the share of the workers' time in which nothing was trained or judged: start of
processes, imports, reading data, making noise, writing rows. It is measured from outside, as the
wall-clock time of the command, so a grid of a few short runs has more of it than a long one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import median, parser, report

GRID = """
data = "fashion-mnist"
images = {images}
rates = [0.3]
seeds = {seeds}
bounds = ["cross-entropy"]
methods = ["cross-entropy", "forward"]
parameters = {{ net = "compact" }}
"""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--images", type=int, default=10_000, help="training images")
    options.add_argument("--seeds", type=int, default=4, help="number of seeds, two runs for each")
    options.set_defaults(repeats=3)
    arguments = options.parse_args()
    cores = os.cpu_count() or 1
    sides = {
        f"{cores} jobs, 1 thread": (cores, 1),
        f"1 job, {cores} threads": (1, cores),
    }
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for _ in range(arguments.repeats):
        for name, (jobs, threads) in sides.items():
            grid = GRID.format(images=arguments.images, seeds=list(range(arguments.seeds)))
            measured[name].append(run(grid, jobs, threads))
    rows = [summary(name, found) for name, found in measured.items()]
    first, second = (row["runs an hour"] for row in rows)
    rows.append({"": "ratio", "runs an hour": first / second})
    report("Jobs and threads", rows, arguments.json)


def run(grid: str, jobs: int, threads: int) -> dict[str, float]:
    """Run the grid in a new folder and return its figures."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "grid.toml"
        path.write_text(grid, encoding="utf-8")
        command = [sys.executable, "-m", "bltm", "bench", str(path), "--out", f"{folder}/out"]
        command += ["--jobs", str(jobs), "--threads", str(threads), "--quiet"]
        # What is set outside must not decide for both sides.
        environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        wall = time.perf_counter() - started
        lines = (Path(folder) / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    costs = [json.loads(line)["cost"] for line in lines]
    busy = sum(cost["seconds"] + cost["scoring_seconds"] for cost in costs)
    inside = sum(cost["overhead_seconds"] for cost in costs)
    return {
        "runs": len(costs),
        "wall": wall,
        "outside": 1.0 - busy / (jobs * wall),
        "inside": inside / busy,
    }


def summary(name: str, found: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Return the medians of one side."""
    wall = median([figures["wall"] for figures in found])
    return {
        "": name,
        "runs an hour": 3600.0 * found[0]["runs"] / wall,
        "seconds": wall,
        "outside": median([figures["outside"] for figures in found]),
        "between fit and scoring": median([figures["inside"] for figures in found]),
    }


if __name__ == "__main__":
    main()
