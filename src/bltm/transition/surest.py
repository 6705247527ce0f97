"""One transition matrix, counted where a model is surest.

Confident learning counts every example on which model and label disagree, so where a model
confuses two classes it finds noise that is not there. Here only the surest fifth of the
predictions of each class is counted: there the model is hardly ever wrong, and a label that
differs is the label's fault. Few examples are left that way, so rows are drawn towards what all
classes have in common, as far as the counts themselves say that they have anything in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]
SUREST = 0.2
LEAST = 10
# Candidates for how many examples the common pattern is worth.
STRENGTHS = np.geomspace(0.5, 1000.0, 23)
# Rates outside these limits would make T a matrix that excludes labels or cannot be inverted.
LOWEST_RATE, HIGHEST_RATE = 0.002, 0.9
# A right label is at least so many times as common as any wrong one.
LEAD = 1.1


@dataclass(frozen=True, eq=False)
class Counted:
    """A class-dependent T and how it came about.

    Attributes
    ----------
    T
        ``T[i, j] = P(given = j | right = i)``, shape (C, C).
    rates
        ``1 - T[i, i]``, shape (C,).
    pattern
        How flips spread over the labels in all classes together, shape (C,).
    common
        Share of the flips of each class that follows this pattern, shape (C,).
    n
        Number of examples that were counted.
    """

    T: FloatArray
    rates: FloatArray
    pattern: FloatArray
    common: FloatArray
    n: int


def surest(
    likeliest: Codes, height: NDArray[np.floating[Any]], n_classes: int, share: float = SUREST
) -> NDArray[np.int64]:
    """Return positions of the surest predictions of each class, at least a handful of each.

    Examples
    --------
    >>> surest(np.zeros(50, dtype=int), np.linspace(0.0, 1.0, 50), 2).min()
    np.int64(40)
    """
    # Short integers are sorted by counting.
    short = likeliest.astype(np.int16) if n_classes < 2**15 else likeliest
    order = np.argsort(short, kind="stable")
    counts = np.bincount(likeliest, minlength=n_classes)
    chosen = []
    for own in np.split(order, np.cumsum(counts)[:-1]):
        m = min(len(own), max(LEAST, int(share * len(own))))
        chosen.append(own[np.argpartition(-height[own], m - 1)[:m]] if m else own)
    return np.sort(np.concatenate(chosen))


def surest_transition(
    likeliest: Codes,
    height: NDArray[np.floating[Any]],
    labels: Codes,
    n_classes: int,
    weights: FloatArray | None = None,
    *,
    share: float = SUREST,
    least: float = 0.0,
) -> Counted:
    """Return T counted on the surest predictions.

    The share of flips of a class, and their spread over the other labels, each have a prior around
    their values in all classes together (Beta and Dirichlet); its strength is the one under which
    the counts are most probable.

    Parameters
    ----------
    likeliest, height
        The most probable class of each example and its probability, shape (N,).
    labels
        Given labels as codes, shape (N,).
    n_classes
        C.
    weights
        Weights of the examples, shape (N,).
    share
        Share of the predictions of each class that is counted.
    least
        Where a typical class has fewer counted examples, all classes are given one rate and one
        pattern.

    Examples
    --------
    >>> likeliest, labels = np.repeat([0, 1], 500), np.tile([0, 0, 0, 0, 1], 200)
    >>> counted = surest_transition(likeliest, np.full(1000, 0.9), labels, 2)
    >>> counted.T.round(1).tolist()
    [[0.8, 0.2], [0.8, 0.2]]
    """
    if n_classes == 1:
        return Counted(np.ones((1, 1)), np.zeros(1), np.ones(1), np.ones(1), len(labels))
    chosen = surest(likeliest, height, n_classes, share)
    flat = likeliest[chosen].astype(np.int64) * n_classes + labels[chosen]
    weight = None if weights is None else weights[chosen]
    counts = np.bincount(flat, weight, n_classes**2).reshape(n_classes, n_classes).astype(float)
    totals, kept = counts.sum(axis=1), np.diag(counts).copy()
    np.fill_diagonal(counts, 0.0)
    flips = totals - kept
    strengths = STRENGTHS if np.median(totals) >= least else STRENGTHS[-1:]
    received, uniform = counts.sum(axis=0), np.full(n_classes, 1.0 / n_classes)
    strength = _best_strength(received[None], uniform)
    pattern = (received + strength * uniform) / (received.sum() + strength)

    common = np.clip(flips.sum() / max(totals.sum(), 1.0), LOWEST_RATE, HIGHEST_RATE)
    both, shares = np.stack([flips, kept], axis=1), np.array([common, 1.0 - common])
    strength = _best_strength(both, shares, strengths)
    rates = (flips + strength * common) / (totals + strength)

    others = pattern / (1.0 - pattern)[:, None]
    strength = _best_strength(counts, others, strengths)
    T = (counts + strength * others) / (flips + strength)[:, None]
    np.fill_diagonal(T, 0.0)
    T *= (rates / T.sum(axis=1))[:, None]
    T[np.arange(n_classes), np.arange(n_classes)] = 1.0 - rates
    return Counted(T, rates, pattern, strength / (flips + strength), len(chosen))


def right_ahead(T: FloatArray, lead: float = LEAD) -> FloatArray:
    """Return T with fewer flips in rows where a wrong label is about as common as the right one.

    A model that learned from the labels alone cannot know such a class: it would call it by its
    commonest label. Where it seems to, it is the count that is wrong.

    Parameters
    ----------
    T
        Transition matrix, shape (C, C).
    lead
        How many times as common as any wrong label the right one is, at least.

    Examples
    --------
    >>> right_ahead(np.array([[0.4, 0.6], [0.1, 0.9]]), lead=1.5)
    array([[0.6, 0.4],
           [0.1, 0.9]])
    """
    flips = np.where(np.eye(len(T), dtype=bool), 0.0, T)
    # Above one where the right label, 1 - Σ flips, is not ahead of the commonest wrong one.
    excess = flips.sum(axis=1) + lead * flips.max(axis=1)
    fewer = flips / np.maximum(excess, 1.0)[:, None]
    np.fill_diagonal(fewer, 1.0 - fewer.sum(axis=1))
    return np.where(excess[:, None] > 1.0, fewer, T)


def _best_strength(
    counts: FloatArray, means: FloatArray, strengths: FloatArray = STRENGTHS
) -> float:
    """Return how much the prior is worth under which the counts are most probable."""
    from scipy.special import gammaln

    where = np.nonzero(counts)
    n, mean = counts[where], np.broadcast_to(means, counts.shape)[where]
    totals = counts.sum(axis=1)

    def evidence(strength: float) -> float:
        a = strength * mean
        rows = gammaln(strength) - gammaln(strength + totals)
        return float(rows.sum() + (gammaln(a + n) - gammaln(a)).sum())

    return float(max(strengths, key=evidence))
