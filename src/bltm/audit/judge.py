"""P(right label | x, given label) of all examples, block by block, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.audit.transitions import ClassTransition, Codes, Floats, Transition
from bltm.core.blocks import block_rows, blocks
from bltm.core.posterior import right_label_posterior
from bltm.core.tempering import Tempering

Unmix = Callable[[Floats], Floats]
# Rows this short are sorted as a whole; in longer ones the largest are picked one by one.
SORTED_CLASSES = 32
# Up to this many classes the joint of right and given labels is summed from whole posteriors.
EXACT_CLASSES = 64


@dataclass(frozen=True, eq=False)
class Judgement:
    """What the posterior says of each of the N examples.

    Attributes
    ----------
    p_right
        Probability that the given label is right, (N,); keeps its digits where it is tiny.
    suggested
        Most probable right label, (N,); the given label when no other is more probable.
    top, top_probs
        The k most probable labels, the suggested one first, and their probabilities, (N, k).
    likelihood
        ``Σ_i f_i(x) T(x)[i, given label]``, (N,), with T(x) as it is however far it is trusted.
    joint
        ``joint[i, j]``: weight of the examples given j whose right label is i, (C, C).
    p_inferred
        Probability of a label that was inferred elsewhere, (N,); None if none was asked for.
    """

    p_right: Floats
    suggested: NDArray[np.int32]
    top: NDArray[np.int32]
    top_probs: Floats
    likelihood: Floats
    joint: NDArray[np.float64]
    p_inferred: Floats | None = None

    @property
    def p_wrong(self) -> Floats:
        """Return the probability that the given label is wrong, (N,)."""
        return np.asarray(1.0 - self.p_right, dtype=np.float32)


def judge(
    labels: Codes,
    probs: NDArray[np.floating[Any]],
    transition: Transition | None,
    *,
    tempering: Tempering | None = None,
    unmix: Unmix | None = None,
    suspicion: Floats | None = None,
    trusted: NDArray[np.bool_] | None = None,
    weights: NDArray[np.float64] | None = None,
    inferred: Codes | None = None,
    top_k: int = 5,
) -> Judgement:
    """Judge all given labels.

    Parameters
    ----------
    labels
        Given labels as codes, shape (N,).
    probs
        f, or what ``unmix`` turns into f, shape (N, C).
    transition
        T(x); None where ``suspicion`` tells.
    tempering
        How far T(x) is trusted; None for all the way.
    unmix
        Turns a block of noisy posteriors into probabilities of the right label.
    suspicion
        Known P(given label is wrong), shape (N,); f then only shares it among the other labels.
    trusted
        Labels known to be right, shape (N,).
    weights
        Weights in the joint, shape (N,).
    inferred
        Labels whose probability is wanted too, shape (N,); -1 for none.
    top_k
        How many labels to keep for each example.
    """
    n, n_classes = probs.shape
    k = min(top_k, n_classes)
    p_right, likelihood = np.empty(n, np.float32), np.empty(n, np.float32)
    top, top_probs = np.empty((n, k), np.int32), np.empty((n, k), np.float32)
    p_inferred = None if inferred is None else np.full(n, np.nan, np.float32)
    joint = np.zeros((n_classes, n_classes))
    temper = _tempered(transition, tempering)
    for block in blocks(n, block_rows(n_classes) if transition is None else transition.block_rows):
        given = labels[block]
        f = probs[block].astype(np.float32, copy=False)
        if unmix is not None:
            f = unmix(f)
        if suspicion is not None or transition is None:
            doubt = np.zeros(len(given), np.float32) if suspicion is None else suspicion[block]
            right, likelihood[block] = _shared(f, given, doubt), np.nan
        else:
            columns = transition.columns(block, given)
            right, likelihood[block] = right_label_posterior(f, columns)
            if temper is not None:
                right, _ = right_label_posterior(f, temper(columns, given))
        b = np.arange(len(given))
        if trusted is not None and trusted[block].any():
            sure = np.flatnonzero(trusted[block])
            right[sure] = 0.0
            right[sure, given[sure]] = 1.0
        p_right[block] = right[b, given]
        weight = None if weights is None else weights[block]
        if n_classes <= EXACT_CLASSES:
            member = np.zeros_like(right)
            member[b, given] = 1.0 if weight is None else weight
            joint += right.T @ member
        if inferred is not None and p_inferred is not None:
            wanted = inferred[block]
            p_inferred[block] = np.where(wanted >= 0, right[b, wanted], np.nan)
        top[block], top_probs[block] = _largest(right, given, p_right[block], k)
    np.clip(top_probs, 0.0, 1.0, out=top_probs)
    np.clip(p_right, 0.0, 1.0, out=p_right)
    if n_classes > EXACT_CLASSES:
        joint = _joint_of_top(labels, top, top_probs, n_classes, weights)
    return Judgement(p_right, top[:, 0].copy(), top, top_probs, likelihood, joint, p_inferred)


def _tempered(
    transition: Transition | None, tempering: Tempering | None
) -> Callable[[Floats, Codes], Floats] | None:
    """Return what makes columns of T(x) as far trusted as they are; one T is made so once."""
    if tempering is None or not isinstance(transition, ClassTransition):
        return None if tempering is None else tempering.columns
    every = np.arange(transition.n_classes)
    table = tempering.columns(transition.columns(every, every), every)
    return lambda columns, given: table.take(given, axis=0)


def _shared(f: Floats, given: Codes, doubt: Floats) -> Floats:
    """Return posteriors that leave ``doubt`` to the labels that were not given, in f's shares."""
    b = np.arange(len(given))
    others = f.copy()
    others[b, given] = 0.0
    sums = others.sum(axis=1)
    # An f that sees no other label leaves the doubt to all of them alike.
    flat = sums <= 0
    others[flat] = 1.0
    others[b[flat], given[flat]] = 0.0
    sums[flat] = max(1, f.shape[1] - 1)
    others *= (doubt / sums)[:, None]
    others[b, given] = 1.0 - doubt
    return others


def _largest(
    right: Floats, given: Codes, p_right: Floats, k: int
) -> tuple[NDArray[np.int32], Floats]:
    """Return the k largest entries of each row, the given label first among equals."""
    b = np.arange(len(given))
    if right.shape[1] <= SORTED_CLASSES:
        # A given label that is as probable as another one must come first.
        right[b, given] = np.nextafter(p_right, np.float32(2.0))
        places = np.argsort(-right, axis=1)[:, :k]
        return places.astype(np.int32), right[b[:, None], places]
    order = np.empty((len(given), k), np.int32)
    values = np.empty((len(given), k), np.float32)
    for place in range(k):
        best = right.argmax(axis=1)
        if place == 0:
            best = np.where(p_right >= right[b, best], given, best)
        order[:, place], values[:, place] = best, right[b, best]
        right[b, best] = -1.0
    return order, values


def _joint_of_top(
    labels: Codes,
    top: NDArray[np.int32],
    top_probs: Floats,
    n_classes: int,
    weights: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Sum the joint from the k largest probabilities, scaled to one."""
    given = labels.astype(np.int64)
    joint = np.zeros(n_classes * n_classes)
    scale = 1.0 / top_probs.sum(axis=1, dtype=np.float64)
    if weights is not None:
        scale *= weights
    for place in range(top.shape[1]):
        flat = top[:, place] * np.int64(n_classes) + given
        joint += np.bincount(flat, top_probs[:, place] * scale, len(joint))
    return joint.reshape(n_classes, n_classes)
