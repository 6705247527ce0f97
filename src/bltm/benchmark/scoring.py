"""What a fitted method is worth: figures that need right labels, computed from outside."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from bltm.benchmark.cells import Evaluation
from bltm.benchmark.snapshots import Snapshot
from bltm.core.records import FloatArray, IntArray, Split
from bltm.data.source import Source
from bltm.engine.workbench import Outcome
from bltm.methods.base import NoisyLabelClassifier
from bltm.nets.ensemble import Ensemble
from bltm.noise.record import class_average

SWEEP = tuple(round(0.5 + 0.05 * step, 2) for step in range(10))
"""Thresholds at which the quality of a collection is measured."""

MOST_CLASSES = 20
"""Average matrices of more classes than these are left out of a row."""


def score(
    estimator: NoisyLabelClassifier,
    train: Source,
    split: Split,
    judge: Evaluation,
    snapshots: Iterable[Snapshot],
    outcome: Outcome | None,
    final: str,
) -> dict[str, Any]:
    """Return the figures of a fitted method.

    Parameters
    ----------
    estimator
        The method.
    train, split
        What it was fitted to, and which examples it trained on.
    judge
        What only the benchmark knows.
    snapshots
        The method's networks after each epoch that was watched.
    outcome
        What came of the final stage, with the length that was chosen; None if it left nothing.
    final
        The stage that made the classifier.
    """
    found = estimator.findings_
    # The final stage may have been tried with several lengths; only one is the method's.
    watched = (s for s in snapshots if s.stage != final or (outcome and s.length == outcome.epochs))
    curve = _curve(estimator, train, judge, watched)
    tested = [point for point in curve if point["stage"] == final and "test_accuracy" in point]
    best = max(tested, key=lambda point: point["test_accuracy"], default=None)
    last = [
        point["test_accuracy"] for point in tested if outcome and point["epoch"] == outcome.epochs
    ]
    return {
        "accuracy": _accuracy(estimator, judge.test),
        "accuracy_of_each": _accuracy_of_each(estimator, judge.test),
        "accuracy_last": last[0] if last else None,
        "oracle_best": best and best["test_accuracy"],
        "oracle_best_epoch": best and best["epoch"],
        "validation_accuracy": outcome and outcome.metrics.get("val_accuracy"),
        "noise_rate": found.get("noise_rate"),
        "assumed_noise_rate": found.get("assumed_noise_rate"),
        **_transition_figures(estimator, train, judge),
        "collection": _collection(estimator, split, judge),
        "average_precision": _average_precision(estimator, judge),
        "suspicion": found["suspicion"],
        "passes": found["passes"],
        "lengths": found["lengths"],
        "correction": found.get("correction"),
        "redirected": found.get("redirected"),
        "curve": curve,
    }


def collection_quality(
    indices: IntArray, labels: NDArray[Any], clean: NDArray[Any] | None
) -> dict[str, Any]:
    """Return how many examples were collected, and the share of them whose label is right."""
    right = None
    if clean is not None and len(indices):
        right = float((labels == clean[indices]).mean())
    return {"count": len(indices), "right": right}


def _accuracy(estimator: NoisyLabelClassifier, test: Source) -> float:
    return float((estimator.predict(test) == test.labels).mean())


def _accuracy_of_each(estimator: NoisyLabelClassifier, test: Source) -> list[float] | None:
    """Return the accuracy of each network by itself, where several answer together."""
    if not isinstance(estimator.classifier_, Ensemble):
        return None
    alone, found = copy.copy(estimator), []
    for network in estimator.classifier_.networks:
        alone.classifier_ = network
        found.append(_accuracy(alone, test))
    return found


def _curve(
    estimator: NoisyLabelClassifier, train: Source, judge: Evaluation, snapshots: Iterable[Snapshot]
) -> list[dict[str, Any]]:
    """Return test accuracy, and the error of T where it was watched, after each epoch."""
    then = copy.copy(estimator)
    then.classifier_ = copy.deepcopy(estimator.classifier_)
    then.transition_ = copy.deepcopy(estimator.transition_)
    points = []
    for snapshot in snapshots:
        point: dict[str, Any] = {"stage": snapshot.stage, "epoch": snapshot.epoch}
        if snapshot.load_classifier(then.classifier_):
            point["test_accuracy"] = _accuracy(then, judge.test)
        if judge.row is not None and snapshot.load_transition(then.transition_):
            errors = np.abs(_used_rows(then, train, judge) - judge.row).sum(axis=1)
            point["row_error"] = float(errors.mean())
        points.append(point)
    return points


def _transition_figures(
    estimator: NoisyLabelClassifier, train: Source, judge: Evaluation
) -> dict[str, Any]:
    """Return the error of the used row of T(x), beside that of the true class-average matrix."""
    if judge.row is None or judge.clean is None:
        return {"row_error": None, "class_row_error": None}
    codes = np.searchsorted(estimator.classes_, judge.clean)
    average = class_average(judge.row, codes)
    small = len(average) <= MOST_CLASSES
    flip_rate = 1.0 - judge.row[np.arange(len(codes)), codes]
    figures: dict[str, Any] = {
        "row_error": None,
        "class_row_error": float(np.abs(average[codes] - judge.row).sum(axis=1).mean()),
        # Of the true targets with the mean flip rate: flip rates that are drawn independently of
        # the example cannot be learned.
        "mean_flip_row_error": float(2.0 * np.abs(flip_rate - flip_rate.mean()).mean()),
    }
    if small:
        figures["true_mean_transition"] = _rounded(average)
    if estimator.transition_ is None:
        return figures
    used = _used_rows(estimator, train, judge)
    errors = np.abs(used - judge.row).sum(axis=1)
    figures["row_error"] = {"all": float(errors.mean()), **_by_collection(estimator, errors)}
    if small:
        figures["mean_transition"] = _rounded(class_average(used, codes))
    return figures


def _used_rows(estimator: NoisyLabelClassifier, train: Source, judge: Evaluation) -> FloatArray:
    """Return the estimate of the row that each noisy label was drawn from, shape (N, C)."""
    return np.asarray(estimator.predict_transition(train, rows=judge.clean), dtype=np.float64)


def _by_collection(estimator: NoisyLabelClassifier, errors: FloatArray) -> dict[str, float | None]:
    if estimator.collected_ is None:
        return {}
    collected = np.zeros(len(errors), dtype=bool)
    collected[estimator.collected_.indices] = True
    parts = {"collected": errors[collected], "rest": errors[~collected]}
    return {name: float(part.mean()) if len(part) else None for name, part in parts.items()}


def _collection(
    estimator: NoisyLabelClassifier, split: Split, judge: Evaluation
) -> dict[str, Any] | None:
    collected = estimator.collected_
    if collected is None:
        return None
    classes = estimator.classes_
    quality = collection_quality(collected.indices, classes[collected.bayes_labels], judge.clean)
    sweep = []
    if estimator.posterior_ is not None:
        probs = estimator.posterior_.probs[split.train]
        for threshold in SWEEP:
            sure = probs.max(axis=1) > threshold
            labels = classes[probs[sure].argmax(axis=1)]
            found = collection_quality(split.train[sure], labels, judge.clean)
            sweep.append({"threshold": threshold, **found})
    return {
        **quality,
        "of": len(split.train),
        "coverage": collected.coverage.tolist(),
        "threshold": float(collected.threshold),
        "sweep": sweep,
    }


def _average_precision(estimator: NoisyLabelClassifier, judge: Evaluation) -> float | None:
    if judge.wrong is None or not judge.wrong.any():
        return None
    return float(average_precision_score(judge.wrong, estimator.suspicion_.values))


def _rounded(matrix: FloatArray) -> list[list[float]]:
    rounded: list[list[float]] = np.round(matrix, 5).tolist()
    return rounded
