"""A grid: methods times data sets times noise times rates times seeds, read from TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from bltm.benchmark.spec import CEILING, FLOOR, REAL, Cell, RunSpec
from bltm.core.errors import InputError

QUICK = "quick"
PARTS = "parts"
# What a grid, or a part of one, may say, and of what kind it has to be.
KEYS: dict[str, type | tuple[type, ...]] = {
    "data": str,
    "images": int,
    "noise": str,
    "noise_options": dict,
    "rates": list,
    "seeds": list,
    "methods": list,
    "bounds": list,
    "parameters": dict,
    "method_parameters": dict,
    "watch_transition": bool,
}
BOUNDS = (CEILING, FLOOR)


@dataclass(frozen=True)
class Grid:
    """What to run.

    Attributes
    ----------
    name, title, description
        What it is called, and what it is for.
    runs
        All runs, each once; those of one noisy data set follow each other.
    """

    name: str
    title: str
    description: str
    runs: tuple[RunSpec, ...]


def load_grid(
    name: str, *, quick: bool = False, parameters: Mapping[str, Any] | None = None
) -> Grid:
    """Return the grid of a TOML file, or one that is built in.

    Parameters
    ----------
    name
        Path of a file, or a name of ``built_in_grids``.
    quick
        Take the smaller form that the grid describes.
    parameters
        Arguments of all estimators, on top of the grid's own.

    Examples
    --------
    >>> grid = load_grid("paper-fmnist-cpu", quick=True)
    >>> grid.title
    'Fashion-MNIST, 10,000 images'
    """
    path = Path(name)
    if path.suffix == ".toml":
        if not path.is_file():
            raise InputError("grid", f"there is no file '{path}'")
        text, stem = path.read_text(encoding="utf-8"), path.stem
    elif name in built_in_grids():
        text = (resources.files("bltm.benchmark") / "grids" / f"{name}.toml").read_text("utf-8")
        stem = name
    else:
        raise InputError(
            "grid",
            f"there is no grid '{name}'",
            f"Give a .toml file or one of {', '.join(built_in_grids())}.",
        )
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError("grid", f"'{name}' is not TOML: {error}") from error
    return parse_grid(values, stem, quick=quick, parameters=parameters)


def built_in_grids() -> list[str]:
    """Return the names of the grids that come with the package."""
    folder = resources.files("bltm.benchmark") / "grids"
    return sorted(
        item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml")
    )


def parse_grid(
    values: Mapping[str, Any],
    name: str,
    *,
    quick: bool = False,
    parameters: Mapping[str, Any] | None = None,
) -> Grid:
    """Return the grid that plain values describe; a key that is unknown is an error.

    Examples
    --------
    >>> values = {"data": "digits", "rates": [0.2, 0.4], "seeds": [0], "methods": ["bltm"]}
    >>> [(run.method, run.cell.rate) for run in parse_grid(values, "mine").runs][:3]
    [('clean', 0.2), ('cross-entropy', 0.2), ('bltm', 0.2)]
    """
    head = {"title": str, "description": str, QUICK: dict, PARTS: list}
    _check(values, {**KEYS, **head}, f"grid '{name}'")
    if quick and QUICK not in values:
        raise InputError("quick", f"grid '{name}' has no quick form", "Leave --quick out.")
    common = {key: value for key, value in values.items() if key in KEYS}
    smaller = values.get(QUICK, {})
    _check(smaller, KEYS, f"[quick] of grid '{name}'")
    changes = smaller if quick else {}
    runs: dict[str, RunSpec] = {}
    for part in values.get(PARTS, [{}]):
        _check(part, KEYS, f"a part of grid '{name}'")
        merged = {"noise": "instance", "bounds": list(BOUNDS), **common, **part, **changes}
        for run in _expanded(merged, name, parameters or {}):
            runs.setdefault(run.id, run)
    return Grid(
        name, values.get("title", name), values.get("description", ""), tuple(runs.values())
    )


def _expanded(values: Mapping[str, Any], name: str, parameters: Mapping[str, Any]) -> list[RunSpec]:
    rates: Sequence[float | None] = values.get("rates", [])
    if values["noise"] == REAL:
        if rates:
            raise InputError("rates", "a data set that is noisy by itself has none", "Drop them.")
        rates = [None]
    for key, given in (("data", values.get("data")), ("rates", rates)):
        if not given:
            raise InputError(key, f"is missing from grid '{name}'")
    for key in ("seeds", "methods"):
        if not values.get(key):
            raise InputError(key, f"is missing from grid '{name}'", "Give a list.")
    for bound in values["bounds"]:
        if bound not in BOUNDS:
            raise InputError("bounds", f"unknown: {bound!r}", f"Use some of {', '.join(BOUNDS)}.")
    own = values.get("method_parameters", {})
    methods = list(dict.fromkeys([*values["bounds"], *values["methods"]]))
    for method in own:
        if method not in methods:
            raise InputError("method_parameters", f"'{method}' is none of the grid's methods")
    return [
        RunSpec(
            Cell(
                values["data"],
                values.get("images"),
                values["noise"],
                None if rate is None else float(rate),
                int(seed),
                values.get("noise_options", {}),
            ),
            method,
            {**values.get("parameters", {}), **own.get(method, {}), **parameters},
            bool(values.get("watch_transition", False)) and method not in BOUNDS,
        )
        for seed in values["seeds"]
        for rate in rates
        for method in methods
    ]


def _check(values: Mapping[str, Any], keys: Mapping[str, Any], where: str) -> None:
    for key, value in values.items():
        if key not in keys:
            raise InputError(
                "grid", f"{where} has the unknown key '{key}'", f"Known are {', '.join(keys)}."
            )
        if not isinstance(value, keys[key]) or (isinstance(value, bool) and keys[key] is int):
            raise InputError("grid", f"'{key}' of {where} cannot be {value!r}")
