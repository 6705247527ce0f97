"""Posteriors of right labels from those of given ones, with one matrix T for all examples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.audit.judge import Unmix
from bltm.audit.transitions import Codes, Floats
from bltm.core.blocks import block_rows, blocks
from bltm.transition.surest import Counted, FloatArray

# Up to this many classes T is inverted; beyond, its part of rank one.
INVERTED_CLASSES = 256
# What all classes together keep where the right posterior would have zeros.
FLOOR, REMAINDER = 0.03, 3e-3
# Log-likelihood per example by which probabilities must be better read as those of right labels:
# a model that is too sure of the given labels gains a little that way, too.
CLEARLY = 0.1


def make_unmix(counted: Counted) -> Unmix:
    """Return the function that turns noisy posteriors into those of the right label.

    ``P(given | x) = f(x) T`` is solved for f. With many classes only the diagonal of T and what
    its rows have in common are undone, which takes no matrix product.
    """
    n_classes = len(counted.T)
    common = float(counted.common.mean())
    # A classifier that is sure and wrong must not pass for a flip that T all but excludes, so no
    # class is left without a chance. Where flips go anywhere, T excludes nothing, and the noisy
    # posterior itself tells best which zero is the smaller one.
    floor = np.float32(FLOOR / n_classes * (1.0 - common) ** 2)
    remainder = np.float32(REMAINDER * common)
    if n_classes <= INVERTED_CLASSES:
        inverse = np.linalg.pinv(counted.T, rcond=1e-4).astype(np.float32)
        return lambda noisy: _mended(noisy @ inverse, noisy, floor, remainder)
    pattern = counted.pattern.astype(np.float32)
    spread = (counted.rates * counted.common / (1.0 - counted.pattern)).astype(np.float32)
    diagonal = np.maximum(1.0 - counted.rates - spread * pattern, 0.05).astype(np.float32)
    weights = spread / diagonal
    norm = np.float32(1.0 + weights @ pattern)

    def rank_one(noisy: Floats) -> Floats:
        flipped = (noisy @ weights) / norm
        solution = (noisy - flipped[:, None] * pattern) / diagonal
        return _mended(solution.astype(np.float32, copy=False), noisy, floor, remainder)

    return rank_one


def _mended(solution: Floats, noisy: Floats, floor: np.float32, remainder: np.float32) -> Floats:
    """Return a solution of positive entries that sum to one; negative ones end near ``floor``."""
    root = solution * solution
    root += 4 * floor * floor
    np.sqrt(root, out=root)
    solution += root
    solution *= np.float32(0.5)
    solution += remainder * noisy
    # Rounding can leave a zero where a large negative entry was.
    np.maximum(solution, np.float32(1e-9), out=solution)
    sums = solution @ np.ones(solution.shape[1], dtype=np.float32)
    solution /= sums[:, None]
    return solution


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
