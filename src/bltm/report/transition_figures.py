"""Figures of the transition: its error over training, and average matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from bltm.report.captions import behind
from bltm.report.comparison import Stat
from bltm.report.runs import Run, rate_name
from bltm.report.style import COLOURS, INK, SOFT, Label, draw_band, label_lines, new_figure
from bltm.report.style import OURS as OUR_COLOUR
from bltm.report.summary import ROW_ERROR, Entry, Grid, takes_part

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

USUAL_RATE = 0.3
ACROSS = 4


def error_figure(grid: Grid) -> Figure | None:
    """Return the error of the used row of T(x) over training, a panel for each rate.

    A line is the mean over seeds, its shade one standard deviation. A point starts a stage. A T
    that was not seen to change is a level without points.
    """
    rates = [rate for rate in grid.rates if any(_watched(e) for e in _column(grid, rate))]
    if not rates:
        return None
    across, down = min(len(rates), 3), ceil(len(rates) / 3)
    key = "shade: one standard deviation; points: a stage starts"
    figure = new_figure(
        1.6 + 4.4 * across,
        0.6 + 3.6 * down,
        "Error of the used row of T(x) over training",
        f"{behind(grid)}; {key}",
    )
    all_axes = figure.subplots(down, across, squeeze=False).ravel()
    for axes in all_axes[len(rates) :]:
        axes.set_visible(False)
    for axes, rate in zip(all_axes, rates, strict=False):
        axes.set_title(f"noise {rate_name(rate)}")
        _error_panel(axes, grid, rate)
    figure.supxlabel("epochs of all stages with T", fontsize=9)
    figure.supylabel("mean ℓ1 error", fontsize=9)
    return figure


def matrices_figure(grid: Grid) -> Figure | None:
    """Return heat maps of the average T, true and estimated, for one noisy data set."""
    chosen = _one_cell(grid)
    if not chosen:
        return None
    from matplotlib.colors import PowerNorm

    first = next(iter(chosen.values()))
    truth = np.array(first.get("figures", "true_mean_transition"))
    panels = {"true": truth} | {
        label: np.array(run.get("figures", "mean_transition")) for label, run in chosen.items()
    }
    across, down = min(len(panels), ACROSS), ceil(len(panels) / ACROSS)
    place = f"noise {rate_name(first.rate)}, seed {first.seed}"
    figure = new_figure(
        0.9 + 2.5 * across,
        0.8 + 2.75 * down,
        "Average T of each right class",
        f"{behind(grid).rpartition(', ')[0]}, {place}",
    )
    all_axes = figure.subplots(down, across, squeeze=False).ravel()
    for axes in all_axes[len(panels) :]:
        axes.set_visible(False)
    # Most entries are small; the square root tells them apart.
    norm = PowerNorm(0.5, 0.0, 1.0)
    image = None
    for axes, (label, matrix) in zip(all_axes, panels.items(), strict=False):
        image = axes.imshow(matrix, cmap="Blues", norm=norm, interpolation="nearest")
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        ticks = range(0, len(matrix), 1 if len(matrix) <= 10 else 5)
        axes.set_xticks(ticks)
        axes.set_yticks(ticks)
        axes.tick_params(length=0, labelsize=7)
        error = np.abs(matrix - truth).sum(axis=1).mean()
        name = "true" if label == "true" else f"{grid.title_of(label)}: off by {error:.2f}"
        colour = OUR_COLOUR if grid.methods.get(label) == grid.highlighted else INK
        axes.set_title(name, color=colour, fontsize=9)
    figure.supxlabel("given label", fontsize=9)
    figure.supylabel("right label", fontsize=9)
    assert image is not None
    bar = figure.colorbar(image, ax=all_axes.tolist(), shrink=0.7, aspect=30, pad=0.01)
    bar.set_ticks([0, 0.01, 0.05, 0.1, 0.25, 0.5, 1])
    bar.ax.set_yticklabels(["0", "0.01", "0.05", "0.1", "0.25", "0.5", "1"], fontsize=7)
    bar.outline.set_visible(False)
    return figure


def _column(grid: Grid, rate: float | None) -> list[Entry]:
    found = (grid.entries.get((label, rate)) for label in grid.labels)
    return [entry for entry in found if entry is not None]


def _curves(entry: Entry) -> list[list[Mapping[str, Any]]]:
    """Return the points of each seed that have the error of T, in the order of training."""
    return list(filter(None, map(_curve, entry.runs.values())))


def _watched(entry: Entry) -> bool:
    """Return whether the error of T was asked for; a revision shows a bit of it without."""
    asked = any(run.get("spec", "watch_transition") for run in entry.runs.values())
    return asked and bool(_curves(entry))


def _curve(run: Run) -> list[Mapping[str, Any]]:
    points = [p for p in run.get("figures", "curve") or () if p.get("row_error") is not None]
    # Stages are in the order of training in the account of time, and need not be in a curve.
    order = {stage: i for i, stage in enumerate(run.get("cost", "stages") or ())}
    return sorted(points, key=lambda point: order.get(point["stage"], len(order)))


def _error_panel(axes: Axes, grid: Grid, rate: float | None) -> None:
    from matplotlib.ticker import MaxNLocator

    entries = [e for e in _column(grid, rate) if takes_part(e.method) and _has_error(e)]
    others = [entry for entry in entries if entry.method != grid.highlighted]
    longest = max(len(_common_steps(_curves(entry))) for entry in entries)
    names: list[Label] = []
    for entry in entries:
        ours = entry.method == grid.highlighted
        colour = OUR_COLOUR if ours else COLOURS[others.index(entry) % len(COLOURS)]
        end = _error_line(axes, entry, colour, longest, 2.2 if ours else 1.5)
        names.append(Label(longest + 1, end, grid.title_of(entry.label), colour, ours))
    for name, figure, style in (
        ("true class average", "class_row_error", "--"),
        ("true targets, mean flip rate", "mean_flip_row_error", ":"),
    ):
        level = Stat.of(v for e in entries for v in e.numbers("figures", figure).values())
        if level is not None:
            axes.axhline(level.mean, color=SOFT, lw=1.2, ls=style, zorder=1)
            names.append(Label(longest + 1, level.mean, name, SOFT))
    axes.set_xlim(0, longest + 1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(bottom=0)
    axes.set_ylim(axes.get_ylim())
    label_lines(axes, names)


def _has_error(entry: Entry) -> bool:
    return bool(_curves(entry)) or entry.stat(*ROW_ERROR) is not None


def _error_line(axes: Axes, entry: Entry, colour: str, longest: int, width: float) -> float:
    """Draw the error of a method and return where it ends; T that never changes is a level."""
    steps = _common_steps(_curves(entry))
    if not steps:
        level = entry.stat(*ROW_ERROR)
        assert level is not None
        draw_band(axes, [1, longest], [level, level], colour, 1.0, width)
        return level.mean
    stats = [stat for _, stat in steps]
    draw_band(axes, list(range(1, len(steps) + 1)), stats, colour, 1.0, width)
    stages = [stage for (stage, _), _ in steps]
    starts = [i for i, stage in enumerate(stages) if i == 0 or stage != stages[i - 1]]
    axes.plot([i + 1 for i in starts], [stats[i].mean for i in starts], "o", ms=4, color=colour)
    end = stats[-1].mean
    axes.plot([len(steps), longest + 1], [end, end], color=colour, lw=0.8, ls=":")
    return end


def _common_steps(
    curves: Sequence[Sequence[Mapping[str, Any]]],
) -> list[tuple[tuple[str, int], Stat]]:
    """Return the steps that all seeds have, in order, with the error over seeds."""
    if not curves:
        return []
    by_step = [{(p["stage"], p["epoch"]): float(p["row_error"]) for p in c} for c in curves]
    common = [step for step in by_step[0] if all(step in other for other in by_step)]
    stats = ((step, Stat.of(found[step] for found in by_step)) for step in common)
    return [(step, stat) for step, stat in stats if stat is not None]


def _one_cell(grid: Grid) -> dict[str, Run]:
    """Return the runs with matrices of one noisy data set: the first seed at the usual rate."""
    entries = [entry for entry in grid.entries.values() if takes_part(entry.method)]
    runs = [(entry.label, run) for entry in entries for run in entry.runs.values()]
    found = [
        (label, run)
        for label, run in runs
        if run.get("figures", "mean_transition") and run.get("figures", "true_mean_transition")
    ]
    if not found:
        return {}
    rates = sorted({run.rate or 0.0 for _, run in found}, key=lambda r: (abs(r - USUAL_RATE), r))
    at_rate = [(label, run) for label, run in found if (run.rate or 0.0) == rates[0]]
    seed = min(run.seed for _, run in at_rate)
    chosen = {label: run for label, run in at_rate if run.seed == seed}
    return {label: chosen[label] for label in grid.labels if label in chosen}
