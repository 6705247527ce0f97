"""How much of BLTM-V's lead is its four networks: rivals that may have several, too.

BLTM-V answers with four networks, most methods with one. Here each method trains as many from
random starts as fit into the passes that every method may take, and they answer by the mean of
their logits. Development images of the training files, 10,000 to learn from and 10,000 to judge by,
instance-dependent noise; labels as careless people give them are those of ``raters.py``, there with
mirrored images, and all answer for both views of an image. Rows that are there are not run again::

    python benchmarks/networks.py
    python benchmarks/networks.py --data cifar10 --rates 0.4 --methods cross-entropy bltm-v
    python benchmarks/networks.py --table
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bltm.data.source import Source, as_source
from bltm.engine.protocol import BUDGET
from bltm.methods.registry import make_method
from bltm.nets.ensemble import Ensemble, together
from bltm.noise import make_noise
from harness import append_row, mean_and_spread, read_rows
from held_out import pictures
from raters import rate_images

RESULTS = Path(__file__).parent / "results" / "networks.jsonl"
RATERS = "raters"
RATES: dict[str, tuple[float, ...]] = {
    "fashion-mnist": (0.2, 0.4),
    "cifar10": (0.2, 0.4),
    RATERS: (0.4,),
}
# Those of careless people had a part in letting the first round's classifier answer.
SEEDS = {"fashion-mnist": (111, 112), "cifar10": (111, 112), RATERS: (204, 205)}
METHODS = ("cross-entropy", "gce", "dmi", "forward", "t-revision", "coteaching", "bltm-v")
IMAGES = 10_000
# Seeds of further starts are this far apart.
STEP = 1_000


class Problem(NamedTuple):
    """Noisy images to learn from, and others to judge by."""

    noisy: Source
    held_out: Source
    augment: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", nargs="+", choices=RATES, default=list(RATES))
    parser.add_argument("--rates", type=float, nargs="+", help="only these")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the rows")
    parser.add_argument("--table", action="store_true", help="print the table and run nothing")
    options = parser.parse_args()
    if not options.table:
        for data in options.data:
            for rate in RATES[data]:
                if options.rates is None or rate in options.rates:
                    for seed in SEEDS[data]:
                        run(data, rate, seed, options)
    print(table(read_rows(options.results)))


def run(data: str, rate: float, seed: int, options: argparse.Namespace) -> None:
    """Fit the methods to one noisy data set, except those whose rows are there."""
    here = {"data": data, "rate": rate, "seed": seed}
    done = {row["method"] for row in read_rows(options.results) if here.items() <= row.items()}
    missing = [method for method in options.methods if method not in done]
    if not missing:
        return
    given = problem(data, rate, seed)
    for method in missing:
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            figures = several(method, given, seed)
        figures["seconds"] = time.perf_counter() - started
        append_row(options.results, {"method": method, **here, **figures})
        print(method, here, figures, flush=True)


def problem(data: str, rate: float, seed: int) -> Problem:
    """Return one noisy data set."""
    if data == RATERS:
        rated = rate_images(seed, IMAGES)
        return Problem(rated.noisy, rated.held_out, "flip")
    x, y, x_test, y_test = pictures(seed, data)
    noise = make_noise(x, y, "instance", rate, seed)
    return Problem(as_source(x, noise.y_noisy), as_source(x_test, y_test), "none")


def several(method: str, given: Problem, seed: int) -> dict[str, Any]:
    """Return what a method's networks have by themselves and together, within the passes."""
    networks, passes, lengths = [], 0.0, []
    while True:
        model = make_method(
            method, net="compact", augment=given.augment, random_state=seed + STEP * len(lengths)
        )
        model.fit_source(given.noisy)
        answering = model.classifier_
        networks += answering.networks if isinstance(answering, Ensemble) else [answering]
        passes += model.findings_["passes"]
        lengths.append(model.findings_["lengths"])
        # A fit that is as long as the mean of those before must not go beyond.
        if passes + passes / len(lengths) > BUDGET:
            break
    mirrored = given.augment == "flip"

    def accuracy(chosen: list[Any]) -> float:
        model.classifier_ = together(chosen, mirrored).eval()
        predictions: NDArray[Any] = model.predict(given.held_out)
        return float((predictions == given.held_out.labels).mean())

    return {
        "each": [accuracy([network]) for network in networks],
        "together": accuracy(networks),
        "passes": passes,
        "lengths": lengths,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Return a Markdown table: networks by themselves and together, mean and spread over seeds."""
    there = {(row["data"], row["rate"]) for row in rows}
    cells = [(data, rate) for data in RATES for rate in RATES[data] if (data, rate) in there]
    names = [data if data == RATERS else f"{data}, {rate:.0%}" for data, rate in cells]
    lines = [
        "| accuracy, % | networks | " + " | ".join(names) + " |",
        "|---" * (len(names) + 2) + "|",
    ]
    for method in METHODS:
        own = [row for row in rows if row["method"] == method]
        if not own:
            continue
        counts = sorted({len(row["each"]) for row in own})
        for title, value in (
            ("1", lambda row: float(np.mean(row["each"]))),
            (" or ".join(map(str, counts)), lambda row: row["together"]),
        ):
            shown = [
                [value(row) for row in own if (row["data"], row["rate"]) == cell] for cell in cells
            ]
            texts = [mean_and_spread(found) if found else "" for found in shown]
            lines.append(f"| {method} | {title} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
