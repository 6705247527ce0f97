"""The figure of the collection: its quality and its size over the threshold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bltm.report.captions import behind, has_published
from bltm.report.collection_table import RHOS
from bltm.report.comparison import Stat
from bltm.report.paper_values import DISTILLATION, SETUP
from bltm.report.runs import rate_name
from bltm.report.style import SOFT, Label, draw_band, label_lines, new_figure
from bltm.report.summary import Entry, Grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def collection_figure(grid: Grid) -> Figure | None:
    """Return quality and number of collected examples over the threshold on the posterior.

    Methods with the same posterior share a line of panels.
    """
    lines = _distinct_sweeps(grid)
    if not lines:
        return None
    key = "shade: one standard deviation"
    key += "; diamonds: the paper" if _has_published_points(grid) else ""
    figure = new_figure(
        9.6,
        0.6 + 3.3 * len(lines),
        "Collected examples over the threshold on the noisy posterior",
        f"{behind(grid)}; {key}",
    )
    for (left, right), (title, label) in zip(
        figure.subplots(len(lines), 2, sharex=True, squeeze=False), lines.items(), strict=True
    ):
        which = f" ({title})" if len(lines) > 1 else ""
        left.set_title(f"Quality{which}")
        left.set_ylabel("inferred label is right, %")
        right.set_title(f"Number{which}")
        right.set_ylabel("share of training examples, %")
        for axes, name in ((left, "right"), (right, "count")):
            _panel(axes, grid, label, name)
    return figure


def _panel(axes: Axes, grid: Grid, label: str, name: str) -> None:
    entries = [entry for entry in grid.of(label) if _over_threshold(entry, name)]
    names = []
    for entry, colour in zip(entries, _shades(len(entries)), strict=True):
        points = _over_threshold(entry, name)
        draw_band(axes, list(points), list(points.values()), colour)
        end = max(points)
        names.append(Label(end, 100 * points[end].mean, rate_name(entry.rate), colour))
        if _has_published_points(grid):
            _published_points(axes, grid, entry, name, colour)
    axes.set_xlabel("threshold")
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, -1), min(high, 101))
    _thresholds(axes)
    label_lines(axes, names)


def _distinct_sweeps(grid: Grid) -> dict[str, str]:
    """Return a label for each posterior that was swept, by the names of all that have it."""
    by_sweep: dict[str, list[str]] = {}
    for label in grid.labels:
        sweeps = [(e.rate, sorted(_sweeps(e).items())) for e in grid.of(label) if _sweeps(e)]
        if sweeps:
            by_sweep.setdefault(json.dumps(sweeps), []).append(label)
    return {", ".join(map(grid.title_of, labels)): labels[0] for labels in by_sweep.values()}


def _shades(n: int) -> list[str]:
    """Return colours from dark to light, for rates in their order."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colormaps["viridis"](0.85 * i / max(n - 1, 1))) for i in range(n)]


def _sweeps(entry: Entry) -> dict[int, Sequence[Mapping[str, Any]]]:
    found = {s: run.get("figures", "collection", "sweep") for s, run in entry.runs.items()}
    return {seed: sweep for seed, sweep in found.items() if sweep}


def _over_threshold(entry: Entry, name: str) -> dict[float, Stat]:
    """Return a share over thresholds: of right labels, or of collected examples."""
    values: dict[float, list[float]] = {}
    for seed, sweep in _sweeps(entry).items():
        total = entry.runs[seed].number("figures", "collection", "of") or 1.0
        for point in sweep:
            if point.get(name) is not None:
                share = point[name] / (total if name == "count" else 1.0)
                values.setdefault(point["threshold"], []).append(share)
    most = max((len(found) for found in values.values()), default=0)
    stats = {t: Stat.of(found) for t, found in sorted(values.items()) if len(found) == most}
    return {threshold: stat for threshold, stat in stats.items() if stat is not None}


def _has_published_points(grid: Grid) -> bool:
    return has_published(grid) and grid.setting.data in DISTILLATION


def _published_points(axes: Axes, grid: Grid, entry: Entry, name: str, colour: str) -> None:
    for rho in RHOS:
        value = DISTILLATION.get(grid.setting.data, {}).get((entry.rate or 0.0, rho))
        if value is not None:
            y = value.right if name == "right" else value.count / SETUP[grid.setting.data].images
            axes.plot((1 + rho) / 2, 100 * y, "D", mfc="white", mec=colour, ms=5, zorder=5)


def _thresholds(axes: Axes) -> None:
    for rho in RHOS:
        axes.axvline((1 + rho) / 2, color=SOFT, lw=0.8, ls=":", zorder=1)
        axes.annotate(
            rf"$\rho_{{max}} = {rho}$",
            ((1 + rho) / 2, 0.03),
            xycoords=axes.get_xaxis_transform(),
            xytext=(-3, 0),
            textcoords="offset points",
            rotation=90,
            fontsize=7,
            color=SOFT,
            ha="right",
            va="bottom",
        )
