"""All methods on one noisy data set: accuracy, wrong labels found, passes and time.

Fashion-MNIST with instance-dependent noise, the compact net, one common budget. Each row of the
results is one fit with its recipe. Rows that are there are not run again, so the script can be
stopped and started, and several processes can take different seeds::

    python benchmarks/methods.py --seeds 0 1 2
    python benchmarks/methods.py --table

Methods see images and noisy labels of the training part only; this script scores them from outside:
on the test part, and by the average precision with which a method's suspicion finds the wrong
labels of the training part.
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
from sklearn.metrics import average_precision_score

from bltm.data.source import Source
from bltm.engine.store import DirectoryStore
from bltm.engine.workbench import Workbench
from bltm.methods.registry import METHODS, make_method
from bltm.noise import NoisyLabels
from harness import append_row, instance_noise, mean_and_spread, read_rows

RESULTS = Path(__file__).parent / "results" / "methods.jsonl"
CEILING = "clean"
# These share their stages up to the revision.
SHARED = {"bltm": "bltm", "bltm-v": "bltm", "ptd": "ptd", "ptd-v": "ptd"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--images", type=int, default=10_000, help="number of training images")
    parser.add_argument("--methods", nargs="+", default=[CEILING, *METHODS])
    parser.add_argument("--table", action="store_true", help="print the table and run nothing")
    arguments = parser.parse_args()
    if not arguments.table:
        for seed in arguments.seeds:
            run(arguments.methods, arguments.rate, seed, arguments.images)
    print(table(read_rows(RESULTS), arguments.rate, arguments.images))


def run(methods: list[str], rate: float, seed: int, images: int) -> None:
    """Fit methods on one noisy data set, except those whose rows are there."""
    done = {(r["method"], r["rate"], r["seed"], r["images"]) for r in read_rows(RESULTS)}
    missing = [name for name in methods if (name, rate, seed, images) not in done]
    if not missing:
        return
    train, test, noise = instance_noise(rate, seed, images)
    with tempfile.TemporaryDirectory() as stages:
        for name in missing:
            row = {"method": name, "rate": rate, "seed": seed, "images": images}
            row |= fit_and_score(name, train, test, noise, seed, Path(stages))
            append_row(RESULTS, {**row, "realised_rate": noise.meta["realised_rate"]})
            print(
                f"{name}, seed {seed}: {100 * row['accuracy']:.2f} % in {row['seconds']:.0f} s",
                flush=True,
            )


def fit_and_score(
    name: str, train: Source, test: Source, noise: NoisyLabels, seed: int, stages: Path
) -> dict[str, Any]:
    """Fit one method and return its figures."""
    estimator = make_method("cross-entropy" if name == CEILING else name, random_state=seed)
    workbench: Any = Workbench
    if name in SHARED:
        directory = stages / SHARED[name]
        workbench = partial(Workbench, store=DirectoryStore(directory, directory / "history.jsonl"))
        directory.mkdir(exist_ok=True)
    labels = train.labels if name == CEILING else noise.y_noisy
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        estimator.fit_source(replace(train, labels=labels), workbench)
    seconds = time.perf_counter() - started
    wrong = noise.y_noisy != train.labels
    found = estimator.findings_
    figures = {
        "accuracy": float((estimator.predict(test) == test.labels).mean()),
        "seconds": seconds,
        "passes": found["passes"],
        "lengths": found["lengths"],
        "suspicion": found["suspicion"],
        "noise_rate": found.get("noise_rate"),
        "assumed_noise_rate": found.get("assumed_noise_rate"),
    }
    if name != CEILING:
        figures["average_precision"] = float(
            average_precision_score(wrong, estimator.suspicion_.values)
        )
    if estimator.transition_ is not None:
        used = np.asarray(estimator.predict_transition(train, rows=train.labels))
        figures["row_error"] = float(np.abs(used - noise.row).sum(axis=1).mean())
    return figures


def table(rows: list[dict[str, Any]], rate: float, images: int) -> str:
    """Return mean and spread over seeds for each method, best first, as Markdown."""
    rows = [row for row in rows if (row["rate"], row["images"]) == (rate, images)]
    by_method: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_method.setdefault(row["method"], []).append(row)
    mean = {
        name: float(np.mean([row["accuracy"] for row in found]))
        for name, found in by_method.items()
    }
    floor, ceiling = mean.get("cross-entropy", np.nan), mean.get(CEILING, np.nan)
    lines = [
        "| method | test accuracy, % | gap recovered | wrong labels found (AP) | "
        "error of T's row | passes | seeds |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in sorted(by_method, key=lambda name: -mean[name]):
        found = by_method[name]
        cells = [
            {CEILING: "*cross-entropy on the right labels*"}.get(name, name),
            mean_and_spread([row["accuracy"] for row in found]),
            f"{(mean[name] - floor) / (ceiling - floor):.0%}",
            _mean(found, "average_precision", "{:.3f}"),
            _mean(found, "row_error", "{:.2f}"),
            _mean(found, "passes", "{:.0f}"),
            str(len(found)),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _mean(rows: list[dict[str, Any]], key: str, form: str) -> str:
    values = [row[key] for row in rows if row.get(key) is not None]
    return form.format(np.mean(values)) if values else ""


if __name__ == "__main__":
    main()
