"""What the inferred labels rest on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.audit.findings import Certificate, NoiseBound, SweepStep
from bltm.audit.transitions import Codes, Floats

SWEEP = tuple(round(0.1 * step, 1) for step in range(10))


@dataclass(frozen=True, eq=False)
class Inference:
    """Labels that noisy posteriors suggest, before any threshold.

    ``likeliest`` and ``height`` are the largest noisy posterior and its class, shape (N,);
    ``candidates`` the examples that can be collected; ``out_of_sample`` says whether the
    posteriors come from models that had not seen the labels.
    """

    likeliest: Codes
    height: Floats
    candidates: NDArray[np.integer[Any]]
    out_of_sample: bool


@dataclass(frozen=True, eq=False)
class Collection:
    """Examples with inferred labels: positions and labels, shape (M,), and how they came about."""

    positions: NDArray[np.integer[Any]]
    inferred: Codes
    threshold: float
    collector: str
    assumed: str


def collect_above(inference: Inference, rho_max: float) -> Collection:
    """Collect by the paper's rule, with a bound that was estimated."""
    threshold = (1.0 + rho_max) / 2.0
    at = inference.candidates[inference.height[inference.candidates] > threshold]
    return Collection(at, inference.likeliest[at], threshold, "threshold", "estimate")


def certify(
    collection: Collection,
    inference: Inference,
    labels: Codes,
    p_inferred: Floats | None,
    bound: NoiseBound | None,
    classes: list[Any],
) -> Certificate:
    """Return threshold, coverage, sweep and condition of a collection.

    Parameters
    ----------
    collection
        What was collected.
    inference
        The posteriors it was collected by.
    labels
        Given labels as codes, shape (N,).
    p_inferred
        Probability that the likeliest class is right, shape (N,).
    bound
        The estimate of rho_max.
    classes
        The C classes.
    """
    coverage = np.bincount(collection.inferred, minlength=len(classes))
    rho_max = 2.0 * collection.threshold - 1.0
    return Certificate(
        collector=collection.collector,
        threshold=collection.threshold,
        rho_max=rho_max,
        assumed=collection.assumed,
        out_of_sample=inference.out_of_sample,
        collected=len(collection.positions),
        coverage=tuple(coverage.tolist()),
        zero_coverage=tuple(classes[i] for i in np.flatnonzero(coverage == 0).tolist()),
        bound=bound,
        sweep=_swept(inference, labels, p_inferred, len(classes)),
        condition=_condition(collection, rho_max, bound, inference.out_of_sample),
    )


def _swept(
    inference: Inference, labels: Codes, p_inferred: Floats | None, n_classes: int
) -> tuple[SweepStep, ...]:
    """Return what is collected for each rho, by sums over the steps between them."""
    at, thresholds = inference.candidates, [(1.0 + rho) / 2.0 for rho in SWEEP]
    height, passed = inference.height[at], np.zeros(len(inference.candidates), dtype=np.int64)
    for threshold in thresholds:
        passed += height > threshold
    found, steps = inference.likeliest[at], len(SWEEP) + 1
    flat = passed * n_classes + found
    above = np.cumsum(np.bincount(flat, minlength=steps * n_classes).reshape(steps, -1)[::-1], 0)
    collected = above[::-1][1:]
    agree = np.cumsum(np.bincount(passed, found == labels[at], steps)[::-1])[::-1][1:]
    pure = None
    if p_inferred is not None:
        pure = np.cumsum(np.bincount(passed, p_inferred[at], steps)[::-1])[::-1][1:]
    counts = collected.sum(axis=1)
    return tuple(
        SweepStep(
            rho=rho,
            threshold=thresholds[k],
            collected=int(counts[k]),
            share=float(counts[k] / max(1, len(at))),
            agreement=float(agree[k] / counts[k]) if counts[k] else None,
            purity=float(pure[k] / counts[k]) if pure is not None and counts[k] else None,
            classes_without=int((collected[k] == 0).sum()),
        )
        for k, rho in enumerate(SWEEP)
    )


def _condition(
    collection: Collection, rho_max: float, bound: NoiseBound | None, out_of_sample: bool
) -> str:
    text = (
        f"The inferred labels are Bayes-optimal if two things hold: the noisy posterior is "
        f"calibrated, and no wrong class is given with a probability above rho_max = {rho_max:.2f} "
        f"on any example (threshold {collection.threshold:.2f}). Neither can be proved from noisy "
        "labels."
    )
    if not out_of_sample:
        text += (
            " The posteriors come from a model that had seen the labels, and such are as a rule "
            "too sure of them: do not take the first for granted."
        )
    if collection.collector == "covering":
        text += " Examples added below the threshold to cover a class have no such backing."
    if bound is None:
        return text
    said = (
        f" From the data, rho_max is about {bound.value:.2f} ({bound.low:.2f} to {bound.high:.2f})"
    )
    if collection.assumed == "estimate":
        return f"{text}{said}, and the second condition holds as far as this estimate does."
    if rho_max + 1e-9 < bound.low:
        return f"{text}{said}: the second condition seems to be violated."
    if rho_max + 1e-9 < bound.high:
        return f"{text}{said}: the second condition is in doubt."
    return f"{text}{said}, which does not speak against the second."
