"""How far the methods that BLTM is compared with get when they are tuned.

Every method has its default and six more settings, its own parameters and the learning rate, and
three of those that come nearest have six more of both at once. They are judged by the *right*
labels of images to develop with, which no user has, so the best is more than a user could find;
BLTM-V takes part with its default alone. Images are training images of Fashion-MNIST with 20 or
40 % instance-dependent noise, or of CIFAR-10, mirrored at random, with the "worse" labels that
people gave them; 10,000 to learn from and 10,000 to judge by.
Rows that are there are not run again, and several processes can take different methods::

    python benchmarks/tuning.py
    python benchmarks/tuning.py --methods gce dmi --data fashion-mnist-40
    python benchmarks/tuning.py --table
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

from bltm.core.errors import CollapseWarning, CoverageWarning
from bltm.data.source import as_source
from bltm.methods.registry import make_method
from bltm.noise import make_noise
from harness import append_row, read_rows
from held_out import PICTURES, pictures
from raters import Rated, accuracy, take_images

RESULTS = Path(__file__).parent / "results" / "tuning.jsonl"
RATES = {"fashion-mnist-20": 0.2, "fashion-mnist-40": 0.4}
PEOPLE = "cifar10n-worse"
DATA, SEED = (*RATES, PEOPLE), 101
Settings = dict[str, Any]
SLOWER, FASTER, FASTEST = {"lr": 7e-4}, {"lr": 6e-3}, {"lr": 1.2e-2}
SMALLER = {"batch_size": 64}
PACE: list[Settings] = [SLOWER, FASTER]
BOTH: list[Settings] = [{**FASTER, **SMALLER}, {**FASTER, "epochs": 24}]
# The true rate is more than a user of these methods knows; "true" stands for it.
FORGET: list[Settings] = [{"noise_rate": "true"}, {"ramp": 0.25}, {"ramp": 1.0}, {"exponent": 2.0}]
COUNTED: list[Settings] = [{"transition": "counted", **pace} for pace in ({}, SLOWER, FASTER)]
TRIALS: dict[str, list[Settings]] = {
    "cross-entropy": [*PACE, SMALLER, {"batch_size": 256}, {"lr": 2e-2}, {"epochs": 24}],
    "gce": [
        {"q": 0.3},
        {"q": 0.5},
        {"q": 0.9},
        {"truncated": True},
        *PACE,
        FASTEST,
        {**FASTER, "q": 0.5},
        {**FASTER, "q": 0.9},
        {**FASTER, "truncated": True},
        *BOTH,
    ],
    "apl": [
        {"alpha": 1.0, "beta": 0.1},
        {"alpha": 0.1, "beta": 1.0},
        {"alpha": 10.0, "beta": 1.0},
        {"alpha": 5.0, "beta": 5.0},
        *PACE,
    ],
    "decoupling": [{"warm_up": 0.1}, {"warm_up": 0.25}, {"warm_up": 0.5}, SMALLER, *PACE],
    "mentornet": [*FORGET, *PACE],
    "coteaching": [*FORGET, *PACE],
    "coteaching-plus": [
        {"noise_rate": "true"},
        {"warm_up": 0.25},
        {"warm_up": 0.75},
        {"ramp": 1.0},
        *PACE,
    ],
    "joint": [
        {"alpha": 1.2, "beta": 0.8},
        {"alpha": 0.1, "beta": 0.05},
        {"begin": 0.2},
        {"begin": 0.7},
        *PACE,
    ],
    "dmi": [
        {"smoothing": 0.0},
        {"smoothing": 0.3},
        SMALLER,
        {"batch_size": 512},
        *PACE,
        FASTEST,
        {**FASTER, "smoothing": 0.0},
        {**FASTER, "smoothing": 0.3},
        {**FASTER, "batch_size": 512},
        *BOTH,
    ],
    "forward": [
        *COUNTED,
        SMALLER,
        *PACE,
        FASTEST,
        {"transition": "counted", **FASTEST},
        {"transition": "counted", "epochs": 24},
        {"transition": "counted", **FASTER, "batch_size": 256},
        *({"transition": "counted", **both} for both in BOTH),
    ],
    "reweight": [*COUNTED, SMALLER, *PACE],
    "t-revision": [
        {"transition": "counted"},
        {"revision_rate": 1.0},
        {"revision_rate": 25.0},
        {"transition": "counted", "revision_rate": 25.0},
        *PACE,
    ],
    "ptd-v": [
        {"n_parts": 5},
        {"n_parts": 20},
        {"revision_rate": 1.0},
        {"revision_rate": 25.0},
        *PACE,
    ],
    "s2e": [{"rounds": 1}, {"rounds": 2}, {"trials": 2}, {"rounds": 2, "trials": 4}, *PACE],
    "dividemix": [
        {"augment": "none"},
        {"lambda_u": 0.0},
        {"lambda_u": 25.0},
        {"threshold": 0.3},
        *PACE,
    ],
    "bltm-v": [],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--methods", nargs="+", choices=TRIALS, default=list(TRIALS))
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the rows")
    parser.add_argument("--table", action="store_true", help="print the tables and run nothing")
    options = parser.parse_args()
    if not options.table:
        for data in options.data:
            run(data, options)
    print(tables(read_rows(options.results)))


def run(data: str, options: argparse.Namespace) -> None:
    """Fit the methods with all their settings to one noisy data set, except where rows are."""
    rated = take_images(SEED, PICTURES, "worse") if data == PEOPLE else corrupted(RATES[data])
    for method in options.methods:
        for settings in ({}, *TRIALS[method]):
            trial = {"method": method, "data": data, "settings": settings}
            if any(trial.items() <= row.items() for row in read_rows(options.results)):
                continue
            known = {"noise_rate": float(rated.wrong.mean())} if "noise_rate" in settings else {}
            # DivideMix changes images as it is.
            mirrored = {"augment": "flip"} if data == PEOPLE and method != "dividemix" else {}
            estimator = make_method(
                method, net="compact", random_state=SEED, **{**mirrored, **settings, **known}
            )
            started = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CoverageWarning)
                warnings.simplefilter("ignore", CollapseWarning)
                estimator.fit_source(rated.noisy)
            figures = {
                "accuracy": accuracy(estimator, rated),
                "passes": estimator.findings_["passes"],
                "seconds": time.perf_counter() - started,
            }
            append_row(options.results, {**trial, **figures})
            print(f"{method} {settings} on {data}: {figures['accuracy']:.1%}", flush=True)


def corrupted(rate: float) -> Rated:
    """Return Fashion-MNIST with instance-dependent noise."""
    x, y, x_test, y_test = pictures(SEED)
    given = make_noise(x, y, "instance", rate, SEED).y_noisy
    return Rated(as_source(x, given), y, as_source(x_test, y_test))


def tables(rows: list[dict[str, Any]]) -> str:
    """Return a Markdown table for each data set that has rows."""
    there = {row["data"] for row in rows}
    return "\n\n".join(table(rows, data) for data in DATA if data in there)


def table(rows: list[dict[str, Any]], data: str) -> str:
    """Return a Markdown table of one data set: each method's default, and its best setting."""
    lines = [f"| {data} | default | tuned | tuned to |", "|---" * 4 + "|"]
    for method, trials in TRIALS.items():
        here = {"method": method, "data": data}
        found = {
            words(row["settings"]): row["accuracy"] for row in rows if here.items() <= row.items()
        }
        cells = [""] * 3
        if words({}) in found:
            cells[0] = f"{100 * found[words({})]:.1f}"
            # The best of some trials is not the best of all.
            if trials and all(words(trial) in found for trial in trials):
                best = max(found, key=lambda name: found[name])
                cells[1:] = [f"{100 * found[best]:.1f}", best]
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def words(settings: Settings) -> str:
    """Return settings in words."""
    return ", ".join(f"{name} {value}" for name, value in settings.items()) or "default"


if __name__ == "__main__":
    main()
