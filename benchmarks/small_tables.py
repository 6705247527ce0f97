"""Accuracy of BLTM-V on small tables, between cross-entropy on the right and on the noisy labels.

scikit-learn's iris, wine, breast cancer and digits (as rows of 64 numbers) with instance-dependent
noise. Each seed draws another split, other noise and other weights. Each row of the results is one
fit with its recipe. Rows that are there are not run again, so the script can be stopped and
started::

    python benchmarks/small_tables.py
    python benchmarks/small_tables.py --table

Methods see features and noisy labels of seven tenths of the rows; this script scores them on the
right labels of the others from outside.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split

from bltm.core.errors import CollapseWarning, CoverageWarning
from bltm.methods.registry import make_method
from bltm.noise import make_noise
from harness import append_row, mean_and_spread, read_rows

RESULTS = Path(__file__).parent / "results" / "small_tables.jsonl"
TABLES = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
}
TITLES = {
    "clean": "cross-entropy, right labels",
    "noisy": "cross-entropy, noisy labels",
    "bltm-v": "BLTM-V",
}
TEST_SHARE = 0.3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--rates", type=float, nargs="+", default=[0.2, 0.3])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--table", action="store_true", help="print the table and run nothing")
    arguments = parser.parse_args()
    if not arguments.table:
        for name in arguments.tables:
            for rate in arguments.rates:
                for seed in arguments.seeds:
                    run(name, rate, seed)
    print(table(read_rows(RESULTS)))


def run(name: str, rate: float, seed: int) -> None:
    """Fit all methods on one noisy table, except those whose rows are there."""
    done = {(r["method"], r["data"], r["rate"], r["seed"]) for r in read_rows(RESULTS)}
    missing = [method for method in TITLES if (method, name, rate, seed) not in done]
    if not missing:
        return
    x, y = TABLES[name](return_X_y=True)
    x, x_test, y, y_test = train_test_split(
        x, y, test_size=TEST_SHARE, stratify=y, random_state=seed
    )
    noise = make_noise(x, y, "instance", rate, seed)
    for method in missing:
        labels = y if method == "clean" else noise.y_noisy
        estimator = make_method(
            "bltm-v" if method == "bltm-v" else "cross-entropy", random_state=seed
        )
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoverageWarning)
            warnings.simplefilter("ignore", CollapseWarning)
            estimator.fit(x, labels)
        row = {
            "method": method,
            "data": name,
            "rate": rate,
            "seed": seed,
            "rows": len(x),
            "seconds": time.perf_counter() - started,
            "accuracy": float(estimator.score(x_test, y_test)),
            "realised_rate": noise.meta["realised_rate"],
            "lengths": estimator.findings_["lengths"],
        }
        append_row(RESULTS, row)
        print(f"{method}, {name} at {rate:.0%}, seed {seed}: {row['accuracy']:.1%}", flush=True)


def table(rows: list[dict[str, Any]]) -> str:
    """Return mean and spread over seeds for each table and rate, as Markdown."""
    lines = [
        "| test accuracy, % | training rows | noise | " + " | ".join(TITLES.values()) + " |",
        "|---|---|---|" + "---|" * len(TITLES),
    ]
    for name in TABLES:
        for rate in sorted({row["rate"] for row in rows if row["data"] == name}):
            here = [row for row in rows if (row["data"], row["rate"]) == (name, rate)]
            seeds = {m: {row["seed"] for row in here if row["method"] == m} for m in TITLES}
            # Only where all methods have been fitted on the same noisy tables.
            if len(set(map(frozenset, seeds.values()))) > 1:
                continue
            cells = [
                mean_and_spread([row["accuracy"] for row in here if row["method"] == method])
                for method in TITLES
            ]
            first = f"{name} | {here[0]['rows']} | {rate:.0%}"
            lines.append(f"| {first} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
