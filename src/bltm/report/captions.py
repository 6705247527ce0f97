"""Sentences that tables carry: what is behind the numbers, and what they can be compared with."""

from __future__ import annotations

from bltm.benchmark.spec import REAL
from bltm.report.names import data_name
from bltm.report.paper_values import ACCURACY, SETUP
from bltm.report.summary import Grid

SEEDS_NOTE = (
    "[2/3] marks a mean over two of three seeds, not comparable with means over all of them."
)


def nets(grid: Grid) -> str:
    """Return the networks that a grid's runs name, or that they are the defaults."""
    named = {str(run.parameters.get("net", "default")) for run in (*grid.runs, *grid.failures)}
    return " and ".join(sorted(named)) + (" net" if len(named) < 2 else " nets")


def behind(grid: Grid) -> str:
    """Return what is behind the numbers of a grid: data, noise, net and seeds."""
    word = "seed" if len(grid.seeds) == 1 else "seeds"
    return f"{grid.setting.title}, {nets(grid)}, {len(grid.seeds)} {word}"


def has_published(grid: Grid) -> bool:
    """Return whether the paper has accuracies for a grid's data set and kind of noise."""
    noise = REAL if grid.setting.data == "clothing1m" else "instance"
    theirs = grid.setting.noise == noise and grid.setting.options == "{}"
    return grid.setting.data in ACCURACY and theirs


def comparability(grid: Grid) -> str:
    """Return how far a grid's accuracies can be compared with the paper's."""
    theirs = SETUP[grid.setting.data]
    images = grid.setting.images or theirs.images
    data = data_name(grid.setting.data)
    text = f"The paper's values are from {theirs.net}, {theirs.images:,} images"
    ours = f"ours from the {nets(grid)}, {images:,} images"
    if images == theirs.images and "resnet" in nets(grid):
        return f"{text}; {ours}."
    return (
        f"{text} and GPU schedules; {ours} of {data}, at a scale for CPUs: they are not comparable "
        "in level, only in the order of methods and the shape over noise rates."
    )
