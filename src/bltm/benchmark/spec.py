"""What a run is: a noisy data set, a method, and the method's parameters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

REAL = "none"
"""The noise model of data sets whose labels are noisy by themselves."""

CEILING = "clean"
"""Cross-entropy on the right labels: the upper bound of a grid."""

FLOOR = "cross-entropy"
"""Cross-entropy on the noisy labels: the lower bound of a grid."""


@dataclass(frozen=True)
class Cell:
    """One noisy data set, which all methods of a grid share.

    Attributes
    ----------
    data
        Name of a registered data set.
    images
        Number of training examples, drawn by the seed; None for all of them.
    noise
        Name of a noise model, or "none" for a data set that is noisy by itself.
    rate
        Nominal noise rate; None for a data set that is noisy by itself.
    seed
        Of the choice of examples, of the noise, and of the methods.
    noise_options
        Further arguments of the noise model.

    Examples
    --------
    >>> Cell("fashion-mnist", 10_000, "instance", 0.3, seed=0).id
    'fashion-mnist-10000-instance-0.3-0-44136fa3'
    """

    data: str
    images: int | None
    noise: str
    rate: float | None
    seed: int
    noise_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Return a readable name that no other cell has."""
        parts = (self.data, self.images or "all", self.noise, self.rate, self.seed)
        options = hash_of(self.noise_options)[:8]
        return "-".join([*(str(part) for part in parts if part is not None), options])


@dataclass(frozen=True)
class RunSpec:
    """One method on one cell.

    Attributes
    ----------
    cell
        The noisy data set.
    method
        Name of a method or of a variant, or "clean".
    parameters
        Arguments of the estimator that differ from its defaults.
    watch_transition
        Whether the error of T is measured after each epoch.

    Examples
    --------
    >>> cell = Cell("digits", None, "instance", 0.3, seed=0)
    >>> run = RunSpec(cell, "bltm", {"epochs": 2})
    >>> run.id == RunSpec.from_json(run.to_json()).id
    True
    >>> run.id == RunSpec(cell, "bltm", {"epochs": 3}).id
    False
    """

    cell: Cell
    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    watch_transition: bool = False

    @property
    def id(self) -> str:
        """Return 16 hexadecimal digits that depend on everything the run is."""
        return hash_of(self.to_json())[:16]

    def to_json(self) -> dict[str, Any]:
        """Return the run as plain values; a row of results has them as ``spec``."""
        values = {
            "data": self.cell.data,
            "images": self.cell.images,
            "noise": self.cell.noise,
            "rate": self.cell.rate,
            "seed": self.cell.seed,
            "noise_options": dict(self.cell.noise_options),
            "method": self.method,
            "parameters": dict(self.parameters),
        }
        return {**values, "watch_transition": True} if self.watch_transition else values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RunSpec:
        """Return the run of ``to_json``."""
        names = ("data", "images", "noise", "rate", "seed", "noise_options")
        cell = Cell(**{name: values[name] for name in names})
        return cls(
            cell, values["method"], values["parameters"], values.get("watch_transition", False)
        )


def hash_of(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of plain values, whatever their order.

    Examples
    --------
    >>> hash_of({"a": 1, "b": 2}) == hash_of({"b": 2, "a": 1})
    True
    """
    text = json.dumps(values, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
