"""Everything that is needed to repeat a run, as one flat record that is written to disk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bltm import __version__
from bltm.core.errors import InputError

if TYPE_CHECKING:
    from bltm.data.source import Source
    from bltm.methods.base import NoisyLabelClassifier

# Fields that are arguments of every estimator, where the user gave them.
_COMMON = (
    "net",
    "preset",
    "epochs",
    "batch_size",
    "lr",
    "augment",
    "weights",
    "image_size",
    "device",
)
_OWN = ("rho_max", "collector", "noise_rate")


@dataclass(frozen=True)
class RunConfig:
    """One run. None means that the method's own default holds.

    Attributes
    ----------
    data
        File, folder or registered name.
    label, image, id, classes, skip_unreadable
        How the data is read; see ``open_source``.
    method, seed
        Name in the table of methods, and the seed of all random streams.
    preset, epochs, batch_size, lr, net, weights, image_size, augment
        Arguments of every estimator.
    rho_max, collector, noise_rate
        Arguments of some.
    audit_folds
        Argument of every estimator; here by default 3, for a run ends with an audit.
    labels
        Table of labels by id that take the place of those in the data, such as corrected ones.
    parameters
        Further arguments of the estimator, by name.
    device, precision, devices, num_nodes
        Where and how to compute.
    data_sha256
        Hash of the data that was read.
    bltm
        Version of the package.

    Examples
    --------
    >>> RunConfig("table.csv", label="species").method
    'bltm-v'
    """

    data: str
    label: str | None = None
    image: str | None = None
    id: str | None = None
    classes: tuple[str, ...] | None = None
    skip_unreadable: bool = False
    method: str = "bltm-v"
    seed: int = 0
    preset: str | None = None
    epochs: int | None = None
    batch_size: int | None = None
    lr: float | None = None
    net: str | None = None
    weights: str | None = None
    image_size: int | None = None
    rho_max: float | None = None
    collector: str | None = None
    noise_rate: float | None = None
    augment: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    audit_folds: int = 3
    labels: str | None = None
    device: str = "auto"
    precision: str = "32-true"
    devices: int = 1
    num_nodes: int = 1
    data_sha256: str = ""
    bltm: str = __version__

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain values."""
        values = asdict(self)
        values["classes"] = None if self.classes is None else list(self.classes)
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any], origin: str = "config.json") -> RunConfig:
        """Return the record of ``to_json``; a key that is unknown or missing is an error."""
        names = {item.name for item in fields(cls)}
        unknown = sorted(set(values) - names)
        if unknown:
            raise InputError(
                origin,
                f"has the unknown key {', '.join(map(repr, unknown))}",
                f"Known are {', '.join(sorted(names))}.",
            )
        if "data" not in values:
            raise InputError(origin, "has no key 'data'", "It says what to learn from.")
        classes = values.get("classes")
        return cls(**{**values, "classes": None if classes is None else tuple(classes)})

    def differences(self, other: RunConfig) -> list[str]:
        """Return what differs, in words. Where the data lies does not count, what it is does.

        Examples
        --------
        >>> RunConfig("a.csv", seed=1).differences(RunConfig("b.csv", seed=2))
        ['seed: 1, now 2']
        """
        mine, theirs = self.to_json(), other.to_json()
        found = []
        for name in mine:
            if name in ("data", "labels") or mine[name] == theirs[name]:
                continue
            if name == "data_sha256":
                found.append("the data has changed")
            else:
                found.append(f"{name}: {_shown(mine[name])}, now {_shown(theirs[name])}")
        return found

    def open_source(self) -> Source:
        """Read the data."""
        from bltm.data.source import open_source

        source = open_source(
            self.data,
            label=self.label,
            image=self.image,
            id=self.id,
            classes=self.classes,
            unreadable="skip" if self.skip_unreadable else "raise",
        )
        if self.labels is None:
            return source
        from bltm.runs.relabel import relabelled

        return relabelled(source, Path(self.labels))

    def make_estimator(self) -> NoisyLabelClassifier:
        """Return the estimator, its arguments checked as far as that needs no data."""
        from bltm.methods.registry import make_method

        estimator = make_method(self.method)
        given: dict[str, Any] = {
            name: getattr(self, name)
            for name in (*_COMMON, *_OWN)
            if getattr(self, name) is not None
        }
        given |= {
            "random_state": self.seed,
            "audit_folds": self.audit_folds,
            "precision": self.precision,
            "classes": None if self.classes is None else list(self.classes),
            **self.parameters,
        }
        known = estimator.get_params(deep=False)
        for name in given:
            if name not in known:
                own = sorted(set(known) - set(make_method("cross-entropy").get_params(deep=False)))
                raise InputError(
                    name,
                    f"is not an option of the method '{self.method}'",
                    f"Its own options are {', '.join(own)}." if own else "Leave it out.",
                )
        if self.weights is not None and not Path(self.weights).is_file():
            raise InputError("weights", f"there is no file '{self.weights}'")
        _check_names(self)
        for name, value in self.parameters.items():
            _check_kind(name, value, known[name])
        estimator.set_params(**given)
        try:
            estimator.plan(2)  # raises for presets, collectors and numbers that cannot be
        except TypeError as error:
            names = ", ".join(self.parameters)
            raise InputError("set", f"{names}: a value is of the wrong kind ({error})") from error
        return estimator


def parse_parameters(pairs: Sequence[str]) -> dict[str, Any]:
    """Return the parameters given as NAME=VALUE; values are JSON, or else text.

    Examples
    --------
    >>> parse_parameters(["q=0.5", "truncated=true", "prior=labels"])
    {'q': 0.5, 'truncated': True, 'prior': 'labels'}
    """
    parameters = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise InputError("set", f"needs NAME=VALUE, got {pair!r}", "Write --set q=0.5.")
        try:
            parameters[name] = json.loads(value)
        except json.JSONDecodeError:
            parameters[name] = value
    return parameters


def _check_kind(name: str, value: Any, default: Any) -> None:
    """Refuse text for a number and the like, as far as the default tells what is expected."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(default, bool) and not isinstance(value, bool):
        raise InputError(name, f"must be true or false, got {value!r}")
    if isinstance(default, (int, float)) and not isinstance(default, bool) and not number:
        raise InputError(name, f"must be a number, got {value!r}")


def _check_names(config: RunConfig) -> None:
    from bltm.engine.devices import check_precision, split_device
    from bltm.nets.registry import NETS

    split_device(config.device)
    if config.net is not None and config.net not in ("auto", *NETS):
        raise InputError("net", f"unknown: {config.net!r}", f"Use one of auto, {', '.join(NETS)}.")
    check_precision(config.precision)


def _shown(value: Any) -> str:
    return "not given" if value is None else str(value)
