"""How far the methods that BLTM is compared with get when they are tuned, on development data.

Every method has its default and six more settings: its own parameters and the learning rate. They
are judged by the *right* labels of a development part, which no user has, so the best of the seven
is more than a user could find; BLTM-V takes part with its default alone. Images are training
images of Fashion-MNIST with instance-dependent noise, 10,000 to learn from and 10,000 to judge by.
Rows that are there are not run again, and several processes can take different methods::

    python benchmarks/tuning.py
    python benchmarks/tuning.py --methods gce dmi --rates 0.4
    python benchmarks/tuning.py --table
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from statistics import fmean
from typing import Any

from bltm.core.errors import CollapseWarning, CoverageWarning
from bltm.methods.registry import make_method
from bltm.noise import make_noise
from harness import append_row, read_rows
from held_out import pictures

RESULTS = Path(__file__).parent / "results" / "tuning.jsonl"
RATES, SEED = (0.2, 0.4), 101
Settings = dict[str, Any]
SLOWER, FASTER, SMALLER = {"lr": 7e-4}, {"lr": 6e-3}, {"batch_size": 64}
PACE: list[Settings] = [SLOWER, FASTER]
# The true rate is more than a user of these methods knows; "true" stands for it.
FORGET: list[Settings] = [{"noise_rate": "true"}, {"ramp": 0.25}, {"ramp": 1.0}, {"exponent": 2.0}]
COUNTED: list[Settings] = [{"transition": "counted", **pace} for pace in ({}, SLOWER, FASTER)]
TRIALS: dict[str, list[Settings]] = {
    "cross-entropy": [*PACE, SMALLER, {"batch_size": 256}, {"lr": 2e-2}, {"epochs": 24}],
    "gce": [{"q": 0.3}, {"q": 0.5}, {"q": 0.9}, {"truncated": True}, *PACE],
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
    "dmi": [{"smoothing": 0.0}, {"smoothing": 0.3}, SMALLER, {"batch_size": 512}, *PACE],
    "forward": [*COUNTED, SMALLER, *PACE],
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
    parser.add_argument("--rates", type=float, nargs="+", default=list(RATES))
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the rows")
    parser.add_argument("--table", action="store_true", help="print the table and run nothing")
    options = parser.parse_args()
    if not options.table:
        for rate in options.rates:
            run(rate, options)
    print(table(read_rows(options.results)))


def run(rate: float, options: argparse.Namespace) -> None:
    """Fit the methods with all their settings on one noisy data set, except where rows are."""
    problem = pictures(SEED)
    noise = make_noise(problem.x, problem.y, "instance", rate, SEED)
    for method in options.methods:
        for settings in ({}, *TRIALS[method]):
            trial = {"method": method, "rate": rate, "settings": settings}
            if any(trial.items() <= row.items() for row in read_rows(options.results)):
                continue
            known = {"noise_rate": noise.meta["realised_rate"]} if "noise_rate" in settings else {}
            estimator = make_method(
                method, net="compact", random_state=SEED, **{**settings, **known}
            )
            started = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CoverageWarning)
                warnings.simplefilter("ignore", CollapseWarning)
                estimator.fit(problem.x, noise.y_noisy)
            figures = {
                "accuracy": float(estimator.score(problem.x_test, problem.y_test)),
                "passes": estimator.findings_["passes"],
                "seconds": time.perf_counter() - started,
            }
            append_row(options.results, {**trial, **figures})
            print(f"{method} {settings} at {rate:.0%}: {figures['accuracy']:.1%}", flush=True)


def table(rows: list[dict[str, Any]]) -> str:
    """Return a Markdown table: each method's default, and its best setting over the rates."""
    rates = [rate for rate in RATES if any(row["rate"] == rate for row in rows)]
    heads = [f"{what}, {rate:.0%}" for what in ("default", "tuned") for rate in rates]
    lines = ["| accuracy, % | " + " | ".join([*heads, "tuned to"]) + " |"]
    lines.append("|---|" + "---|" * (len(heads) + 1))
    for method, trials in TRIALS.items():
        found = {words(each): _accuracies(rows, method, each, rates) for each in ({}, *trials)}
        complete = {name: values for name, values in found.items() if len(values) == len(rates)}
        default = words({})
        if rates and default in complete:
            best = max(complete, key=lambda name: fmean(complete[name]))
            # The best of some trials is not the best of all.
            tried = trials and len(complete) == len(found)
            tuned = complete[best] if tried else []
            cells = [f"{100 * value:.1f}" for value in [*complete[default], *tuned]]
            cells += [""] * (len(heads) - len(cells))
            lines.append(f"| {method} | " + " | ".join([*cells, best if tried else ""]) + " |")
    return "\n".join(lines)


def words(settings: Settings) -> str:
    """Return settings in words."""
    return ", ".join(f"{name} {value}" for name, value in settings.items()) or "default"


def _accuracies(
    rows: list[dict[str, Any]], method: str, settings: Settings, rates: list[float]
) -> list[float]:
    wanted = {"method": method, "settings": settings}
    found = {row["rate"]: row["accuracy"] for row in rows if wanted.items() <= row.items()}
    return [found[rate] for rate in rates if rate in found]


if __name__ == "__main__":
    main()
