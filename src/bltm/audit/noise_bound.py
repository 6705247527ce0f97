"""An estimate of rho_max, the bound on the noise that collection assumes.

``rho_max = sup_x P(given = y | right ≠ y, x)`` (section 4.2): the largest probability with which
one wrong class is given as the label. A supremum cannot be measured; what can is how often the
likeliest wrong label is given on those examples for which the posterior expects it most. And a
posterior that is torn between two classes does not tell whether the example is hard or its label
noisy: the estimate looks at examples that are clear if flips depend on the class alone, and the
upper end of its interval takes every doubt for noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.audit.findings import NoiseBound, Rate
from bltm.audit.inputs import scan
from bltm.audit.intervals import jeffreys
from bltm.audit.judge import Unmix
from bltm.audit.transitions import Codes
from bltm.audit.unmixing import make_unmix
from bltm.core.blocks import block_rows, blocks
from bltm.transition.surest import Counted, surest_transition

# The right class has to be this clear, once the noise is taken out of the posterior.
CLEAR = 0.97
TOP_SHARE, FEWEST = 0.01, 50
HIGHEST = 0.95
MOST_ENTRIES = 2**22

ASSUMPTIONS = (
    "It takes the right label to be certain given the example and the likeliest one, and the "
    "posteriors to come from models that have not seen the labels. The value rests on examples "
    "whose right class is clear if flips depend on the class alone; if they depend on the example "
    "it is too low. The upper end takes every doubt of the posterior for noise. Both are means "
    "over the examples with the strongest expected flips, so single examples can lie above them"
)


def estimate_rho_max(
    noisy_posteriors: NDArray[np.floating[Any]],
    labels: NDArray[np.integer[Any]],
    weights: NDArray[np.float64] | None = None,
) -> NoiseBound:
    """Estimate ``rho_max`` from noisy posteriors and the given labels.

    Parameters
    ----------
    noisy_posteriors
        P(given label | x), out of sample, shape (N, C).
    labels
        Given labels as codes, shape (N,).
    weights
        Weights; examples of weight zero are left out. Shape (N,).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> right = rng.integers(0, 3, 3000)
    >>> labels = np.where(rng.random(3000) < 0.2, (right + 1) % 3, right)
    >>> T = np.array([[0.8, 0.2, 0.0], [0.0, 0.8, 0.2], [0.2, 0.0, 0.8]])
    >>> bound = estimate_rho_max(T[right], labels)
    >>> bound.low < 0.2 < bound.high
    True
    """
    found = scan(noisy_posteriors, "noisy_posteriors")
    n_classes = found.probs.shape[1]
    counted = surest_transition(found.likeliest, found.height, labels, n_classes, weights)
    return bound(found.probs, labels, counted, make_unmix(counted), weights)


def bound(
    probs: NDArray[np.floating[Any]],
    labels: Codes,
    counted: Counted,
    unmix: Unmix,
    weights: NDArray[np.float64] | None = None,
) -> NoiseBound:
    """Estimate ``rho_max`` where the counted T is known already; of large data from every k-th."""
    every = max(1, -(-probs.size // MOST_ENTRIES))
    probs, labels = probs[::every], labels[::every]
    weights = None if weights is None else weights[::every]
    expected, given = np.empty(len(probs), np.float32), np.empty(len(probs), bool)
    clear = np.empty(len(probs), bool)
    for block in blocks(len(probs), block_rows(probs.shape[1])):
        p = probs[block].astype(np.float32)
        f = unmix(p)
        b = np.arange(len(p))
        right = f.argmax(axis=1)
        clear[block] = f[b, right] >= CLEAR
        p[b, right] = -1.0
        flip = p.argmax(axis=1)
        # A class that is more probable than the right one would not be a flip.
        expected[block] = np.minimum(p[b, flip], 0.5)
        given[block] = flip == labels[block]
    used = np.ones(len(probs), bool) if weights is None else weights > 0
    seen, doubts = _strongest(expected, given, clear & used), _strongest(expected, given, used)
    flips = counted.T.copy()
    np.fill_diagonal(flips, 0.0)
    # The mean over a class cannot lie above the supremum.
    value = float(np.clip(max(seen.value, flips.max()), 0.0, HIGHEST))
    high = float(np.clip(max(seen.high, doubts.high, value), 0.0, HIGHEST))
    return NoiseBound(value, min(seen.low, value), high, int(seen.n), ASSUMPTIONS)


def _strongest(
    expected: NDArray[np.float32], given: NDArray[np.bool_], among: NDArray[np.bool_]
) -> Rate:
    """Return how often the expected flip is the given label, where it is expected most."""
    index = np.flatnonzero(among)
    size = min(len(index), max(FEWEST, int(TOP_SHARE * len(index))))
    if size == 0:
        return Rate(0.0, 0.0, 0.0, 0.0)
    order = np.argpartition(-expected[index], size - 1)[:size]
    return jeffreys(float(given[index[order]].sum()), size)
