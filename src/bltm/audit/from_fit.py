"""The audit of what a fit left behind."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.audit.cases import Case, name_of, one_matrix, read_probs, seen_or_not
from bltm.audit.certificate import Collection, Inference
from bltm.audit.inputs import (
    check_ids,
    scan,
)
from bltm.audit.noise_bound import bound
from bltm.audit.transitions import Floats, KnownParts
from bltm.audit.unmixing import make_unmix
from bltm.core.errors import InputError
from bltm.core.evidence import Evidence
from bltm.core.records import Collected
from bltm.core.tempering import Tempering, find_tempering, judge_given
from bltm.transition.surest import surest_transition

Codes = NDArray[np.int32]
# Held-out examples that make a count of their own.
FEWEST = 100


def case_of_evidence(evidence: Evidence, in_sample: bool | None) -> Case:
    """Return the case of a fit."""
    if in_sample is False and evidence.out_of_sample is None:
        raise InputError(
            "in_sample",
            "is False, and this fit has no out-of-sample probabilities",
            "Fit with audit folds, or leave in_sample out.",
        )
    seen = bool(in_sample) or evidence.out_of_sample is None
    f = evidence.probs if seen or evidence.out_of_sample is None else evidence.out_of_sample
    codes = evidence.labels.astype(np.int32)
    validation = evidence.split.validation
    weights = np.zeros(len(codes))
    weights[evidence.split.all] = evidence.weights[evidence.split.all]
    scanned = scan(f)
    # Where f has seen the labels it agrees with them; held-out ones it has not seen.
    at = validation if seen and len(validation) >= FEWEST else np.arange(len(codes))
    counted = surest_transition(
        scanned.likeliest[at], scanned.height[at], codes[at], f.shape[1], weights[at]
    )
    held_out = validation[~evidence.trusted[validation]]
    parts: dict[str, Any] = {
        "labels": codes,
        "classes": list(evidence.classes),
        "ids": check_ids(evidence.ids, len(codes)),
        "id_name": evidence.id_name,
        "probs": f,
        "likeliest": scanned.likeliest,
        "trusted": evidence.trusted,
        "weights": weights,
        "validation": validation,
        "support": evidence.support,
        "held_out": held_out,
        # A T fitted to probabilities that know their labels would find no noise.
        "fitted_on": held_out if seen else evidence.split.train,
        "counted": counted,
    }
    if evidence.columns is not None:
        T = one_matrix(evidence.columns, codes) or _known_parts(evidence, codes)
        parts |= {
            "transition": T,
            "tempering": _tempering(evidence, f),
            "kind": "probability",
            "source": f"f·T^⅓ with the fit's classifier and {name_of(T)}{seen_or_not(seen)}",
        }
    elif seen and evidence.out_of_sample is None:
        parts |= {
            "transition": None,
            "suspicion": evidence.suspicion.values.astype(np.float32),
            "kind": evidence.suspicion.kind,
            "source": evidence.suspicion.source,
        }
    elif seen:
        # The fit's own suspicion rests on probabilities that had not seen the labels.
        parts |= {
            "transition": None,
            "suspicion": 1.0 - f[np.arange(len(codes)), codes],
            "kind": "score",
            "source": "1 - f(x)[given label], in sample",
        }
    else:
        train = evidence.split.train
        parts |= read_probs(
            scanned, codes, counted, weights, evidence.trusted, train, in_sample=False
        )
    return Case(**{**parts, **_collected(evidence, codes, weights)})


def _collected(evidence: Evidence, labels: Codes, weights: NDArray[np.float64]) -> dict[str, Any]:
    """Return what a fit inferred from noisy posteriors."""
    collected, noisy = evidence.collected, evidence.posterior
    parts: dict[str, Any] = {}
    if noisy is not None:
        found = scan(noisy.probs, "posterior")
        counted = surest_transition(
            found.likeliest, found.height, labels, noisy.probs.shape[1], weights
        )
        parts["inference"] = Inference(
            found.likeliest, found.height, evidence.split.train, noisy.out_of_sample
        )
        parts["bound"] = bound(noisy.probs, labels, counted, make_unmix(counted), weights)
    # What was inferred from noisy posteriors is what a condition can be stated for.
    distilled = collected if evidence.distilled is None else evidence.distilled
    if distilled is not None:
        parts["collection"] = _collection(distilled)
    if collected is not None:
        parts["learned_from"] = _collection(collected)
    return parts


def _collection(collected: Collected) -> Collection:
    return Collection(
        collected.indices,
        collected.bayes_labels.astype(np.int32),
        float(collected.threshold),
        collected.collector,
        "fit",
    )


def _tempering(evidence: Evidence, f: Floats) -> Tempering:
    """Return how far the fit's T(x) is trusted beside f."""
    assert evidence.columns is not None
    used = evidence.split.all
    in_question = used[~evidence.trusted[used]]
    return find_tempering(
        f,
        evidence.columns,
        evidence.labels,
        evidence.weights,
        in_question,
        expected=evidence.expected,
    )


def _known_parts(evidence: Evidence, labels: Codes) -> KnownParts:
    assert evidence.columns is not None
    if evidence.rows is None:
        return KnownParts(evidence.columns, labels)
    f = evidence.probs if evidence.out_of_sample is None else evidence.out_of_sample
    # The rows were taken for the likeliest right label, whatever f the audit looks at.
    _, row_labels = judge_given(f, evidence.columns, labels, _tempering(evidence, f))
    return KnownParts(evidence.columns, labels, evidence.rows, row_labels)
