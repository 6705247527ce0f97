"""All tables of a grid, and the long one with everything that they show."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from bltm.report.accuracy_tables import (
    accuracy_table,
    gap_table,
    networks_table,
    paired_table,
    selection_table,
)
from bltm.report.captions import has_published
from bltm.report.collection_table import collection_table
from bltm.report.layout import Table
from bltm.report.other_tables import (
    ablation_table,
    audit_table,
    cost_table,
    deviations_table,
    transition_table,
)
from bltm.report.paper_values import published_accuracy
from bltm.report.summary import Entry, Grid

_STATS = {
    "accuracy": ("figures", "accuracy"),
    "accuracy_last": ("figures", "accuracy_last"),
    "oracle_best": ("figures", "oracle_best"),
    "validation_accuracy": ("figures", "validation_accuracy"),
    "noise_rate": ("figures", "noise_rate"),
    "assumed_noise_rate": ("figures", "assumed_noise_rate"),
    "row_error_all": ("figures", "row_error", "all"),
    "row_error_collected": ("figures", "row_error", "collected"),
    "row_error_rest": ("figures", "row_error", "rest"),
    "class_row_error": ("figures", "class_row_error"),
    "collected": ("figures", "collection", "count"),
    "collected_right": ("figures", "collection", "right"),
    "average_precision": ("figures", "average_precision"),
    "realised_rate": ("noise", "realised_rate"),
    "passes": ("figures", "passes"),
    "seconds": ("cost", "seconds"),
    "scoring_seconds": ("cost", "scoring_seconds"),
    "overhead_seconds": ("cost", "overhead_seconds"),
    "peak_memory": ("cost", "peak_memory"),
}


def tables_of(grid: Grid) -> tuple[Table, ...]:
    """Return the tables of a grid that have something to show."""
    made = (
        accuracy_table(grid),
        gap_table(grid),
        paired_table(grid),
        networks_table(grid),
        selection_table(grid),
        transition_table(grid),
        collection_table(grid),
        deviations_table(grid),
        audit_table(grid),
        cost_table(grid),
    )
    return tuple(table for table in made if table is not None)


def tables_over(grids: Sequence[Grid]) -> tuple[Table, ...]:
    """Return the tables that span several data sets."""
    made = (ablation_table(grids),)
    return tuple(table for table in made if table is not None)


def long_table(grids: Sequence[Grid]) -> str:
    """Return one line of CSV per setting, method and rate, with everything; shares, not percent."""
    buffer = io.StringIO()
    lines = [
        _long(grid, entry) for grid in grids for label in grid.labels for entry in grid.of(label)
    ]
    writer = csv.DictWriter(buffer, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return buffer.getvalue()


def _long(grid: Grid, entry: Entry) -> dict[str, str]:
    setting, gap, paired = grid.setting, entry.gap, entry.paired
    values: dict[str, object] = {
        "data": setting.data,
        "images": setting.images or "all",
        "noise": setting.noise,
        "noise_options": setting.options,
        "rate": entry.rate,
        "method": entry.method,
        "label": entry.label,
        "seeds": " ".join(map(str, entry.done)),
        "n_seeds": len(entry.runs),
        "n_seeds_of_grid": len(entry.seeds),
        "failed_seeds": " ".join(map(str, sorted(entry.failed))),
        "complete": entry.complete,
    }
    for name, path in _STATS.items():
        stat = entry.stat(*path)
        values[name] = stat and stat.mean
        values[f"{name}_std"] = stat and stat.std
    published = None
    if has_published(grid):
        published = published_accuracy(setting.data, entry.method, entry.rate)
    values |= {
        "gap_recovered": gap and gap.share,
        "gap_seeds": " ".join(map(str, gap.seeds)) if gap else None,
        "rank": entry.rank,
        "ranked": entry.ranked if entry.rank else None,
        "difference_to_bltm_v": paired and paired.difference,
        "pairs": paired and paired.pairs,
        "p_value": paired and paired.p_value,
        "paper_accuracy": published and round(published.mean / 100, 6),
        "paper_accuracy_std": published and published.std and round(published.std / 100, 6),
    }
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
