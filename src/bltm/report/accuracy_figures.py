"""Figures of test accuracy: over the noise rate, and against what it costs."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from bltm.benchmark.spec import CEILING, FLOOR
from bltm.report.accuracy_tables import compared_labels
from bltm.report.captions import behind
from bltm.report.names import FAMILIES, family, section
from bltm.report.runs import rate_name
from bltm.report.style import (
    COLOURS,
    FAINT,
    INK,
    SOFT,
    Label,
    label_lines,
    label_points,
    new_figure,
)
from bltm.report.style import OURS as OUR_COLOUR
from bltm.report.summary import Entry, Grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 3
"""Panels beside each other."""


def accuracy_figure(grid: Grid) -> Figure | None:
    """Return accuracy over the noise rate, a panel for each family of methods.

    Each panel shows all methods in grey, its own in colour, and the bounds and BLTM-V for
    comparison. Hollow points are means over fewer seeds than the grid has.
    """
    panels = _panels(grid)
    if len(grid.rates) < 2 or not panels:
        return None
    down = ceil(len(panels) / ACROSS)
    across = min(len(panels), ACROSS)
    key = "grey: all other methods; bars: one standard deviation; hollow: seeds are missing"
    figure = new_figure(
        1.2 + 3.6 * across,
        0.6 + 3.2 * down,
        "Test accuracy over the noise rate",
        f"{behind(grid)}; {key}",
    )
    all_axes = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in all_axes[len(panels) :]:
        axes.set_visible(False)
    low, high = _limits(grid)
    for axes, (title, labels) in zip(all_axes, panels.items(), strict=False):
        axes.set_ylim(low, high)
        axes.set_title(title)
        axes.set_xticks([100 * (rate or 0) for rate in grid.rates])
        _panel(axes, grid, labels)
        axes.tick_params(labelbottom=True)
    figure.supxlabel("noise rate, %", fontsize=9)
    figure.supylabel("test accuracy, %", fontsize=9)
    return figure


def cost_figure(grid: Grid) -> Figure | None:
    """Return accuracy against passes over the data, a panel for each rate.

    Methods that no other beats at their cost or a smaller one are joined by a line and named.
    """
    columns = {rate: _points(grid, rate) for rate in grid.rates}
    columns = {rate: points for rate, points in columns.items() if len(points) > 1}
    if not columns:
        return None
    down, across = ceil(len(columns) / ACROSS), min(len(columns), ACROSS)
    key = "line: nothing cheaper is better"
    figure = new_figure(
        2.4 + 3.2 * across,
        1.0 + 2.9 * down,
        "Test accuracy against cost",
        f"{behind(grid)}; {key}",
    )
    all_axes = figure.subplots(down, across, sharex=True, squeeze=False).ravel()
    for axes in all_axes[len(columns) :]:
        axes.set_visible(False)
    for axes, (rate, points) in zip(all_axes, columns.items(), strict=False):
        axes.set_title(f"noise {rate_name(rate)}" if rate is not None else rate_name(rate))
        _scatter(axes, grid, points)
        axes.tick_params(labelbottom=True)
    figure.supxlabel("passes over the training data", fontsize=9)
    figure.supylabel("test accuracy, %", fontsize=9)
    found = [axes.get_legend_handles_labels() for axes in all_axes]
    legend = {
        name: handle
        for handles, names in found
        for handle, name in zip(handles, names, strict=True)
    }
    figure.legend(legend.values(), legend.keys(), loc="outside right upper", fontsize=8)
    figure.draw_without_rendering()
    for axes, points in zip(all_axes, columns.values(), strict=False):
        _name_points(axes, grid, points)
    return figure


def _panels(grid: Grid) -> dict[str, list[str]]:
    """Return the labels of each panel: by family, then variants and oracles by section."""
    found: dict[str, list[str]] = {name: [] for name in FAMILIES}
    for label in compared_labels(grid):
        method = grid.methods[label]
        if method in (CEILING, FLOOR) or not any(entry.accuracy for entry in grid.of(label)):
            continue
        found.setdefault(family(method) or section(method), []).append(label)
    return {name: labels for name, labels in found.items() if labels}


def _limits(grid: Grid) -> tuple[float, float]:
    entries = [entry for label in compared_labels(grid) for entry in grid.of(label)]
    means = [100 * entry.accuracy.mean for entry in entries if entry.accuracy]
    margin = 0.05 * (max(means) - min(means)) + 0.5
    return min(means) - margin, min(max(means) + margin, 100)


def _panel(axes: Axes, grid: Grid, labels: list[str]) -> None:
    names: list[Label] = []
    for label in compared_labels(grid):
        if label not in labels and grid.methods[label] not in (CEILING, FLOOR, grid.highlighted):
            _line(axes, grid, label, color=FAINT, lw=0.8, zorder=1)
    for method, style, name in ((CEILING, "--", "ceiling"), (FLOOR, ":", "floor (CE)")):
        for label in (label for label in grid.labels if grid.methods[label] == method):
            end = _line(axes, grid, label, color=SOFT, lw=1.3, ls=style, zorder=2)
            names += [Label(*end, name, SOFT)] if end else []
    others = [label for label in labels if grid.methods[label] != grid.highlighted]
    ours = [label for label in grid.labels if grid.methods[label] == grid.highlighted]
    coloured = [(label, COLOURS[i % len(COLOURS)]) for i, label in enumerate(others)]
    for label, colour in [*coloured, *((label, OUR_COLOUR) for label in ours)]:
        mine = colour == OUR_COLOUR
        _line(axes, grid, label, color=colour, lw=2.2 if mine else 1.5, zorder=5 if mine else 4)
        end = _marks(axes, grid.of(label), colour)
        names += [Label(*end, grid.title_of(label), colour, mine)] if end else []
    label_lines(axes, names)


def _line(axes: Axes, grid: Grid, label: str, **style: object) -> tuple[float, float] | None:
    """Draw the means of a method and return the last point."""
    points = _means(grid.of(label))
    if not points:
        return None
    axes.plot(*zip(*points, strict=True), **style)  # type: ignore[arg-type]
    return points[-1]


def _means(entries: tuple[Entry, ...]) -> list[tuple[float, float]]:
    return [(100 * (e.rate or 0), 100 * e.accuracy.mean) for e in entries if e.accuracy]


def _marks(axes: Axes, entries: tuple[Entry, ...], colour: str) -> tuple[float, float] | None:
    """Draw points and their spread and return the last one."""
    end = None
    for entry in entries:
        if entry.accuracy is None:
            continue
        end = (100 * (entry.rate or 0), 100 * entry.accuracy.mean)
        face = colour if entry.complete else "white"
        axes.errorbar(
            *end,
            yerr=100 * (entry.accuracy.std or 0),
            color=colour,
            marker="o",
            ms=4,
            mfc=face,
            elinewidth=0.9,
            zorder=6,
        )
    return end


def _points(grid: Grid, rate: float | None) -> dict[str, tuple[float, float]]:
    points = {}
    for label in compared_labels(grid):
        entry = grid.entries.get((label, rate))
        if entry is None or grid.methods[label] == CEILING or family(entry.method) is None:
            continue
        passes, accuracy = entry.stat("figures", "passes"), entry.accuracy
        if passes is not None and accuracy is not None and entry.complete:
            points[label] = (passes.mean, 100 * accuracy.mean)
    return points


def _scatter(axes: Axes, grid: Grid, points: dict[str, tuple[float, float]]) -> None:
    front = _front(points)
    axes.plot(*zip(*(points[label] for label in front), strict=True), color=FAINT, lw=1.2, zorder=1)
    colours = dict(zip(FAMILIES, COLOURS, strict=False))
    for name in ("baseline", *FAMILIES):
        mine = [label for label in points if family(grid.methods[label]) == name]
        found = [points[label] for label in mine]
        if not found:
            continue
        axes.scatter(
            [x for x, _ in found],
            [y for _, y in found],
            color=colours.get(name, INK),
            s=22,
            label=name,
            zorder=3,
        )
    axes.margins(0.13, 0.14)


def _name_points(axes: Axes, grid: Grid, points: dict[str, tuple[float, float]]) -> None:
    names = []
    for label in [label for label in points if grid.methods[label] == grid.highlighted]:
        axes.scatter(*points[label], color=OUR_COLOUR, s=60, marker="D", zorder=4)
        names.append(Label(*points[label], grid.title_of(label), OUR_COLOUR, True))
    for label in _front(points):
        if grid.methods[label] != grid.highlighted:
            names.append(Label(*points[label], grid.title_of(label), INK))
    label_points(axes, list(points.values()), names)


def _front(points: dict[str, tuple[float, float]]) -> list[str]:
    """Return the labels that nothing cheaper beats, by cost."""
    front: list[str] = []
    for label in sorted(points, key=lambda label: (points[label][0], -points[label][1])):
        if not front or points[label][1] > points[front[-1]][1]:
            front.append(label)
    return front
