"""Accuracy of BLTM and BLTM-V between two bounds, on Fashion-MNIST with instance-dependent noise.

Each row of the results is one fit with its recipe. Rows that are there are not run again, so the
script can be stopped and started::

    python benchmarks/accuracy.py --rates 0.2 0.3 0.4 0.5 --seeds 0 1 2
    python benchmarks/accuracy.py --table

Methods see images and noisy labels of the training part only; this script scores them on the test
part from outside. BLTM and BLTM-V of one seed share their stages up to the revision.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bltm.data.source import Source
from bltm.engine.store import DirectoryStore
from bltm.engine.workbench import Workbench
from bltm.methods.registry import make_method
from bltm.noise import NoisyLabels
from harness import append_row, instance_noise, mean_and_spread, read_rows

RESULTS = Path(__file__).parent / "results" / "accuracy.jsonl"
TITLES = {
    "clean": "cross-entropy on the right labels (ceiling)",
    "noisy": "cross-entropy on the noisy labels (floor)",
    "bltm": "BLTM",
    "bltm-v": "BLTM-V",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rates", type=float, nargs="+", default=[0.3, 0.5])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--images", type=int, default=10_000, help="number of training images")
    parser.add_argument("--table", action="store_true", help="print the table and run nothing")
    arguments = parser.parse_args()
    if not arguments.table:
        for rate in arguments.rates:
            for seed in arguments.seeds:
                run(rate, seed, arguments.images)
    print(table(read(), arguments.images))


def run(rate: float, seed: int, images: int) -> None:
    """Fit all methods on one noisy data set, except those whose rows are there."""
    done = {(r["method"], r["rate"], r["seed"], r["images"]) for r in read()}
    missing = [name for name in TITLES if (name, rate, seed, images) not in done]
    if not missing:
        return
    train, test, noise = instance_noise(rate, seed, images)
    with tempfile.TemporaryDirectory() as stages:
        for name in missing:
            row = {"method": name, "rate": rate, "seed": seed, "images": images}
            row |= fit_and_score(name, train, test, noise, seed, Path(stages))
            append_row(RESULTS, {**row, "realised_rate": noise.meta["realised_rate"]})
            print(f"{name} at {rate:.0%}, seed {seed}: {100 * row['accuracy']:.2f} %", flush=True)


def fit_and_score(
    name: str, train: Source, test: Source, noise: NoisyLabels, seed: int, stages: Path
) -> dict[str, Any]:
    """Fit one method and return its figures."""
    bound = name in ("clean", "noisy")
    estimator = make_method("cross-entropy" if bound else name, random_state=seed)
    store = None if bound else DirectoryStore(stages, stages / "history.jsonl")
    workbench = Workbench if store is None else partial(Workbench, store=store)
    labels = train.labels if name == "clean" else noise.y_noisy
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        estimator.fit_source(replace(train, labels=labels), workbench)
    figures = {
        "seconds": time.perf_counter() - started,
        "passes": estimator.findings_["passes"],
        "lengths": estimator.findings_["lengths"],
        "accuracy": float((estimator.predict(test) == test.labels).mean()),
    }
    if estimator.transition_ is not None:
        used = np.asarray(estimator.predict_transition(train, rows=train.labels))
        figures |= {
            "noise_rate_estimate": estimator.findings_["noise_rate"],
            "row_error": float(np.abs(used - noise.row).sum(axis=1).mean()),
            "collected": estimator.findings_["collected"],
        }
    return figures


def read() -> list[dict[str, Any]]:
    """Return the rows that are there."""
    return read_rows(RESULTS)


def table(rows: list[dict[str, Any]], images: int) -> str:
    """Return mean and spread over seeds for each method and rate, as Markdown."""
    rows = [row for row in rows if row["images"] == images]
    seeds = {
        (name, rate): {r["seed"] for r in rows if (r["method"], r["rate"]) == (name, rate)}
        for name in TITLES
        for rate in {row["rate"] for row in rows}
    }
    # A rate is shown when all methods have been fitted on the same noisy data sets.
    rates = sorted(
        rate
        for rate in {row["rate"] for row in rows}
        if len({frozenset(seeds[name, rate]) for name in TITLES}) == 1
    )
    lines = [
        "| test accuracy, % | " + " | ".join(f"noise {rate:.0%}" for rate in rates) + " |",
        "|---|" + "---|" * len(rates),
    ]
    means: dict[tuple[str, float], float] = {}
    for name, title in TITLES.items():
        cells = []
        for rate in rates:
            values = [r["accuracy"] for r in rows if (r["method"], r["rate"]) == (name, rate)]
            means[name, rate] = float(np.mean(values))
            cells.append(mean_and_spread(values))
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    shares = [
        (means["bltm-v", rate] - means["noisy", rate])
        / (means["clean", rate] - means["noisy", rate])
        for rate in rates
    ]
    lines.append(
        "| share of the gap that BLTM-V recovers | "
        + " | ".join(f"{share:.0%}" for share in shares)
        + " |"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
