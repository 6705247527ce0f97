"""What held-out noisy labels decide in BLTM-V, on development data.

They choose how long the classifier learns and how far T*(x) departs from one matrix for all x.
Both were settled on data made like these: features of 12,000 training images of CIFAR-10 and of
Fashion-MNIST by a network that learned from 15,000 others, half of the 12,000 to learn from and
half to judge by, with seeds from 100 on. The choice of a length costs passes, and the transition
network learns two epochs less for it; what they are worth is tried on images, 10,000 of the
training files of Fashion-MNIST to learn from and 10,000 to judge by. Rows that are there are not
run again::

    python benchmarks/held_out.py
    python benchmarks/held_out.py --data fashion-mnist-images
    python benchmarks/held_out.py --table
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score

from bltm.core.errors import CollapseWarning, CoverageWarning
from bltm.core.random import stream
from bltm.data.registry import load_dataset
from bltm.methods.bltm.estimator import BLTMClassifier
from bltm.methods.bltm.presets import DEFAULT
from bltm.methods.registry import make_method
from bltm.noise import make_noise
from embed import Problem, embed, halves
from harness import append_row, mean_and_spread, read_rows

RESULTS = Path(__file__).parent / "results" / "held_out.jsonl"
WORK = Path(tempfile.gettempdir()) / "bltm-held-out"
IMAGES = "fashion-mnist-images"
RATES = {"cifar10": (0.2, 0.4), "fashion-mnist": (0.2, 0.4), IMAGES: (0.4,)}
SEEDS = (101, 102, 103)
EMBEDDER_SEED, LEARNED, SHOWN = 2_000, 15_000, 12_000
PICTURES = 10_000
_ONE_LENGTH = replace(DEFAULT.classifier, lengths=())
OTHERS = ("clean labels", "cross-entropy", "T-Revision", "forward, true class matrix")
RECIPES = {
    "neither": replace(DEFAULT, classifier=_ONE_LENGTH, hold_back=False),
    "length chosen": replace(DEFAULT, hold_back=False),
    "T*(x) held back": replace(DEFAULT, classifier=_ONE_LENGTH),
    "both (default)": DEFAULT,
    "T*(x) learns 12 epochs": replace(DEFAULT, transition=_ONE_LENGTH),
}
VARIANTS = (*OTHERS, *RECIPES)
# Variants that are not tried: of images, and of their features.
LEFT_OUT = {
    True: ("cross-entropy", "T-Revision", "T*(x) held back"),
    False: ("T*(x) learns 12 epochs",),
}
FIGURES = {
    "accuracy": "accuracy, %",
    "average_precision": "average precision, %",
    "row_error": "ℓ1 of T*(x), in hundredths",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", nargs="+", choices=RATES, default=list(RATES), help="of these")
    parser.add_argument("--work", type=Path, default=WORK, help="folder of the embeddings")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the rows")
    parser.add_argument("--table", action="store_true", help="print the tables and run nothing")
    options = parser.parse_args()
    if not options.table:
        for data in options.data:
            for rate in RATES[data]:
                for seed in SEEDS:
                    run(data, rate, seed, options)
    print(tables(read_rows(options.results)))


def run(data: str, rate: float, seed: int, options: argparse.Namespace) -> None:
    """Fit all variants on one noisy data set, except those whose rows are there."""
    here = {"data": data, "rate": rate, "seed": seed}
    done = {row["variant"] for row in read_rows(options.results) if here.items() <= row.items()}
    done.update(LEFT_OUT[data == IMAGES])
    missing = [variant for variant in VARIANTS if variant not in done]
    if not missing:
        return
    problem = pictures(seed) if data == IMAGES else features(data, seed, options.work)
    net = "compact" if data == IMAGES else "auto"
    noise = make_noise(problem.x, problem.y, "instance", rate, seed)
    for variant in missing:
        estimator = make(variant, noise.T, net, seed)
        labels = problem.y if variant == "clean labels" else noise.y_noisy
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoverageWarning)
            warnings.simplefilter("ignore", CollapseWarning)
            estimator.fit(problem.x, labels)
        figures: dict[str, Any] = {
            "accuracy": float(estimator.score(problem.x_test, problem.y_test)),
            "lengths": estimator.findings_["lengths"],
            "passes": estimator.findings_["passes"],
            "departure": estimator.findings_.get("departure"),
            "seconds": time.perf_counter() - started,
        }
        if variant != "clean labels":
            wrong = noise.y_noisy != problem.y
            figures["average_precision"] = float(
                average_precision_score(wrong, estimator.suspicion_.values)
            )
        if variant in VARIANTS[2:]:
            rows = estimator.predict_transition(problem.x, rows=problem.y)
            figures["row_error"] = float(np.abs(rows - noise.row).sum(axis=1).mean())
        append_row(options.results, {"variant": variant, **here, **figures})
        print(
            f"{variant}, {data} at {rate:.0%}, seed {seed}: {figures['accuracy']:.1%}", flush=True
        )


def features(data: str, seed: int, work: Path) -> Problem:
    """Return a network's features of development images."""
    path = work / f"{data}.npz"
    if not path.exists():
        images = load_dataset(data).train
        order = stream(EMBEDDER_SEED, "images").permutation(len(images))
        learned, shown = np.split(order[: LEARNED + SHOWN], [LEARNED])
        embed(path, images.take(np.sort(learned)), images.take(np.sort(shown)), EMBEDDER_SEED)
    return halves(path, SHOWN // 2, SHOWN // 2, seed)


def pictures(seed: int, data: str = "fashion-mnist") -> Problem:
    """Return development images."""
    images = load_dataset(data).train
    order = stream(seed, "images").permutation(len(images))[: 2 * PICTURES]
    x, y = np.asarray(images.inputs)[order], np.asarray(images.labels)[order]
    return Problem(x[:PICTURES], y[:PICTURES], x[PICTURES:], y[PICTURES:])


def make(variant: str, true_matrix: Any, net: str, seed: int) -> Any:
    """Return the estimator of a variant."""
    common: dict[str, Any] = {"net": net, "random_state": seed}
    if variant in RECIPES:

        class Variant(BLTMClassifier):
            presets = {"default": RECIPES[variant]}

        return Variant(**common)
    if variant == "T-Revision":
        return make_method("t-revision", **common)
    if variant == "forward, true class matrix":
        return make_method("forward", transition=true_matrix, **common)
    return make_method("cross-entropy", **common)


def tables(rows: list[dict[str, Any]]) -> str:
    """Return a Markdown table for each figure: mean and spread over the seeds."""
    cells = [(data, rate) for data, rates in RATES.items() for rate in rates]
    parts = []
    for figure, title in FIGURES.items():
        names = [f"{data}, {rate:.0%}" for data, rate in cells]
        lines = [f"| {title} | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
        for variant in VARIANTS:
            shown = []
            for data, rate in cells:
                here = {"variant": variant, "data": data, "rate": rate}
                found = [row for row in rows if here.items() <= row.items() and figure in row]
                shown.append(mean_and_spread([row[figure] for row in found]) if found else "")
            if any(shown):
                lines.append(f"| {variant} | " + " | ".join(shown) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


if __name__ == "__main__":
    main()
