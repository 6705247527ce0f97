"""What runs are called in a table: their method, and what tells them from others of its name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bltm.report.runs import Run


def run_labels(runs: Sequence[Run]) -> dict[str, str]:
    """Return the label of each run: its method, and what tells it from others of that method.

    Parameters that differ between rates only (a noise rate that was given, say) are no part of it.
    """
    places: dict[tuple[str, float | None], list[Run]] = {}
    for run in runs:
        places.setdefault((run.method, run.rate), []).append(run)
    varying: dict[str, set[str]] = {}
    for (method, _), found in places.items():
        names = {name for run in found for name in run.parameters}
        varying.setdefault(method, set()).update(
            name for name in names if len({_plain(run, name) for run in found}) > 1
        )
    labels = {}
    for run in runs:
        details = [f"{name}={_plain(run, name)}" for name in sorted(varying[run.method])]
        labels[run.id] = run.method + (f" ({', '.join(details)})" if details else "")
    return labels


def _plain(run: Run, name: str) -> str:
    if name not in run.parameters:
        return "default"
    value: Any = run.parameters[name]
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
