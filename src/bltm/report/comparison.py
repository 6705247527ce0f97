"""Means over seeds, and comparisons over the seeds that both sides have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, stdev

FEWEST_PAIRS = 3
"""A paired test with fewer says nothing."""


@dataclass(frozen=True)
class Stat:
    """Mean and standard deviation (with ``n - 1``; None for one value) of ``n`` values."""

    mean: float
    std: float | None
    n: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Stat | None:
        """Return the statistics of values, or None where there are none.

        Examples
        --------
        >>> Stat.of([1.0, 2.0, 3.0])
        Stat(mean=2.0, std=1.0, n=3)
        """
        found = list(values)
        if not found:
            return None
        return cls(fmean(found), stdev(found) if len(found) > 1 else None, len(found))


@dataclass(frozen=True)
class Paired:
    """A method minus BLTM-V, over the seeds that both have.

    ``p_value`` is that of a two-sided paired t-test, and None with fewer than three pairs or where
    all differences are the same.
    """

    difference: float
    pairs: int
    p_value: float | None


@dataclass(frozen=True)
class Gap:
    """Share of the way from cross-entropy on noisy labels to cross-entropy on right ones.

    All three means are over the same ``seeds``.
    """

    share: float
    seeds: tuple[int, ...]


def paired_comparison(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Paired | None:
    """Return how much ``theirs`` is above ``ours`` on the seeds of both.

    Examples
    --------
    >>> paired_comparison({0: 0.8, 1: 0.9}, {0: 0.7, 1: 0.8, 2: 0.1})
    Paired(difference=-0.1, pairs=2, p_value=None)
    """
    seeds = sorted(set(ours) & set(theirs))
    if not seeds:
        return None
    differences = [theirs[seed] - ours[seed] for seed in seeds]
    p_value = None
    # Where all differences are the same (as far as floating point goes) no test makes sense.
    if len(seeds) >= FEWEST_PAIRS and max(differences) - min(differences) > 1e-9:
        from scipy.stats import ttest_rel

        test = ttest_rel([theirs[seed] for seed in seeds], [ours[seed] for seed in seeds])
        p_value = float(test.pvalue)
    return Paired(round(fmean(differences), 12), len(seeds), p_value)


def gap_recovered(
    values: Mapping[int, float], floor: Mapping[int, float], ceiling: Mapping[int, float]
) -> Gap | None:
    """Return the share of the gap that values recover, over the seeds of all three.

    None where there is no seed in common, or no gap.

    Examples
    --------
    >>> gap_recovered({0: 0.8, 1: 0.1}, {0: 0.7}, {0: 0.9})
    Gap(share=0.5, seeds=(0,))
    """
    seeds = tuple(sorted(set(values) & set(floor) & set(ceiling)))
    if not seeds:
        return None
    low, high, mean = (fmean(part[seed] for seed in seeds) for part in (floor, ceiling, values))
    return Gap(round((mean - low) / (high - low), 12), seeds) if high > low else None
