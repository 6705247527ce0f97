"""Ranking wrong labels by ready posteriors alone: the counted T beside scores without one.

10,000 images of Fashion-MNIST with instance-dependent, pair and symmetric noise, and with labels
like a person's ("rater"): a model of 2,000 other images gives them with its own doubt, mixed with
the right ones. Posteriors of a logistic regression, a small network and one trained until it is too
sure, on 60 principal components, three folds. No T is known: ``audit(labels, probs)`` counts one.
Beside it stand self-confidence, normalised margin and confidence-weighted entropy of the same
arrays, computed here by their formulas. The figures are average precisions, and the estimated noise
rate against the realised one::

    python benchmarks/audit_posteriors.py
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import softmax
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import cross_val_predict
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

from bltm.audit import audit
from bltm.core.matrix import sample_rows
from bltm.core.random import stream
from bltm.data.registry import load_dataset
from bltm.data.source import Source
from bltm.noise import make_noise
from harness import parser, rater_rows, report

NOISES = ("instance", "pair", "symmetric", "rater")
RATES = (0.1, 0.2, 0.3, 0.4)
MODELS = {
    "logistic": LogisticRegression(max_iter=60, C=0.1),
    "network": MLPClassifier((128,), max_iter=12, batch_size=128, random_state=0),
    "too sure": MLPClassifier((128,), max_iter=40, batch_size=128, random_state=0),
}
# How many images the rater knows, and the share that it would give a wrong label.
RATER_IMAGES, RATER_WRONG = 2_000, 0.5
Floats = NDArray[np.floating[Any]]
Labels = NDArray[np.int64]


def scores(probs: Floats, labels: Labels) -> dict[str, Floats]:
    """Return the scores that need no T; larger is more suspicious."""
    rows = np.arange(len(labels))
    own, others = probs[rows, labels], probs.copy()
    others[rows, labels] = -1.0
    entropy = -(probs * np.log(np.maximum(probs, 1e-12))).sum(axis=1)
    return {
        "self-confidence": -own,
        "margin": others.max(axis=1) - own,
        "entropy": entropy / np.maximum(own, 1e-6),
    }


def pixels_of(source: Source) -> NDArray[np.float32]:
    """Return images as rows."""
    return np.asarray(source.inputs).reshape(len(source), -1).astype(np.float32)


def rater_doubt(files: Source, pixels: Floats, right: Labels) -> Floats:
    """Return the probabilities with which a model of other images gives the labels."""
    others = files.take(range(len(files) - RATER_IMAGES, len(files)))
    model = make_pipeline(PCA(60, random_state=0), LogisticRegression(max_iter=60, C=1e-3))
    model.fit(pixels_of(others) / 255.0, others.labels)
    logits = model.decision_function(pixels / 255.0)

    def doubt(temperature: float) -> Floats:
        return np.asarray(softmax(logits / temperature, axis=1))

    def excess(temperature: float) -> float:
        return 1.0 - doubt(temperature)[np.arange(len(right)), right].mean() - RATER_WRONG

    return doubt(brentq(excess, 0.1, 100.0))


def cells(images: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield one row for each noise, rate and model."""
    files = load_dataset("fashion-mnist").train
    source = files.take(range(images))
    pixels, right = pixels_of(source), np.asarray(source.labels)
    doubt = rater_doubt(files, pixels, right)
    parts = PCA(60, random_state=0).fit_transform(pixels / 255.0)
    parts /= np.sqrt(parts.std(axis=0))
    for noise in NOISES:
        for rate in RATES:
            if noise == "rater":
                rows = rater_rows(doubt, right, rate)
                labels = sample_rows(rows, stream(seed, "rater", str(rate)))
            else:
                labels = make_noise(pixels, right, noise, rate, seed).y_noisy
            wrong = labels != right
            for name, model in MODELS.items():
                probs = cross_val_predict(model, parts, labels, cv=3, method="predict_proba")
                found = audit(labels, probs)
                estimate = found.summary.noise_rate
                yield {
                    "noise": noise,
                    "model": name,
                    "wrong": float(wrong.mean()),
                    "estimate": estimate.value,
                    "covered": bool(estimate.low <= wrong.mean() <= estimate.high),
                    "bltm": float(average_precision_score(wrong, -found.p_right)),
                } | {
                    score: float(average_precision_score(wrong, values))
                    for score, values in scores(probs, labels).items()
                }


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the mean of each noise."""
    columns = ("bltm", "self-confidence", "margin", "entropy")
    result = []
    for noise in NOISES:
        own = [row for row in rows if row["noise"] == noise]
        errors = [abs(row["estimate"] - row["wrong"]) for row in own]
        result.append(
            {"noise": noise}
            | {name: statistics.fmean(row[name] for row in own) for name in columns}
            | {"mean error of rate": statistics.fmean(errors), "largest": max(errors)}
            | {"covered": f"{sum(row['covered'] for row in own)}/{len(own)}"}
        )
    return result


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--images", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rows = list(cells(given.images, given.seed))
    report("Average precision for each data set", rows, given.json)
    report("Means over rates and models", means(rows), None)


if __name__ == "__main__":
    main()
