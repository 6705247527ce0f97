"""What the penalty on those rows of T*(x) is worth of which x says nothing.

BLTM's default recipe against the same one without that penalty, on two clean and well separated
blobs and on Fashion-MNIST with instance-dependent noise. Each row of the results is one fit with
its recipe. Rows that are there are not run again, so the script can be stopped and started::

    python benchmarks/penalty.py
    python benchmarks/penalty.py --table

Methods see examples and noisy labels of the training part only; this script scores them on the
right labels of the test part from outside.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sklearn.datasets import make_blobs

from bltm import BLTMClassifier
from bltm.core.errors import CollapseWarning, CoverageWarning
from bltm.methods.bltm.presets import DEFAULT, PRESETS, RHO_MAX
from harness import append_row, instance_noise, mean_and_spread, read_rows

RESULTS = Path(__file__).parent / "results" / "penalty.jsonl"
SIDES = {"with": DEFAULT.penalty, "without": (DEFAULT.penalty[0], 0.0)}
BLOBS, IMAGES, RATE = 200, 5_000, 0.5


@dataclass(frozen=True)
class Problem:
    """Training examples with noisy labels, test examples with right ones, and the network."""

    x: Any
    noisy: Any
    x_test: Any
    y_test: Any
    net: str


def blobs(seed: int) -> Problem:
    """Return two classes that are ten deviations apart, all labels right."""
    x, y = make_blobs(2 * BLOBS, centers=[[-5.0, 0.0], [5.0, 0.0]], random_state=seed)
    return Problem(x[:BLOBS], y[:BLOBS], x[BLOBS:], y[BLOBS:], "mlp")


def fashion(seed: int) -> Problem:
    """Return images of Fashion-MNIST of which half the labels are to be wrong."""
    train, test, noise = instance_noise(RATE, seed, IMAGES)
    return Problem(train.inputs, noise.y_noisy, test.inputs, test.labels, "compact")


PROBLEMS: dict[str, Callable[[int], Problem]] = {
    f"two clean blobs, {BLOBS} points": blobs,
    f"Fashion-MNIST, {IMAGES:,} images, {RATE:.0%} noise": fashion,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--table", action="store_true", help="print the table and run nothing")
    arguments = parser.parse_args()
    if not arguments.table:
        for name in PROBLEMS:
            for seed in arguments.seeds:
                run(name, seed)
    print(table(read_rows(RESULTS)))


def run(name: str, seed: int) -> None:
    """Fit both sides on one problem, except those whose rows are there."""
    done = {(r["penalty"], r["problem"], r["seed"]) for r in read_rows(RESULTS)}
    missing = [side for side in SIDES if (side, name, seed) not in done]
    if not missing:
        return
    problem = PROBLEMS[name](seed)
    for side in missing:
        PRESETS[side] = replace(DEFAULT, penalty=SIDES[side])
        RHO_MAX[side] = RHO_MAX["default"]
        model = BLTMClassifier(problem.net, preset=side, random_state=seed)
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoverageWarning)
            warnings.simplefilter("ignore", CollapseWarning)
            model.fit(problem.x, problem.noisy)
        row = {
            "penalty": side,
            "weights": SIDES[side],
            "problem": name,
            "seed": seed,
            "seconds": time.perf_counter() - started,
            "accuracy": float((model.predict(problem.x_test) == problem.y_test).mean()),
            "noise_rate_estimate": model.findings_["noise_rate"],
        }
        append_row(RESULTS, row)
        print(f"{name}, {side} penalty, seed {seed}: {row['accuracy']:.1%}", flush=True)


def table(rows: list[dict[str, Any]]) -> str:
    """Return mean and spread over seeds for each problem, as Markdown."""
    lines = [
        "| test accuracy, % | " + " | ".join(f"{side} penalty" for side in SIDES) + " |",
        "|---|" + "---|" * len(SIDES),
    ]
    for name in PROBLEMS:
        here = [row for row in rows if row["problem"] == name]
        seeds = {side: {row["seed"] for row in here if row["penalty"] == side} for side in SIDES}
        # Only where both sides have been fitted on the same data.
        if not here or len(set(map(frozenset, seeds.values()))) > 1:
            continue
        cells = [
            mean_and_spread([row["accuracy"] for row in here if row["penalty"] == side])
            for side in SIDES
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
