"""What the threshold of the first collection is worth in the end, after all rounds of BLTM-V.

``recipe.py`` tries thresholds in single rounds. Here whole fits with one bound rho_max or another,
which collect above (1 + rho_max) / 2 in the first round, are compared on the development data of
``pace.py``: Fashion-MNIST at 50 %, CIFAR-10 at 40 % and labels as careless people give them. Rows
that are there are not made again::

    python benchmarks/threshold.py
    python benchmarks/threshold.py --table
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

from bltm import BLTMClassifier
from bltm.methods.bltm.presets import RHO_MAX
from harness import append_row, figure_tables, read_rows
from moderation import CARELESS
from pace import FIGURES, judged, open_problem

RESULTS = Path(__file__).parent / "results" / "threshold.jsonl"
RATES = {"fashion-mnist": 0.5, "cifar10": 0.4, CARELESS: 0.4}
BOUNDS = (0.0, RHO_MAX["default"])
SEEDS = (162, 163)


def run(data: str, seed: int, options: argparse.Namespace) -> None:
    """Fit BLTM-V with each bound to one noisy data set, except where rows are."""
    here = {"data": data, "rate": RATES[data], "seed": seed}
    rows = [row for row in read_rows(options.results) if here.items() <= row.items()]
    missing = [bound for bound in BOUNDS if bound not in {row["rho_max"] for row in rows}]
    if not missing:
        return
    given = open_problem(data, RATES[data], seed, options)
    for rho_max in missing:
        started = time.perf_counter()
        model = BLTMClassifier(rho_max=rho_max, random_state=seed, **given.settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.fit(given.x, given.given)
        figures = judged(model, given) | {"seconds": time.perf_counter() - started}
        append_row(options.results, {"rho_max": rho_max, **here, **figures})
        print(f"rho_max {rho_max:g}, {here}: {figures['accuracy']:.1%}", flush=True)


def tables(rows: list[dict[str, Any]]) -> str:
    """Return a Markdown table for each figure, mean and spread over seeds."""
    lines = {f"above {(1 + bound) / 2:g}": {"rho_max": bound} for bound in BOUNDS}
    cells = {f"{data}, {rate:.0%}": {"data": data} for data, rate in RATES.items()}
    return figure_tables(rows, lines, cells, FIGURES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", nargs="+", choices=RATES, default=list(RATES))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the rows")
    parser.add_argument("--table", action="store_true", help="print the tables and run nothing")
    options = parser.parse_args()
    if not options.table:
        for seed in options.seeds:
            for data in options.data:
                run(data, seed, options)
    print(tables(read_rows(options.results)))


if __name__ == "__main__":
    main()
