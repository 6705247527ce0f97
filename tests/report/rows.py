"""Result rows that nothing was trained for: plausible, complete and the same in every run."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bltm.benchmark.spec import Cell, RunSpec
from bltm.report.names import METHODS

Row = dict[str, Any]

ALL = ("clean", *METHODS)
RATES = (0.1, 0.2, 0.3, 0.4, 0.5)
SEEDS = (0, 1, 2)
CLASSES = 4
WITH_T = ("forward", "reweight", "t-revision", "ptd", "ptd-v", "bltm", "bltm-v")
COLLECTING = ("bltm", "bltm-v", "collection", "collected-only", "relabelled")
STAGES = ("round-1/transition", "round-1/correct", "revise")
# How much of the harm of noise a method leaves; the floor leaves all of it.
_HARM = {"clean": 0.0, "cross-entropy": 1.0, "bltm": 0.25, "bltm-v": 0.2, "joint": 1.4}


def make_row(
    method: str = "bltm-v",
    rate: float | None = 0.3,
    seed: int = 0,
    *,
    data: str = "fashion-mnist",
    images: int | None = 10_000,
    noise: str = "instance",
    parameters: Row | None = None,
    accuracy: float | None = None,
    watch: bool = False,
    **figures: Any,
) -> Row:
    """Return one row; ``figures`` replace those that are made up."""
    chosen = {"net": "compact"} if parameters is None else parameters
    spec = RunSpec(Cell(data, images, noise, rate, seed), method, chosen, watch)
    rng = np.random.default_rng(list(f"{method}{rate}{seed}{data}".encode()))
    position = ALL.index(method) / len(ALL) if method in ALL else 0.3
    level = rate or 0.38
    if accuracy is None:
        harm = _HARM.get(method, 0.3 + 0.7 * position)
        accuracy = round(0.87 - 0.9 * harm * level**2 + rng.normal(0, 0.004), 4)
    passes = round(21 + 70 * position + rng.uniform(0, 4), 1)
    made = {
        "accuracy": accuracy,
        "accuracy_last": accuracy - 0.002,
        "oracle_best": accuracy + 0.005,
        "oracle_best_epoch": 9,
        "validation_accuracy": accuracy - level,
        "noise_rate": level + 0.01 if method in WITH_T else None,
        "assumed_noise_rate": None,
        **_transition(method, level, rng, watch),
        "collection": _collection(level, rng) if method in COLLECTING else None,
        "average_precision": None if method == "clean" else 0.98 - 0.2 * position,
        "suspicion": "probability" if method in WITH_T else "score",
        "passes": passes,
        "lengths": {"correct": 12},
    }
    return {
        "id": spec.id,
        "status": "done",
        "spec": spec.to_json(),
        "figures": {**made, **figures},
        "cost": {
            "seconds": 2.0 * passes,
            "stages": dict.fromkeys(STAGES, passes / 2),
            "scoring_seconds": 1.2,
            "overhead_seconds": 0.9,
            "peak_memory": 700 * 2**20,
        },
        "noise": {"nominal_rate": rate, "realised_rate": level - 0.003, "sha256": "00"},
        "recipe": {
            "bltm": "0.1.0",
            "python": "3.11.7",
            "versions": {"torch": "2.13.0+cpu", "numpy": "2.4.6"},
            "cpu": "Some CPU",
            "cpus": 2,
            "gpus": [],
            "threads": 1,
            "date": "2026-11-16",
        },
    }


def failed_row(method: str, rate: float | None, seed: int, **options: Any) -> Row:
    row = make_row(method, rate, seed, **options)
    error = {"kind": "TrainingError", "message": "the loss is not finite", "traceback": "..."}
    kept = {name: row[name] for name in ("id", "spec", "recipe")}
    return {**kept, "status": "failed", "error": error}


def make_rows(
    methods: Sequence[str] = ALL,
    rates: Sequence[float | None] = RATES,
    seeds: Sequence[int] = SEEDS,
    **options: Any,
) -> list[Row]:
    return [make_row(m, r, s, **options) for s in seeds for r in rates for m in methods]


def write_rows(path: Path, rows: Iterable[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _transition(method: str, rate: float, rng: np.random.Generator, watch: bool) -> Row:
    others = (1 - np.eye(CLASSES)) * rng.dirichlet(np.ones(CLASSES), CLASSES)
    truth = (1 - rate) * np.eye(CLASSES) + rate * others / others.sum(axis=1, keepdims=True)
    figures: Row = {
        "row_error": None,
        "class_row_error": 1.2 * rate,
        "mean_flip_row_error": 0.5 * rate,
        "true_mean_transition": truth.round(5).tolist(),
        "curve": [{"stage": "fit", "epoch": e, "test_accuracy": 0.7 + e / 100} for e in (1, 2, 3)],
    }
    if method not in WITH_T:
        return figures
    error = {"bltm-v": 1.0, "bltm": 1.1}.get(method, 1.4) * rate
    figures["row_error"] = {"all": error}
    figures["mean_transition"] = (0.9 * truth + 0.1 / CLASSES).round(5).tolist()
    if method in COLLECTING:
        figures["row_error"] |= {"collected": 0.9 * error, "rest": 1.3 * error}
    if watch:
        figures["curve"] = [
            {"stage": stage, "epoch": epoch, "row_error": error * (1 + 1 / (3 * step + epoch))}
            for step, stage in enumerate(STAGES)
            for epoch in (1, 2, 3)
        ]
    return figures


def _collection(rate: float, rng: np.random.Generator) -> Row:
    sweep = []
    for threshold in np.arange(0.5, 1.0, 0.05).round(2).tolist():
        count = int(9000 * (1.2 - rate - threshold / 2)) + int(rng.integers(50))
        sweep.append(
            {"threshold": threshold, "count": count, "right": 1 - rate * (1.1 - threshold) / 3}
        )
    used = sweep[3]
    return {
        "count": used["count"] + 500,
        "of": 9000,
        "right": used["right"] - 0.01,
        "coverage": [2000] * CLASSES,
        "threshold": 0.65,
        "sweep": sweep,
    }
