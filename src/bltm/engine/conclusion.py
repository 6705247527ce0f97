"""What every method says at its end of the classifier and of the training labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bltm.core.records import FitResult, Suspicion
from bltm.engine.job import Job
from bltm.engine.posteriors import network_probs
from bltm.engine.transition_model import Corrected

Probs = NDArray[np.float32]


def conclude(
    job: Job,
    classifier: nn.Module,
    *,
    suspicion: Suspicion | None = None,
    findings: dict[str, Any] | None = None,
    **parts: Any,
) -> FitResult:
    """Return the result of a method that has a classifier and no transition.

    Parameters
    ----------
    job, classifier
        The fit, and what it trained.
    suspicion
        The method's own doubt in the given labels; by default what the classifier leaves to the
        other labels.
    findings
        What the method found, in plain values.
    **parts
        Further fields of :class:`FitResult`.
    """
    probs = network_probs(job, classifier)
    if suspicion is None:
        suspicion = disagreement(probs, job.data.labels)
    return _result(job, classifier, probs, suspicion, findings, **parts)


def conclude_corrected(
    job: Job, corrected: Corrected, *, findings: dict[str, Any] | None = None, **parts: Any
) -> FitResult:
    """Return the result of a method that has a classifier f and a transition T(x).

    The probability that a given label is wrong follows from
    ``P(y = i | x, noisy label) ∝ f_i(x) · T(x)[i, noisy label]``.
    """
    probs = network_probs(job, corrected.classifier)
    joint = torch.from_numpy(probs).log() + corrected.columns
    # Where f and T exclude each other nothing is known, and f alone has to tell.
    joint = torch.where(joint.isfinite().any(dim=1, keepdim=True), joint, torch.from_numpy(probs))
    right: Probs = joint.softmax(dim=1).numpy()[np.arange(len(probs)), job.data.labels]
    suspicion = Suspicion(1.0 - right, "probability", "1 - P(given label | x, given label), f·T")
    return _result(
        job,
        corrected.classifier,
        probs,
        suspicion,
        findings,
        transition=corrected.transition,
        **parts,
    )


def disagreement(probs: Probs, labels: NDArray[np.int64], source: str = "") -> Suspicion:
    """Return ``1 - f(x)[given label]``: a score, for f may have learned the label by heart."""
    given = probs[np.arange(len(labels)), labels]
    return Suspicion(1.0 - given, "score", source or "1 - f(x)[given label], in sample")


def _result(
    job: Job,
    classifier: nn.Module,
    probs: Probs,
    suspicion: Suspicion,
    findings: dict[str, Any] | None,
    **parts: Any,
) -> FitResult:
    used = job.split.all
    values = np.where(job.data.trusted, 0.0, suspicion.values).clip(0.0, 1.0).astype(np.float32)
    found: dict[str, Any] = {"predicted_classes": len(np.unique(probs[used].argmax(axis=1)))}
    if suspicion.kind == "probability":
        found["noise_rate"] = float(np.average(values[used], weights=job.data.weights[used]))
    return FitResult(
        classifier,
        probs,
        Suspicion(values, suspicion.kind, suspicion.source),
        findings={**found, **(findings or {})},
        **parts,
    )
