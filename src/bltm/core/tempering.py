"""How far an estimated T(x) is trusted when labels are judged.

Where a label went depends on the example in ways that an estimate knows less surely than it says.
``f · T^β`` with a power below one ranks wrong labels better where people gave them, and no worse
or little worse elsewhere (docs/audit.md has the figures). A power alone would change how many
labels are held for wrong, so a constant beside it sets the noise rate: to what f and T(x) expect
before they see the labels, the mean of ``Σ_i f_i(x) · (1 - T(x)[i, i])``. A classifier that has
learned some wrong labels by heart holds them for right once it sees them.

Nor is any flip impossible because an estimate says so. The revision of BLTM-V cuts small entries
off at zero, half of them on some data, and a zero would take its label for right whatever f says.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.core.blocks import block_rows, blocks
from bltm.core.posterior import Labels, Probs, given_and_best, right_label_posterior

Codes = NDArray[np.integer[Any]]
FloatArray = NDArray[np.float64]
# Log odds beyond which nothing changes any more.
WIDEST = 80.0
POWER = 1 / 3
"""The power of an estimated T(x): it is trusted by a third."""
FLOOR = 0.03
"""What all classes together have at least in a column of T(x), each the same share."""


@dataclass(frozen=True)
class Tempering:
    """Columns of T(x) to a power, with a constant on the labels that were not given.

    Attributes
    ----------
    power
        β, above 0; 1 leaves the columns as they are.
    log_odds
        log k, what is added to the log odds of every given label being wrong.
    floor
        What an entry counts for at least, times C.
    """

    power: float
    log_odds: float = 0.0
    floor: float = 0.0

    def columns(self, columns: Probs, given: Codes) -> Probs:
        """Return ``max(T(x)[i, given], floor/C)^β · k^[i ≠ given]`` but for a factor, shape (B, C).

        Parameters
        ----------
        columns
            T(x)[:, given label], shape (B, C).
        given
            Given labels, shape (B,).

        Examples
        --------
        >>> columns = np.array([[0.81, 0.01]], dtype=np.float32)
        >>> Tempering(0.5).columns(columns, np.array([0])).astype(float).round(4).tolist()
        [[0.9, 0.1]]
        """
        floored: Probs = np.maximum(columns, np.float32(self.floor / columns.shape[1]))
        tempered: Probs = floored**self.power
        b = np.arange(len(given))
        # Half of the constant on each side: as a whole it might leave the range of float32.
        half = exp(self.log_odds / 2)
        of_given = tempered[b, given] / half
        tempered *= half
        tempered[b, given] = of_given
        return tempered


def find_tempering(
    f: Probs,
    log_columns: Probs,
    labels: Codes,
    weights: FloatArray,
    index: NDArray[np.int64],
    power: float = POWER,
    floor: float = FLOOR,
    expected: Probs | None = None,
) -> Tempering:
    """Return the tempering under which as many labels are wrong as f and T(x) expect.

    Where they expect no label to be wrong, or all of them, there is no rate to keep, and f·T is
    left as it is.

    Parameters
    ----------
    f
        Probabilities of the right label, shape (N, C).
    log_columns
        log T(x)[:, given label], shape (N, C).
    labels
        Given labels as codes, shape (N,).
    weights
        Weights in the noise rate, shape (N,).
    index
        The examples whose labels are in question, shape (M,): used ones that are not trusted.
    power, floor
        The power of T(x), and what its entries count for at least, times C.
    expected
        How probably each label is wrong before it is seen, shape (N,). Without it as many labels
        are wrong as f·T makes of the given ones.

    Examples
    --------
    >>> f = np.array([[0.9, 0.1], [0.5, 0.5]], dtype=np.float32)
    >>> columns = np.log(np.array([[0.8, 0.4], [0.01, 0.9]], dtype=np.float32))
    >>> labels, everyone = np.array([0, 1]), np.arange(2)
    >>> tempering = find_tempering(f, columns, labels, np.ones(2), everyone)
    >>> p_right, _ = judge_given(f, columns, labels, Tempering(1.0))
    >>> p_right.astype(float).round(3).tolist(), round(float(p_right.mean()), 3)
    ([0.947, 0.989], 0.968)
    >>> p_right, _ = judge_given(f, columns, labels, tempering)
    >>> p_right.astype(float).round(3).tolist(), round(float(p_right.mean()), 3)
    ([0.983, 0.953], 0.968)
    """
    from scipy.optimize import brentq
    from scipy.special import expit

    whole, tempered = (
        _log_odds(f, log_columns, labels, index, each)
        for each in (Tempering(1.0), Tempering(power, floor=floor))
    )
    weight = weights[index]
    known = ~(np.isnan(whole) | np.isnan(tempered)) & (weight > 0)
    whole, tempered, weight = whole[known], tempered[known], weight[known]
    wrong = weight @ (expit(whole) if expected is None else expected[index][known])

    def excess(log_odds: float) -> float:
        return float(weight @ expit(tempered + log_odds) - wrong)

    if not excess(-WIDEST) < 0.0 < excess(WIDEST):
        return Tempering(1.0)
    return Tempering(power, float(brentq(excess, -WIDEST, WIDEST)), floor)


def judge_given(
    f: Probs, log_columns: Probs, labels: Codes, tempering: Tempering
) -> tuple[Probs, Labels]:
    """Return P(given label is right) and the most probable right label of all N examples.

    Parameters
    ----------
    f, log_columns, labels
        As in :func:`find_tempering`.
    tempering
        How far T(x) is trusted.
    """
    p_right, best = np.empty(len(labels), np.float32), np.empty(len(labels), np.int64)
    for block in blocks(len(labels), block_rows(f.shape[1])):
        given = labels[block]
        columns = tempering.columns(np.exp(log_columns[block]), given)
        right, _ = right_label_posterior(f[block], columns)
        p_right[block], best[block] = given_and_best(right, given)
    return p_right, best


def _log_odds(
    f: Probs, log_columns: Probs, labels: Codes, index: NDArray[np.int64], tempering: Tempering
) -> FloatArray:
    """Return the log odds of labels being wrong, shape (M,); NaN where none is possible."""
    found = np.empty(len(index))
    for block in blocks(len(index), block_rows(f.shape[1])):
        at = index[block]
        given, b = labels[at], np.arange(len(at))
        joint = tempering.columns(np.exp(log_columns[at]), given) * f[at].astype(np.float64)
        of_given = joint[b, given]
        joint[b, given] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            found[block] = np.log(joint.sum(axis=1)) - np.log(of_given)
    return found
