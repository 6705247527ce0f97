"""How figures look: colours that colour-blind readers can tell apart, labels at the lines, files.

Figures are made as objects; pyplot and its global state are never used. Matplotlib's settings are
changed inside ``styled`` only. An SVG is the same bytes each time it is made with one version of
matplotlib: its ids come from a fixed salt, and it has no date.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bltm.core.files import write_atomically
from bltm.report.comparison import Stat

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours. Vermilion is kept for the proposed method.
OURS = "#D55E00"
COLOURS = ("#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5C00", "#332288")
INK, SOFT, FAINT = "#222222", "#777777", "#D0D0D0"

_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "bltm",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": INK,
    "axes.edgecolor": SOFT,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#EBEBEB",
    "grid.linewidth": 0.8,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "legend.frameon": False,
    "lines.solid_capstyle": "round",
}


Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Label:
    """The name of a line or a point, and how it is written; ``x`` and ``y`` are a line's end."""

    x: float
    y: float
    text: str
    colour: str
    bold: bool = False


@contextmanager
def styled() -> Iterator[None]:
    """Make and save figures in our style, whatever the user's settings; they are put back."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def new_figure(width: float, height: float, title: str, subtitle: str) -> Figure:
    """Return an empty figure of a size in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    # The second line of the title is room for the subtitle, which has a font of its own.
    figure.suptitle(f"{title}\n", x=0.01, ha="left", fontsize=11.5, fontweight="bold")
    figure.text(0.01, 1 - 0.28 / height, subtitle, va="top", fontsize=8.5, color=SOFT)
    return figure


def save(figure: Figure, stem: Path, endings: Sequence[str] = ("svg", "png")) -> list[Path]:
    """Write a figure as files ``stem.svg`` and ``stem.png``, and return them."""
    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in endings]
    with styled():
        # Laid out once, and not again for each file.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for path in paths:
            nothing = (
                {"Date": None, "Creator": None} if path.suffix == ".svg" else {"Software": None}
            )
            write_atomically(
                path,
                lambda temporary, nothing=nothing: figure.savefig(  # type: ignore[misc]
                    temporary, dpi=150, metadata=nothing
                ),
            )
    return paths


def draw_band(
    axes: Axes,
    x: Sequence[float],
    stats: Sequence[Stat],
    colour: str,
    scale: float = 100.0,
    width: float = 1.8,
) -> None:
    """Draw a mean with one standard deviation around it."""
    low = [scale * (stat.mean - (stat.std or 0.0)) for stat in stats]
    high = [scale * (stat.mean + (stat.std or 0.0)) for stat in stats]
    axes.fill_between(x, low, high, color=colour, alpha=0.18, lw=0)
    axes.plot(x, [scale * stat.mean for stat in stats], color=colour, lw=width)


def label_lines(axes: Axes, labels: Sequence[Label], size: float = 8.0) -> None:
    """Write names at the right end of lines, moved apart where they would overlap.

    The limits of the axes have to be set before.
    """
    low, high = axes.get_ylim()
    figure = axes.get_figure(root=True)
    assert figure is not None
    height = axes.get_position().height * figure.get_size_inches()[1] * 72
    distance = (high - low) * 1.25 * size / height
    ordered = sorted(labels, key=lambda label: label.y)
    places = spread([label.y for label in ordered], distance, low, high)
    for label, y in zip(ordered, places, strict=True):
        axes.annotate(
            label.text,
            (label.x, label.y),
            xytext=(1.045, y),
            textcoords=axes.get_yaxis_transform(),
            color=label.colour,
            fontsize=size,
            fontweight="bold" if label.bold else "normal",
            va="center",
            arrowprops={
                "arrowstyle": "-",
                "color": label.colour,
                "lw": 0.5,
                "alpha": 0.5,
                "shrinkA": 1,
                "shrinkB": 3,
                "relpos": (0, 0.5),
            },
            annotation_clip=False,
        )


def label_points(
    axes: Axes,
    points: Sequence[tuple[float, float]],
    labels: Sequence[Label],
    size: float = 7.5,
) -> None:
    """Write names beside points, on the side where they cover least.

    The figure has to be drawn before: limits and places of axes are those of the last drawing.

    Parameters
    ----------
    axes
        Where the points are.
    points
        All points, which names should not cover.
    labels
        Names of some of them, the most important ones first.
    size
        Of the font, in points.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    scale = 72 / figure.dpi
    places = [tuple(scale * axes.transData.transform(point)) for point in points]
    taken = [(x - 4.0, y - 4.0, x + 4.0, y + 4.0) for x, y in places]
    corners = scale * axes.transAxes.transform([(0, 0), (1, 1)])
    inside = (*corners[0], *corners[1])
    for label in labels:
        x, y = scale * axes.transData.transform((label.x, label.y))
        width, height = 0.65 * size * len(label.text), 1.2 * size
        boxes = {}
        for dx, dy in ((-1, 1), (1, -1), (1, 1), (-1, -1), (0, 1), (0, -1)):
            left = x + dx * (4 if dx else 0) - width * (1 - dx) / 2
            low = y + dy * (4 if dx else 7) - height * (1 - dy) / 2
            boxes[dx, dy] = (left, low, left + width, low + height)
        # Rounded, so that of equal sides the first is taken.
        costs = {
            side: round(sum(_overlap(box, other) for other in taken) - _overlap(box, inside), 3)
            for side, box in boxes.items()
        }
        side = min(costs, key=lambda side: costs[side])
        taken.append(boxes[side])
        axes.annotate(
            label.text,
            (label.x, label.y),
            xytext=(4 * side[0], side[1] * (4 if side[0] else 7)),
            textcoords="offset points",
            ha={-1: "right", 0: "center", 1: "left"}[side[0]],
            va="bottom" if side[1] > 0 else "top",
            fontsize=size,
            color=label.colour,
            fontweight="bold" if label.bold else "normal",
            zorder=7,
        )


def _overlap(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(width, 0.0) * max(height, 0.0)


def spread(values: Sequence[float], distance: float, low: float, high: float) -> list[float]:
    """Return ascending values moved as little as needed to be ``distance`` apart within bounds.

    Examples
    --------
    >>> spread([1.0, 1.0, 5.0], 1.0, 0.0, 10.0)
    [0.5, 1.5, 5.0]
    """
    # Groups of values that touch; a group is centred on the mean of what it holds.
    groups: list[list[float]] = []

    def start(group: list[float]) -> float:
        extent = (len(group) - 1) * distance
        centre = sum(group) / len(group)
        return min(max(centre - extent / 2, low), high - extent)

    for value in values:
        groups.append([value])
        while len(groups) > 1:
            before, last = groups[-2], groups[-1]
            if start(before) + len(before) * distance <= start(last) + 1e-12:
                break
            groups[-2:] = [before + last]
    return [
        start(group) + position * distance for group in groups for position in range(len(group))
    ]
