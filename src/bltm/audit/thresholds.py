"""What to do about a label: keep, relabel, review or drop."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from bltm.core.errors import InputError

VERDICTS = ("keep", "relabel", "review", "drop")
KEEP, RELABEL, REVIEW, DROP = range(4)


@dataclass(frozen=True)
class Thresholds:
    """From which probability on a label is relabelled, reviewed or dropped.

    Attributes
    ----------
    relabel
        A label other than the given one that is right with at least this probability is taken.
    review
        A given label that is wrong with at least this probability is worth a look.
    drop
        A given label that is wrong with at least this probability, while no other label is sure
        enough to take its place, makes the example useless.

    Examples
    --------
    >>> Thresholds(relabel=0.8)
    Thresholds(relabel=0.8, review=0.5, drop=0.95)
    """

    relabel: float = 0.9
    review: float = 0.5
    drop: float = 0.95

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float | np.number):
                raise InputError(name, f"must be a number, got {value!r}", "Use 0.9, for example.")
            if not 0.0 < value <= 1.0:
                raise InputError(
                    name,
                    f"must be above 0 and at most 1, got {value}",
                    "It is the probability from which the verdict holds.",
                )
        if self.review > min(self.relabel, self.drop):
            raise InputError(
                "review",
                f"is {self.review}, above relabel={self.relabel} or drop={self.drop}",
                "A label that is worth no look cannot be changed or dropped.",
            )


def decide(
    p_wrong: NDArray[np.floating],
    p_suggested: NDArray[np.floating],
    changed: NDArray[np.bool_],
    thresholds: Thresholds,
) -> NDArray[np.int8]:
    """Return the code of each verdict in :data:`VERDICTS`.

    Parameters
    ----------
    p_wrong
        Probability that the given label is wrong, shape (N,).
    p_suggested
        Probability of the suggested label, shape (N,).
    changed
        Whether the suggested label is not the given one, shape (N,).
    thresholds
        The limits.

    Examples
    --------
    >>> p_wrong = np.array([0.1, 0.97, 0.6, 0.97])
    >>> p_suggested = np.array([0.9, 0.96, 0.5, 0.5])
    >>> codes = decide(p_wrong, p_suggested, np.array([False, True, True, True]), Thresholds())
    >>> [VERDICTS[code] for code in codes]
    ['keep', 'relabel', 'review', 'drop']
    """
    verdict = np.full(len(p_wrong), KEEP, dtype=np.int8)
    verdict[p_wrong >= thresholds.review] = REVIEW
    verdict[p_wrong >= thresholds.drop] = DROP
    verdict[changed & (p_suggested >= thresholds.relabel)] = RELABEL
    return verdict
