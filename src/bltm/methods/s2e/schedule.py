"""The family of forget rates that S2E searches: twelve numbers in [0, 1] make one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

SIZE = 12
HALVED, DOUBLED = [2, 4, 6, 9, 10], [5, 11]
HIGHEST = 0.99


def forget_curve(x: FloatArray, time: float, end: float) -> float:
    """Return F(e), the share of a batch that is left out at time e of E, between 0 and 0.99.

    Three curves that rise from 0 to 1 (exponential, power law, logarithm) are mixed, and a power
    and a logarithm are subtracted::

        F(e) = x0 (1 - exp(-x2 e^x1))
             + (1 - x0) x7 (1 - (1 + x4 e)^-x3)
             + (1 - x0) (1 - x7) (1 - ln(1 + x8) / ln(1 + x8 + x9 e))
             - x6 (e / E)^x5 - x10 ln(1 + e^x11) / ln(1 + E^x11)

    with x2, x4, x6, x9 and x10 halved, x5 and x11 doubled.

    Parameters
    ----------
    x
        Twelve numbers in [0, 1].
    time, end
        e and E, in epochs.

    Examples
    --------
    >>> [round(forget_curve(np.full(12, 0.5), e, 200), 2) for e in (0, 20, 200)]
    [0.0, 0.51, 0.42]
    """
    scaled = np.array(x, dtype=np.float64)
    scaled[HALVED] /= 2
    scaled[DOUBLED] *= 2
    x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11 = scaled.tolist()
    exponential = 1 - math.exp(-x2 * time**x1)
    power = 1 - (1 + x4 * time) ** -x3
    # At the start the quotient is 1 by definition; with x8 = 0 it would be 0 / 0.
    moved = x9 * time
    logarithm = 1 - math.log1p(x8) / math.log1p(x8 + moved) if moved > 0 else 0.0
    rising = x0 * exponential + (1 - x0) * (x7 * power + (1 - x7) * logarithm)
    falling = x6 * (time / end) ** x5 + x10 * math.log1p(time**x11) / math.log1p(end**x11)
    return float(min(max(rising - falling, 0.0), HIGHEST))
