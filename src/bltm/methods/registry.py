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
    gives
        "T(x)" when it estimates a transition matrix for each example, "-" when it does not.
    """

    name: str
    estimator: Callable[..., NoisyLabelClassifier]
    family: str
    paper: str
    gives: str


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("cross-entropy", CrossEntropyClassifier, "baseline", "-", "-"),
        Method(
            "bltm",
            partial(BLTMClassifier, revision=False),
            "instance-dependent T",
            "Yang et al., ICML 2022",
            "T(x)",
        ),
        Method("bltm-v", BLTMClassifier, "instance-dependent T", "Yang et al., ICML 2022", "T(x)"),
    )
}


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
