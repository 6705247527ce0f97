"""The parts of the report around the review, from the summary of an audit."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bltm.report.html.charts import Chart, line_chart, shade
from bltm.report.html.embed import plain, prose

if TYPE_CHECKING:
    from bltm.audit import Audit, AuditSummary

MOST_CLASSES = 24
MOST_PAIRS = 12
# Rows of a table that opens on demand.
MOST_LISTED = 200
_FOLD, _NUMBER = re.compile(r"/fold-\d+$"), re.compile(r"-(\d)")
MEASURES = (("loss", "Loss", False), ("val_accuracy", "Agreement with held-out labels", True))


@dataclass(frozen=True)
class Figure:
    """A number at the top, what it counts and what else is to be said of it."""

    value: str
    name: str
    note: str


@dataclass(frozen=True)
class ClassNoise:
    """Estimated share of wrong labels among those given as one class."""

    name: str
    n: int
    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class HeatMap:
    """Rows of the average T: (name, [(percentage or nothing, shade, description)])."""

    names: list[str]
    rows: list[tuple[str, list[tuple[str, int, str]]]]
    left_out: int


@dataclass(frozen=True)
class Pair:
    """Labels given as one class that seem to be another; ``codes`` filters the review."""

    given: str
    suggested: str
    count: int
    expected: float
    share: float
    codes: str | None


@dataclass(frozen=True)
class Stage:
    """The training curves of one stage."""

    name: str
    charts: list[Chart]


def percent(share: float) -> str:
    r"""Return a share in percent; small ones with one decimal.

    Examples
    --------
    >>> [percent(share).replace("\xa0", " ") for share in (0.213, 0.042, 0.0001, 0.0, 0.997)]
    ['21 %', '4.2 %', '< 0.1 %', '0 %', '> 99 %']
    """
    if 0 < share < 0.0005:
        return "<\u00a00.1\u00a0%"
    if 0.995 <= share < 1:
        return ">\u00a099\u00a0%"
    return f"{100 * share:.{int(0 < share < 0.0995)}f}\u00a0%"


def opening(summary: AuditSummary) -> list[str]:
    """Return what the report says first; what it explains further down is left to that place."""
    checks = [summary.source, summary.diagnosis.words]
    checks += [each.words for each in (summary.calibration, summary.null_check) if each is not None]
    if summary.certificate is not None:
        checks.append(summary.certificate.condition)
    words = [text for text in summary.words if not any(c in text for c in checks if c)]
    # The first sentence alone is the headline.
    head, dot, rest = words[0].partition(". ") if words else ("", "", "")
    texts = [head + dot.strip(), rest, *words[1:]]
    return [prose(text) for text in texts if text]


def three_figures(audit: Audit, flagged: int) -> list[Figure]:
    """Return the numbers at the top: how much noise, how many to look at, how far to trust it."""
    summary = audit.summary
    rate, check = summary.noise_rate, summary.null_check
    verdicts = [
        f"{summary.verdicts[name]:,} to {name}"
        for name in ("relabel", "review", "drop")
        if summary.verdicts.get(name)
    ]
    note = ", ".join(verdicts) or "none stands out"
    figures = [Figure(f"{flagged:,}", "labels to look at", note)]
    if audit.kind == "probability" and math.isfinite(rate.value):
        between = f"between {percent(rate.low)} and {percent(rate.high)}"
        figures.insert(0, Figure(percent(rate.value), "of the labels seem wrong", between))
    else:
        figures.insert(0, Figure(f"{len(audit.labels):,}", "labels were audited", ""))
    if check is not None and check.false_flags is not None:
        note = "if labels go wrong as estimated (null check)"
        figures.append(Figure(percent(check.false_flags), "of the flags may be false", note))
    else:
        used = int(audit.used.sum())
        figures.append(Figure(f"{used:,}", "examples were learned from", plain(audit.source)))
    return figures


def class_noise(summary: AuditSummary) -> list[ClassNoise]:
    """Return the noise of each class, the noisiest first."""
    noise = [
        ClassNoise(
            plain(each.label), round(each.rate.n), each.rate.value, each.rate.low, each.rate.high
        )
        for each in summary.by_given
        if math.isfinite(each.rate.value)
    ]
    return sorted(noise, key=lambda each: -each.rate)


def heat_map(summary: AuditSummary) -> HeatMap:
    """Return the average T; of many classes those whose labels go wrong most."""
    matrix = summary.average_transition
    names = [plain(name) for name in summary.classes]
    noisiest = sorted(range(len(names)), key=lambda i: float(matrix[i, i]))
    kept = sorted(noisiest[:MOST_CLASSES])

    def cell(i: int, j: int) -> tuple[str, int, str]:
        share = float(matrix[i, j])
        if not math.isfinite(share):
            return "", 0, f"{names[i]} as {names[j]}: not known"
        text = f"{100 * share:.0f}" if share >= 0.005 else ""
        return text, shade(share), f"right {names[i]}, given {names[j]}: {100 * share:.1f} %"

    rows = [(names[i], [cell(i, j) for j in kept]) for i in kept]
    return HeatMap([names[i] for i in kept], rows, len(names) - len(kept))


def class_pairs(summary: AuditSummary) -> list[Pair]:
    """Return the pairs that are confused most often."""
    pairs = [pair for pair in summary.pairs if pair.expected >= 0.05][:MOST_PAIRS]
    most = max((pair.expected for pair in pairs), default=1.0)
    code = {str(name): i for i, name in enumerate(summary.classes)}
    return [
        Pair(
            plain(pair.given),
            plain(pair.suggested),
            pair.count,
            pair.expected,
            pair.expected / most,
            f"{code[str(pair.given)]},{code[str(pair.suggested)]}" if pair.count else None,
        )
        for pair in pairs
    ]


def training_stages(history: Sequence[Mapping[str, Any]]) -> list[Stage]:
    """Return the curves of each stage, in the order of training; folds are drawn together.

    Examples
    --------
    >>> records = [{"stage": f"warm_up/fold-{k}", "epoch": 1, "loss": 0.5} for k in (1, 2)]
    >>> [stage] = training_stages(records)
    >>> stage.name, [(chart.title, len(chart.curves)) for chart in stage.charts]
    ('warm up · 2 folds', [('Loss', 2)])
    """
    stages: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for record in history:
        name = str(record["stage"])
        stages.setdefault(_FOLD.sub("", name), {}).setdefault(name, []).append(record)
    shown = []
    for name, folds in stages.items():
        charts = []
        for key, title, shares in MEASURES:
            lines = [line for records in folds.values() if (line := _measured(records, key))]
            if lines:
                charts.append(line_chart(title, "epoch", lines, percent=shares, whole_x=True))
        if charts:
            words = _NUMBER.sub(r" \1", name.replace("_", " ").replace("/", " · "))
            more = f" · {len(folds)} folds" if len(folds) > 1 else ""
            shown.append(Stage(prose(words + more), charts))
    return shown


def _measured(records: Sequence[Mapping[str, Any]], key: str) -> list[tuple[float, float]]:
    return [
        (float(record["epoch"]), float(record[key]))
        for record in records
        if record.get(key) is not None and math.isfinite(record[key])
    ]


def settings(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return settings as text; what was not set is left out.

    Examples
    --------
    >>> settings({"seed": 0, "net": None, "method": "bltm-v"})
    [('seed', '0'), ('method', 'bltm-v')]
    """
    return [
        (plain(name), plain(value if isinstance(value, str) else json.dumps(value, default=str)))
        for name, value in values.items()
        if value is not None and value not in ({}, [], ())
    ]
