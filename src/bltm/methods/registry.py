"""The table of methods: what each is called, how to make one, and what it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from bltm.core.errors import InputError
from bltm.methods.base import NoisyLabelClassifier
from bltm.methods.bltm import BLTMClassifier
from bltm.methods.cross_entropy import CrossEntropyClassifier


@dataclass(frozen=True)
class Method:
    """One row of the table.

    Attributes
    ----------
    name
        As on the command line.
    estimator
        Makes an estimator from keyword arguments.
    family
        What kind of method it is.
    paper
        Where it is from.
    needs
        What it needs beside noisy labels: "noise rate" (estimated unless given), "T" (estimated),
        "two networks", "augmentation".
    gives
        "T" when it estimates one transition matrix, "T(x)" when one for each example, else "-".
    """

    name: str
    estimator: Callable[..., NoisyLabelClassifier]
    family: str
    paper: str
    needs: tuple[str, ...]
    gives: str


CORRECTION = "instance-dependent T"

_ROWS = (
    Method("cross-entropy", CrossEntropyClassifier, "baseline", "-", (), "-"),
    Method(
        "bltm",
        partial(BLTMClassifier, revision=False),
        CORRECTION,
        "Yang et al., ICML 2022",
        ("T",),
        "T(x)",
    ),
    Method("bltm-v", BLTMClassifier, CORRECTION, "Yang et al., ICML 2022", ("T",), "T(x)"),
)

METHODS: dict[str, Method] = {method.name: method for method in _ROWS}


def make_method(name: str, **parameters: Any) -> NoisyLabelClassifier:
    """Return a new estimator of a method.

    Examples
    --------
    >>> make_method("bltm", epochs=3)
    BLTMClassifier(epochs=3, revision=False)
    """
    if name not in METHODS:
        raise InputError("method", f"unknown: {name!r}", f"Use one of {', '.join(METHODS)}.")
    try:
        return METHODS[name].estimator(**parameters)
    except TypeError as error:
        raise InputError("method", f"{name} does not take these options ({error})") from error
