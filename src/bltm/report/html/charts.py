"""Geometry of the report's charts; the templates draw them, the style sheet colours them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 290.0, 150.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 10.0, 8.0, 26.0
# Shades of a heat map; the style sheet has a rule for each.
SHADES = 20

Point = tuple[float, float]


@dataclass(frozen=True)
class Tick:
    """A mark on an axis: its place, and what is written there."""

    at: float
    text: str


@dataclass(frozen=True)
class Curve:
    """A line of a chart: its path, the dots on it with their descriptions, and their intervals.

    The path is empty where the dots are not joined.
    """

    path: str
    dots: list[tuple[float, float, str]]
    intervals: list[tuple[float, float, float]]


@dataclass(frozen=True)
class Chart:
    """A line chart in a box of ``WIDTH`` by ``HEIGHT``.

    ``rule`` is the place of an upright line, if there is one; ``diagonal`` the path of the line on
    which both axes say the same.
    """

    title: str
    summary: str
    x_name: str
    curves: list[Curve]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    rule: float | None = None
    diagonal: str | None = None
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    base: float = HEIGHT - BOTTOM
    top: float = TOP


def line_chart(
    title: str,
    x_name: str,
    lines: Sequence[Sequence[Point]],
    *,
    percent: bool = False,
    whole_x: bool = False,
    rule: float | None = None,
    intervals: Sequence[Point] | None = None,
) -> Chart:
    """Lay a line chart out.

    Parameters
    ----------
    title, x_name
        What is on the axes.
    lines
        The points of each line; there is at least one.
    percent
        Whether the upright axis has shares.
    whole_x
        Whether the lying axis has whole numbers, such as epochs.
    rule
        Where an upright line marks a value.
    intervals
        Lower and upper end of an interval around each point of the one line. The points are not
        joined then, both axes go from 0 to 1, and the diagonal is drawn.
    """
    square = intervals is not None
    points = [point for line in lines for point in line]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    if rule is not None:
        xs.append(rule)
    x_steps = [0.0, 0.25, 0.5, 0.75, 1.0] if square else _steps(min(xs), max(xs), whole_x)
    y_steps = [0.0, 0.25, 0.5, 0.75, 1.0] if square else _steps(min(ys), max(ys), False)
    low_x, high_x = (0.0, 1.0) if square else (min(xs), max(xs))
    low_y, high_y = min(y_steps[0], *ys), max(y_steps[-1], *ys)

    def across(x: float) -> float:
        span = high_x - low_x
        share = 0.5 if span <= 0 else (x - low_x) / span
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def up(y: float) -> float:
        span = high_y - low_y
        share = 0.5 if span <= 0 else (y - low_y) / span
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    def written(value: float) -> str:
        return f"{100 * value:.3g} %" if percent else _number(value)

    def curve(line: Sequence[Point]) -> Curve:
        return Curve(
            "" if square else "M" + " L".join(f"{across(x)},{up(y)}" for x, y in line),
            [(across(x), up(y), f"{x_name} {x:.3g}: {written(y)}") for x, y in line],
            [
                (across(x), up(low), up(high))
                for (x, _), (low, high) in zip(line, intervals or (), strict=False)
            ],
        )

    summary = f"{title}: " + ". ".join(
        "; ".join(f"{x_name} {x:.3g}, {written(y)}" for x, y in line) for line in lines
    )
    return Chart(
        title=title,
        summary=summary,
        x_name=x_name,
        curves=[curve(line) for line in lines],
        x_ticks=[Tick(across(x), f"{x:.3g}") for x in x_steps if low_x <= x <= high_x],
        y_ticks=[Tick(up(y), written(y)) for y in y_steps],
        rule=None if rule is None else across(rule),
        diagonal=f"M{across(0)},{up(0)} L{across(1)},{up(1)}" if square else None,
    )


def shade(share: float) -> int:
    """Return the shade of a share between 0 and 1; small shares are told apart better.

    Examples
    --------
    >>> shade(0.0), shade(0.01), shade(0.25), shade(1.0)
    (0, 2, 10, 20)
    """
    return round(SHADES * math.sqrt(min(max(share, 0.0), 1.0)))


def _number(value: float) -> str:
    """Return a number as people write it.

    Examples
    --------
    >>> _number(1500.0), _number(0.25), _number(12.0)
    ('1,500', '0.25', '12')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _steps(low: float, high: float, whole: bool) -> list[float]:
    """Return round numbers that span an interval.

    Examples
    --------
    >>> _steps(0.13, 0.88, False)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    >>> _steps(1, 12, True)
    [0.0, 5.0, 10.0, 15.0]
    """
    span = high - low or abs(high) or 1.0
    size = 10 ** math.floor(math.log10(span / 4))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= span / 4)
    if whole:
        step = max(1.0, float(round(step)))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(k * step, 10) for k in range(first, last + 1)]
