"""What is to be audited, whether it comes as arrays or from a fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.audit.certificate import Collection, Inference
from bltm.audit.findings import NoiseBound
from bltm.audit.inputs import (
    Scanned,
)
from bltm.audit.judge import Unmix
from bltm.audit.noise_bound import bound
from bltm.audit.transitions import (
    ClassTransition,
    Floats,
    Transition,
)
from bltm.audit.unmixing import MORE_STEPS, MULTIPLIED_CLASSES, make_unmix, predicts_given
from bltm.core.blocks import block_rows, blocks
from bltm.core.posterior import right_label_posterior
from bltm.core.tempering import Tempering, find_tempering
from bltm.transition.surest import Counted

Codes = NDArray[np.int32]
Index = NDArray[np.integer[Any]]
# Examples that decide how probabilities are to be read.
READ = 20_000
# Probabilities that settle the noise rate beside a T that is not trusted all the way.
SETTLED_ENTRIES = 2**18


def _none() -> Index:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Case:
    """All that an audit starts from; fields are those of :class:`bltm.audit.Audit`, and these.

    Attributes
    ----------
    probs, unmix
        f, or noisy posteriors and the function that turns them into f.
    transition
        T(x); None where ``suspicion`` tells how doubtful each label is.
    likeliest
        The likeliest class of each row of ``probs``, shape (N,).
    tempering
        How far T(x) is trusted, where it was estimated; None for all the way.
    inference, collection, bound
        Noisy posteriors, what was collected from them, and the estimate of rho_max.
    learned_from
        What T(x) was learned from, where that is a later collection.
    counted
        The flips of each class where f is surest.
    fitted_on, held_out
        Examples for the diagnosis: to fit one T on, and to compare on.
    """

    labels: Codes
    classes: list[Any]
    ids: NDArray[Any]
    id_name: str
    probs: NDArray[np.floating[Any]]
    likeliest: Codes
    transition: Transition | None
    kind: str
    source: str
    counted: Counted
    tempering: Tempering | None = None
    unmix: Unmix | None = None
    suspicion: Floats | None = None
    trusted: NDArray[np.bool_] | None = None
    weights: NDArray[np.float64] | None = None
    inference: Inference | None = None
    collection: Collection | None = None
    learned_from: Collection | None = None
    bound: NoiseBound | None = None
    fitted_on: Index = field(default_factory=_none)
    held_out: Index = field(default_factory=_none)
    validation: Index | None = None
    support: NDArray[np.int64] | None = None

    def held_out_mask(self) -> NDArray[np.bool_] | None:
        """Return the mask of a fit's validation examples, shape (N,)."""
        if self.validation is None:
            return None
        mask = np.zeros(len(self.labels), dtype=bool)
        mask[self.validation] = True
        return mask


def read_probs(
    scanned: Scanned,
    labels: Codes,
    counted: Counted,
    weights: NDArray[np.float64] | None,
    trusted: NDArray[np.bool_] | None,
    candidates: Index,
    in_sample: bool,
) -> dict[str, Any]:
    """Return the parts of a case that has probabilities and no T."""
    step = max(1, len(candidates) // READ)
    noisy = predicts_given(scanned.probs, labels, counted.T, candidates[::step][:READ])
    unmix = make_unmix(counted) if noisy else None
    reading = "read as those of the noisy labels" if noisy else "read as those of the right labels"
    tempering = None
    # Where f is made without the pairs of classes of T, T has to do what f cannot.
    if len(counted.T) <= MULTIPLIED_CLASSES:
        in_question = candidates if trusted is None else candidates[~trusted[candidates]]
        tempering = _tempering(scanned.probs, labels, counted, unmix, weights, in_question)
    power = "" if tempering is None else "^⅓"
    parts: dict[str, Any] = {
        "transition": ClassTransition(counted.T),
        "tempering": tempering,
        "unmix": unmix,
        "kind": "score" if in_sample else "probability",
        "source": (
            f"f·T{power} with probabilities {reading} and one T, counted on the {counted.n:,} "
            f"examples where they are surest{seen_or_not(in_sample)}"
        ),
        "counted": counted,
    }
    if unmix is not None:
        parts["inference"] = Inference(scanned.likeliest, scanned.height, candidates, not in_sample)
        parts["bound"] = bound(scanned.probs, labels, counted, unmix, weights)
    return parts


def _tempering(
    probs: NDArray[np.floating[Any]],
    labels: Codes,
    counted: Counted,
    unmix: Unmix | None,
    weights: NDArray[np.float64] | None,
    in_question: Index,
) -> Tempering:
    """Return how far a counted T is trusted, with the noise rate that f·T finds on a sample."""
    most = max(1, SETTLED_ENTRIES // len(counted.T))
    at = in_question[:: max(1, len(in_question) // most)]
    f = solved = probs[at].astype(np.float32)
    given, everyone = labels[at], np.arange(len(at))
    columns = counted.T.T[given].astype(np.float32)
    if unmix is not None:
        f, solved = unmix(f), make_unmix(counted, MORE_STEPS)(f)
    right, _ = right_label_posterior(solved, columns)
    return find_tempering(
        f,
        np.log(columns),  # a counted T has no zeros
        given,
        np.ones(len(at)) if weights is None else weights[at],
        everyone,
        expected=1.0 - right[everyone, given],
    )


def one_matrix(log_columns: Floats, labels: Codes) -> ClassTransition | None:
    """Return the one T that all columns are of, or None if there are several."""
    n_classes = log_columns.shape[1]
    present, first = np.unique(labels, return_index=True)
    if len(present) < n_classes:
        return None
    table = log_columns[first]
    for block in blocks(len(labels), block_rows(n_classes)):
        if not np.allclose(log_columns[block], table[labels[block]], rtol=1e-4, atol=1e-4):
            return None
    T = np.exp(table.T.astype(np.float64))
    return ClassTransition(T / np.maximum(T.sum(axis=1, keepdims=True), 1e-300))


def name_of(transition: Transition) -> str:
    """Return what T is called in words."""
    return "one T" if isinstance(transition, ClassTransition) else "T(x) of each example"


def seen_or_not(in_sample: bool) -> str:
    """Return how the probabilities came about, in words."""
    return ", in sample: the model had seen the labels" if in_sample else ", out of sample"
