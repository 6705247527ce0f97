"""Posteriors of right labels from those of given ones, with one matrix T for all examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.audit.judge import Unmix
from bltm.audit.transitions import Codes, Floats
from bltm.core.blocks import block_rows, blocks
from bltm.transition.surest import Counted, FloatArray

# Up to this many classes products with T are those of matrices; beyond, of its part of rank one,
# and what T says of single pairs of classes is not undone.
MULTIPLIED_CLASSES = 256
# Steps from the posterior of given labels to that of right ones; fewer where each takes long, more
# where the noise rate of all examples together is asked for and not the order of single ones.
STEPS, FEWER_STEPS, MORE_STEPS = 4, 1, 20
# Log-likelihood per example by which probabilities must be better read as those of right labels:
# a model that is too sure of the given labels gains a little that way, too.
CLEARLY = 0.1
TINY = np.float32(1e-9)


def make_unmix(counted: Counted, steps: int | None = None) -> Unmix:
    """Return the function that turns noisy posteriors into those of the right label.

    ``P(given | x) = f(x) T`` is solved for f by expectation maximisation (Richardson 1972, Lucy
    1974), which starts from the noisy posterior: ``f_i ← f_i · (Σ_j T_ij P_j / (f T)_j)^2``, scaled
    to one. The square is a step twice as far. It stops after a few of them, where a solution would
    go on to blame the labels for all that the model confuses. No class is left without a chance,
    and no matrix is inverted.

    Parameters
    ----------
    counted
        T and its parts.
    steps
        How many steps; None for the usual number.
    """
    through, back = _products(counted)
    few = len(counted.T) <= MULTIPLIED_CLASSES
    steps = (STEPS if few else FEWER_STEPS) if steps is None else steps
    ones = np.ones((len(counted.T), 1), dtype=np.float32)

    def unmix(noisy: Floats) -> Floats:
        noisy = np.maximum(noisy, TINY)
        f = noisy.copy()
        for _ in range(steps):
            share = through(f)
            np.maximum(share, TINY, out=share)
            np.divide(noisy, share, out=share)
            share = back(share)
            share *= share
            f *= share
            f /= f @ ones
        return f

    return unmix


def _products(counted: Counted) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
    """Return the products of rows with T and with its transpose.

    With many classes T is taken for its diagonal and what its rows have in common.
    """
    if len(counted.T) <= MULTIPLIED_CLASSES:
        T = counted.T.astype(np.float32)
        transposed = np.ascontiguousarray(T.T)
        return lambda rows: rows @ T, lambda rows: rows @ transposed
    pattern = counted.pattern.astype(np.float32)
    spread = (counted.rates * counted.common / (1.0 - counted.pattern)).astype(np.float32)
    diagonal = np.maximum(1.0 - counted.rates - spread * pattern, 0.05).astype(np.float32)

    def through(rows: Floats) -> Floats:
        product = rows * diagonal
        product += np.multiply.outer(rows @ spread, pattern)
        return product

    def back(rows: Floats) -> Floats:
        product = rows * diagonal
        product += np.multiply.outer(rows @ pattern, spread)
        return product

    return through, back


def predicts_given(
    probs: NDArray[np.floating[Any]], labels: Codes, T: FloatArray, index: NDArray[np.integer[Any]]
) -> bool:
    """Return whether probabilities are of the given labels rather than of the right ones.

    Of the two readings, ``P(given) = p`` and ``P(given) = p · T``, the one under which the given
    labels of the chosen examples are more probable is taken, the first unless the other is clearly
    better.
    """
    columns = np.ascontiguousarray(T.T, dtype=np.float32)
    gain, tiny = 0.0, np.float32(1e-6)
    for block in blocks(len(index), block_rows(len(T))):
        p = probs[index[block]].astype(np.float32, copy=False)
        given = labels[index[block]]
        direct = np.maximum(p[np.arange(len(given)), given], tiny)
        through = np.maximum(np.einsum("bc,bc->b", p, columns[given]), tiny)
        gain += float(np.log(direct).sum() - np.log(through).sum())
    return gain >= -CLEARLY * len(index)
