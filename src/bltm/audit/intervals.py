"""Intervals for shares, without the weight of a statistics library."""

from __future__ import annotations

from bltm.audit.findings import Rate

Z = 1.959964


def jeffreys(k: float, n: float) -> Rate:
    """Return the share k/n with its 95 % interval by Jeffreys' prior, Beta(1/2, 1/2).

    Examples
    --------
    >>> rate = jeffreys(20, 100)
    >>> round(rate.value, 2), round(rate.low, 3), round(rate.high, 3)
    (0.2, 0.131, 0.286)
    """
    from scipy.special import betaincinv

    if n <= 0:
        return Rate(0.0, 0.0, 1.0, 0.0)
    a, b = k + 0.5, n - k + 0.5
    low = 0.0 if k <= 0 else float(betaincinv(a, b, 0.025))
    high = 1.0 if k >= n else float(betaincinv(a, b, 0.975))
    return Rate(float(k / n), low, high, float(n))
