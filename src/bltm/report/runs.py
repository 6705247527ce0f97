"""Result rows as records: what was run, and how to get at its figures."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from bltm.benchmark.rows import read_rows
from bltm.benchmark.spec import REAL
from bltm.core.errors import InputError
from bltm.report.names import data_name, percent

DONE = "done"


@dataclass(frozen=True, order=True)
class Setting:
    """What all methods of a table share: the data set and the noise model.

    Attributes
    ----------
    data
        Name of the data set.
    images
        Number of training examples; 0 for all of them.
    noise
        Name of the noise model.
    options
        Further arguments of the noise model, as JSON.
    """

    data: str
    images: int
    noise: str
    options: str = "{}"

    @property
    def title(self) -> str:
        """Return the setting in words.

        Examples
        --------
        >>> Setting("fashion-mnist", 10_000, "instance", '{"rho_max": 0.6}').title
        'Fashion-MNIST, 10,000 training examples, instance noise (rho_max = 0.6)'
        """
        amount = f"{self.images:,}" if self.images else "all"
        noise = "its own labels" if self.noise == REAL else f"{self.noise} noise"
        pairs = json.loads(self.options).items()
        details = ", ".join(f"{name} = {value}" for name, value in pairs)
        noise += f" ({details})" if details else ""
        return f"{data_name(self.data)}, {amount} training examples, {noise}"


@dataclass(frozen=True, eq=False)
class Run:
    """One result row.

    Attributes
    ----------
    id
        Of the run; the same for each attempt at it.
    setting, rate, seed
        The noisy data set; the rate is None where the data is noisy by itself.
    method, parameters
        What was fitted.
    row
        The whole row.
    """

    id: str
    setting: Setting
    rate: float | None
    seed: int
    method: str
    parameters: Mapping[str, Any]
    row: Mapping[str, Any]

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Run:
        """Return the record of a row; raises KeyError or TypeError where a row is none."""
        spec = row["spec"]
        if row["status"] == DONE:
            float(row["figures"]["accuracy"])
        options = json.dumps(dict(spec.get("noise_options") or {}), sort_keys=True)
        setting = Setting(spec["data"], spec["images"] or 0, spec["noise"], options)
        parameters = dict(spec.get("parameters") or {})
        return cls(
            row["id"], setting, spec["rate"], int(spec["seed"]), spec["method"], parameters, row
        )

    @property
    def done(self) -> bool:
        """Return whether the run has figures."""
        return bool(self.row["status"] == DONE)

    def get(self, *path: str) -> Any:
        """Return what the row has under these names, one inside the other, or None."""
        value: Any = self.row
        for name in path:
            if not isinstance(value, Mapping) or value.get(name) is None:
                return None
            value = value[name]
        return value

    def number(self, *path: str) -> float | None:
        """Return a finite number of the row, of a list the mean; None where it has none there."""
        value = self.get(*path)
        if isinstance(value, list) and value:
            value = fmean(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value) if math.isfinite(value) else None


def as_runs(rows: Iterable[Mapping[str, Any]]) -> tuple[Run, ...]:
    """Return rows as records; of several rows of one run the last one counts."""
    runs = {}
    for row in rows:
        try:
            run = Run.from_row(row)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                "rows",
                f"the row {str(row.get('id'))!r} is no result of 'bltm bench' "
                f"({type(error).__name__}: {error})",
            ) from error
        runs[run.id] = run
    return tuple(runs.values())


def read_runs(*paths: Path) -> tuple[Run, ...]:
    """Return the runs of one grid, whose rows are in one file or in several.

    Raises
    ------
    InputError
        If a file is missing or has no rows.
    """
    rows: list[dict[str, Any]] = []
    for path in paths:
        if not path.is_file():
            raise InputError("rows", f"there is no file '{path}'")
        found = read_rows(path)
        if not found:
            raise InputError(
                "rows", f"'{path}' has no result rows", "Give a file that 'bltm bench' wrote."
            )
        rows += found
    return as_runs(rows)


def rate_name(rate: float | None) -> str:
    """Return a noise rate as a heading.

    Examples
    --------
    >>> rate_name(0.3), rate_name(None)
    ('30 %', 'own labels')
    """
    return "own labels" if rate is None else percent(rate)
