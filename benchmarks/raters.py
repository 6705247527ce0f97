"""Labels as careless people give them, and as people gave them: BLTM-V and its audit.

CIFAR-10, training and development images from the training files. Three raters label each image and
a wrong label is taken if there is one, as in the "worse" labels that people gave to these images
(Wei et al. 2022), whose published rates are matched: a single rater is wrong in 17.6 %, and his
labels alone are those of ``--raters 1``. Raters err where a network of other images is in doubt;
half of their wrong labels follow its doubt about the image, half the doubt about images of that
class. Instead of a number of raters a set of CIFAR-10N can be named: labels that people gave. Each
row of the results is one data set. Rows that are there are not made again::

    python benchmarks/raters.py --seeds 201 202 203
    python benchmarks/raters.py --seeds 231 232 --raters 1 --images 10000 --augment flip
    python benchmarks/raters.py --seeds 0 1 --raters worse --augment flip
    python benchmarks/raters.py --table

Methods see images and given labels alone. ``self-confidence``, ``margin`` and ``entropy`` rank by
three-fold probabilities of cross-entropy, and so does ``audit`` there.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.metrics import average_precision_score

from audit_posteriors import scores
from bltm import BLTMClassifier, CrossEntropyClassifier
from bltm.audit import audit
from bltm.core.matrix import sample_rows
from bltm.core.random import stream
from bltm.data.registry import load_dataset
from bltm.data.source import Source
from harness import append_row, mean_and_spread, read_rows, recipe

RESULTS = Path(__file__).parent / "results" / "raters.jsonl"
RATER_WRONG, RATERS = 0.176, 3
RATER_EPOCHS, RATER_TEMPERATURE = 8, 1.5
HELD_OUT, OTHERS, CLASSES, FOLDS = 10_000, 20_000, 10, 3
COLUMNS = {
    "accuracy": "accuracy, %",
    "audit": "audit",
    "f alone": "f alone",
    "self-confidence": "self-confidence",
    "margin": "normalised margin",
    "entropy": "confidence-weighted entropy",
    "rate": "estimated noise, %",
}
METHODS = {"clean": "right labels", "cross-entropy": "cross-entropy", "bltm-v": "BLTM-V"}


class Rated(NamedTuple):
    """Images with the labels that raters gave, the right ones, and images to judge by."""

    noisy: Source
    right: NDArray[np.int64]
    held_out: Source

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Return which labels are wrong."""
        return np.asarray(np.asarray(self.noisy.labels) != self.right)


def rate_images(seed: int, images: int, raters: int = RATERS) -> Rated:
    """Let raters label images of CIFAR-10."""
    files = load_dataset("cifar10").train
    order, held_out = draw(seed, len(files))
    train, others = files.take(np.sort(order[:images])), files.take(order[-OTHERS:])
    right = np.asarray(train.labels)
    rater = CrossEntropyClassifier(net="compact", epochs=RATER_EPOCHS, random_state=seed)
    log_probs = np.log(np.maximum(rater.fit_source(others).predict_proba(train), 1e-12))
    doubt = softmax(log_probs / RATER_TEMPERATURE, axis=1)
    everyone = np.arange(len(right))
    wrong = 1.0 - doubt[everyone, right]
    wrong *= RATER_WRONG / wrong.mean()
    doubt[everyone, right] = 0.0
    doubt /= doubt.sum(axis=1, keepdims=True)
    of_class = np.stack([doubt[right == label].mean(axis=0) for label in range(CLASSES)])
    any_wrong = 1.0 - (1.0 - wrong[:, None]) ** raters
    rows = (1.0 - any_wrong) * np.eye(CLASSES)[right]
    rows += any_wrong * (doubt + of_class[right]) / 2
    labels = sample_rows(rows, stream(seed, "raters", "labels"))
    return Rated(replace(train, labels=labels), right, files.take(held_out))


def take_images(seed: int, images: int, label_set: str) -> Rated:
    """Take images of CIFAR-10 with labels that people gave them."""
    bundle = load_dataset(f"cifar10n-{label_set}")
    noisy, right = bundle.train, bundle.label_sets["clean"]
    order, held_out = draw(seed, len(noisy))
    chosen = np.sort(order[:images])
    return Rated(noisy.take(chosen), right[chosen], replace(noisy, labels=right).take(held_out))


def draw(seed: int, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return images to learn from, in random order, and the last ones, to judge by."""
    shown = stream(seed, "raters", "images").permutation(n - HELD_OUT)
    return shown, np.arange(n - HELD_OUT, n)


def run(seed: int, images: int, augment: str, raters: int | str) -> None:
    """Fit all methods to one data set, except if its row is there."""
    what = {"seed": seed, "images": images, "augment": augment, "raters": raters}
    if any(what.items() <= row.items() for row in read_rows(RESULTS)):
        return
    rated = (
        take_images(seed, images, raters)
        if isinstance(raters, str)
        else rate_images(seed, images, raters)
    )
    started = time.perf_counter()
    settings: dict[str, Any] = {"net": "compact", "augment": augment, "random_state": seed}
    clean = CrossEntropyClassifier(**settings)
    clean.fit_source(replace(rated.noisy, labels=rated.right))
    plain = CrossEntropyClassifier(audit_folds=FOLDS, **settings).fit_source(rated.noisy)
    model = BLTMClassifier(audit_folds=FOLDS, **settings).fit_source(rated.noisy)
    unseen = plain.evidence_.out_of_sample
    row = {
        **what,
        "wrong": float(rated.wrong.mean()),
        "clean": {"accuracy": accuracy(clean, rated)},
        "cross-entropy": judged(plain, rated)
        | {
            name: float(average_precision_score(rated.wrong, values))
            for name, values in scores(unseen, plain.evidence_.labels).items()
        },
        "bltm-v": judged(model, rated),
        "coverage": model.findings_["coverage"],
        "correction": model.findings_["correction"],
        "seconds": time.perf_counter() - started,
        "recipe": recipe(),
    }
    append_row(RESULTS, row)
    print(row, flush=True)


def accuracy(model: Any, rated: Rated) -> float:
    """Return the accuracy on the development images."""
    return float((model.predict(rated.held_out) == rated.held_out.labels).mean())


def judged(model: Any, rated: Rated) -> dict[str, float]:
    """Return accuracy, the estimated noise, and average precisions of a fit."""
    found, labels = audit(model), model.evidence_.labels
    f = model.evidence_.out_of_sample[np.arange(len(labels)), labels]
    return {
        "accuracy": accuracy(model, rated),
        "audit": float(average_precision_score(rated.wrong, -found.p_right)),
        "f alone": float(average_precision_score(rated.wrong, -f)),
        "rate": found.summary.noise_rate.value,
        "disagreement": found.summary.disagreement,
    }


def table(rows: list[dict[str, Any]], images: int, augment: str, raters: int | str = RATERS) -> str:
    """Return means over seeds, as Markdown."""
    here = {"images": images, "augment": augment, "raters": raters}
    rows = [row for row in rows if here.items() <= row.items()]
    lines = ["| | " + " | ".join(COLUMNS.values()) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for method, title in METHODS.items():
        cells = [title]
        for column in COLUMNS:
            values = [row[method][column] for row in rows if column in row[method]]
            percent = column in ("accuracy", "rate")
            mean = mean_and_spread if percent else lambda found: f"{np.mean(found):.3f}"
            cells.append(mean(values) if values else "")
        lines.append("| " + " | ".join(cells) + " |")
    wrong = mean_and_spread([row["wrong"] for row in rows])
    return "\n".join([*lines, "", f"Wrong: {wrong} %. Seeds: {len(rows)}."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[201, 202, 203])
    parser.add_argument("--images", type=int, default=20_000, help="number of training images")
    parser.add_argument("--augment", default="none", help="how images are changed in training")
    parser.add_argument(
        "--raters",
        type=lambda text: int(text) if text.isdigit() else text,
        default=RATERS,
        help="number who label each image, or a set of labels of CIFAR-10N such as worse",
    )
    parser.add_argument("--table", action="store_true", help="print the table and run nothing")
    options = parser.parse_args()
    if not options.table:
        for seed in options.seeds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                run(seed, options.images, options.augment, options.raters)
    print(table(read_rows(RESULTS), options.images, options.augment, options.raters))


if __name__ == "__main__":
    main()
