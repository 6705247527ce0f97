"""What every method says at its end of the classifier and of the training labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bltm.core.records import Collected, FitResult, Posterior, Suspicion
from bltm.core.tempering import find_tempering, judge_given
from bltm.engine.job import Job
from bltm.engine.posteriors import Fit, cross_fitted, network_probs
from bltm.engine.support import nearest_support
from bltm.engine.transition_model import Corrected, Transition

Probs = NDArray[np.float32]
AUDIT = "audit"
"""Name of the stages that judge examples out of sample."""


def conclude(
    job: Job,
    classifier: nn.Module,
    *,
    refit: Fit | None = None,
    suspicion: Suspicion | None = None,
    findings: dict[str, Any] | None = None,
    **parts: Any,
) -> FitResult:
    """Return the result of a method that has a classifier and no transition.

    Parameters
    ----------
    job, classifier
        The fit, and what it trained.
    refit
        Trains such a classifier on a part of the training split, under a name: for judging examples
        by classifiers that have not seen their labels, where the user wants that.
    suspicion
        The method's own doubt in the given labels; by default what the classifier leaves to the
        other labels.
    findings
        What the method found, in plain values.
    **parts
        Further fields of :class:`FitResult`.
    """
    probs = network_probs(job, classifier)
    unseen = out_of_sample(job, refit)
    if suspicion is None:
        suspicion = (
            disagreement(probs, job.data.labels)
            if unseen is None
            else disagreement(unseen, job.data.labels, "1 - f(x)[given label], out of sample")
        )
    return _result(job, classifier, probs, suspicion, findings, out_of_sample=unseen, **parts)


def conclude_corrected(
    job: Job,
    corrected: Corrected,
    *,
    refit: Fit | None = None,
    collected: Collected | None = None,
    findings: dict[str, Any] | None = None,
    **parts: Any,
) -> FitResult:
    """Return the result of a method that has a classifier f and a transition T(x).

    The probability that a given label is wrong follows from
    ``P(y = i | x, noisy label) ∝ f_i(x) · T(x)[i, noisy label]``, with T(x) trusted by a third
    (:mod:`bltm.core.tempering`).
    """
    probs = network_probs(job, corrected.classifier)
    unseen = out_of_sample(job, refit)
    columns = corrected.columns.numpy()
    f, labels = probs if unseen is None else unseen, job.data.labels
    in_question = job.split.all[~job.data.trusted[job.split.all]]
    # A revision is learned with labels that the classifier knows, and takes some noise for right.
    expected = _expected(job, corrected.transition.unrevised, f)
    tempering = find_tempering(f, columns, labels, job.data.weights, in_question, expected=expected)
    p_right, suggested = judge_given(f, columns, labels, tempering)
    where = "in sample" if unseen is None else "out of sample"
    suspicion = Suspicion(
        1.0 - p_right, "probability", f"1 - P(given label | x, given label), f·T^⅓, {where}"
    )
    return _result(
        job,
        corrected.classifier,
        probs,
        suspicion,
        findings,
        transition=corrected.transition,
        columns=columns,
        rows=_rows(job, corrected.transition, suggested),
        expected=expected,
        out_of_sample=unseen,
        support=None
        if collected is None
        else nearest_support(job, corrected.classifier, collected, suggested),
        collected=collected,
        **parts,
    )


def out_of_sample(job: Job, refit: Fit | None) -> Probs | None:
    """Return probabilities by classifiers that have not seen the labels, where they are wanted."""
    if refit is None or job.audit_folds == 0:
        return None

    def judge(rest: Job, name: str) -> Probs:
        return network_probs(rest, refit(rest, name))

    found = job.bench.record(
        AUDIT, Posterior, lambda: cross_fitted(job, AUDIT, job.audit_folds, judge)
    )
    return found.probs


def disagreement(probs: Probs, labels: NDArray[np.int64], source: str = "") -> Suspicion:
    """Return ``1 - f(x)[given label]``: a score, for f may have learned the label by heart."""
    given = probs[np.arange(len(labels)), labels]
    return Suspicion(1.0 - given, "score", source or "1 - f(x)[given label], in sample")


def _rows(job: Job, transition: Transition, labels: NDArray[np.int64]) -> Probs:
    """Return row ``labels[n]`` of T(x_n) for all N examples."""
    wanted = torch.from_numpy(labels)
    rows = job.outputs(transition, lambda x, index: transition.rows(x, wanted[index].to(x.device)))
    return rows.numpy()


def _expected(job: Job, transition: Transition, f: Probs) -> Probs:
    """Return ``Σ_i f_i(x) · (1 - T(x)[i, i])``, P(label is wrong | x), of all N examples."""
    kept = job.outputs(transition, lambda x, _: transition.diagonal(x)).numpy()
    expected: Probs = np.einsum("nc,nc->n", f, 1.0 - kept)
    return expected


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
