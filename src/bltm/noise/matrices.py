"""Matrices of noise that depends on the class alone: symmetric, pair, asymmetric maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bltm.core.errors import InputError
from bltm.core.matrix import FloatArray
from bltm.noise.inputs import check_rate

# Superclass of each CIFAR-100 class. Class numbers are alphabetical, so that consecutive numbers
# are not one superclass.
CIFAR100_SUPERCLASSES = (
    *(4, 1, 14, 8, 0, 6, 7, 7, 18, 3, 3, 14, 9, 18, 7, 11, 3, 9, 7, 11),
    *(6, 11, 5, 10, 7, 6, 13, 15, 3, 15, 0, 11, 1, 10, 12, 14, 16, 9, 11, 5),
    *(5, 19, 8, 8, 15, 13, 14, 17, 18, 10, 16, 4, 17, 4, 2, 0, 17, 4, 18, 17),
    *(10, 3, 2, 12, 12, 16, 12, 1, 9, 19, 2, 10, 0, 1, 16, 12, 9, 13, 15, 13),
    *(16, 19, 2, 4, 6, 19, 5, 5, 8, 19, 18, 1, 2, 15, 6, 0, 17, 8, 14, 13),
)


@dataclass(frozen=True)
class AsymmetricMap:
    """Which class is mistaken for which, for a data set with ``n_classes`` classes."""

    n_classes: int
    targets: Mapping[int, int]


def superclass_map(superclasses: Sequence[int]) -> dict[int, int]:
    """Send each class to the next class, circularly, of its own superclass.

    Parameters
    ----------
    superclasses
        Superclass of each class, length C.

    Examples
    --------
    >>> superclass_map([0, 1, 0, 1, 0])
    {0: 2, 2: 4, 4: 0, 1: 3, 3: 1}
    """
    members: dict[int, list[int]] = {}
    for c, superclass in enumerate(superclasses):
        members.setdefault(superclass, []).append(c)
    return {
        c: group[(k + 1) % len(group)]
        for group in members.values()
        for k, c in enumerate(group)
        if len(group) > 1
    }


_DIGITS = {7: 1, 2: 7, 5: 6, 6: 5, 3: 8}

# No map is customary for SVHN; it has the map of the other digits.
ASYMMETRIC_MAPS = {
    "cifar10": AsymmetricMap(10, {9: 1, 2: 0, 3: 5, 5: 3, 4: 7}),
    "fashion-mnist": AsymmetricMap(10, {0: 6, 2: 4, 5: 7, 7: 5}),
    "mnist": AsymmetricMap(10, _DIGITS),
    "svhn": AsymmetricMap(10, _DIGITS),
    "cifar100": AsymmetricMap(100, superclass_map(CIFAR100_SUPERCLASSES)),
}


def symmetric_matrix(n_classes: int, rate: float, inclusive: bool = False) -> FloatArray:
    """Return T of symmetric noise.

    Parameters
    ----------
    n_classes
        Number of classes C.
    rate
        Noise rate r in [0, 1].
    inclusive
        By default a flip goes to one of the C-1 other labels, and r is the share of wrong labels.
        If true, the label is drawn anew from all C labels with probability r, and only r(C-1)/C of
        the labels are wrong.

    Examples
    --------
    >>> symmetric_matrix(3, 0.2).round(2).tolist()
    [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    """
    r = check_rate(rate, 1.0)
    off = r / n_classes if inclusive else r / (n_classes - 1)
    T = np.full((n_classes, n_classes), off)
    np.fill_diagonal(T, 1.0 - off * (n_classes - 1))
    return T


def pair_matrix(n_classes: int, rate: float) -> FloatArray:
    """Return T of pair noise: class i becomes i+1 (mod C) with probability ``rate`` < 0.5.

    Examples
    --------
    >>> pair_matrix(3, 0.4).tolist()
    [[0.6, 0.4, 0.0], [0.0, 0.6, 0.4], [0.4, 0.0, 0.6]]
    """
    r = check_rate(rate, 0.5, open_end=True)
    return map_matrix(n_classes, r, {c: (c + 1) % n_classes for c in range(n_classes)})


def map_matrix(n_classes: int, rate: float, targets: Mapping[int, int]) -> FloatArray:
    """Return T in which class i becomes ``targets[i]`` with probability ``rate``.

    Classes that are not keys of ``targets`` keep their labels.

    Examples
    --------
    >>> map_matrix(3, 0.25, {0: 2}).tolist()
    [[0.75, 0.0, 0.25], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    r = check_rate(rate, 1.0)
    T = np.eye(n_classes)
    for source, target in targets.items():
        if source == target or not (0 <= source < n_classes and 0 <= target < n_classes):
            raise InputError(
                "mapping",
                f"has the entry {source} -> {target}, but there are {n_classes} classes",
                f"Map a class in 0..{n_classes - 1} to another one.",
            )
        T[source, source], T[source, target] = 1.0 - r, r
    return T


def map_targets(mapping: str | Mapping[int, int], n_classes: int) -> dict[int, int]:
    """Return the targets of a named map (a key of ``ASYMMETRIC_MAPS``) or of the caller's own.

    Examples
    --------
    >>> map_targets("fashion_mnist", 10)
    {0: 6, 2: 4, 5: 7, 7: 5}
    """
    if isinstance(mapping, Mapping):
        return {int(source): int(target) for source, target in mapping.items()}
    known = ASYMMETRIC_MAPS.get(str(mapping).replace("_", "-"))
    if known is None:
        raise InputError(
            "mapping",
            f"has no map named {mapping!r}",
            f"Choose from {', '.join(ASYMMETRIC_MAPS)}, or give a dict such as {{3: 5, 5: 3}}.",
        )
    if known.n_classes != n_classes:
        raise InputError(
            "n_classes",
            f"is {n_classes} but the map {mapping!r} is for {known.n_classes} classes",
            "Give n_classes if some classes are absent from y, or a map of your own.",
        )
    return dict(known.targets)
