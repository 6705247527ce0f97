"""All figures of a grid."""

from __future__ import annotations

from pathlib import Path

from bltm.report.accuracy_figures import accuracy_figure, cost_figure
from bltm.report.collection_figure import collection_figure
from bltm.report.style import save, styled
from bltm.report.summary import Grid
from bltm.report.transition_figures import error_figure, matrices_figure

MAKERS = {
    "accuracy": accuracy_figure,
    "transition-error": error_figure,
    "matrices": matrices_figure,
    "collection": collection_figure,
    "cost": cost_figure,
}
"""What makes each figure; None where a grid has nothing to show in it."""

TITLES = {
    "accuracy": "Test accuracy over the noise rate",
    "transition-error": "Error of T(x) over training",
    "matrices": "Average T, true and estimated",
    "collection": "Collected examples over the threshold",
    "cost": "Test accuracy against cost",
}


def write_figures(
    grid: Grid, folder: Path, prefix: str = "", endings: tuple[str, ...] = ("svg", "png")
) -> dict[str, list[Path]]:
    """Write the figures that a grid has data for, and return their files by name."""
    written = {}
    for name, make in MAKERS.items():
        with styled():
            figure = make(grid)
        if figure is not None:
            written[name] = save(figure, folder / f"{prefix}{name}", endings)
    return written
