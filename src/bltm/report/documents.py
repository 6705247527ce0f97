"""Files made from result rows: tables and figures for users, and the project's own pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from bltm.core.errors import InputError
from bltm.core.files import write_text
from bltm.report.accuracy_tables import accuracy_table
from bltm.report.figures import write_figures
from bltm.report.other_tables import deviations_table
from bltm.report.pages import (
    HOW_TO_READ,
    Results,
    read_results,
    results_section,
    short_table,
)
from bltm.report.render import FORMATS, markdown, plain_text, render
from bltm.report.tables import long_table, tables_of, tables_over

PAGE = Path("docs", "results.md")
FIGURES = Path("docs", "figures")
README = Path("README.md")
README_GRID = "paper-fmnist-cpu"
"""The grid whose table is in the README."""

DEVIATIONS = Path("docs", "deviations.md")
DEVIATIONS_GRID = "deviations-cpu"
"""The grid that measures what the page on deviations lists."""

START, END = "<!-- results -->", "<!-- /results -->"


def write_documents(
    rows: Sequence[Path],
    out: Path,
    formats: Sequence[str] = tuple(FORMATS),
    figures: bool = True,
) -> str:
    """Write tables and figures of files of rows, and return the accuracies as text.

    Parameters
    ----------
    rows
        Files that ``bltm bench`` wrote; files of one name hold one grid.
    out
        Folder for ``results.md``, ``results.csv`` (one line per method and rate), ``tables/`` and
        ``figures/``; for several grids, a folder in it for each.
    formats
        Of the tables: some of ``FORMATS``.
    figures
        Whether to draw figures.
    """
    for form in formats:
        if form not in FORMATS:
            raise InputError("format", f"unknown: {form!r}", f"Use one of {', '.join(FORMATS)}.")
    found = read_results(rows)
    texts = []
    for results in found:
        folder = out if len(found) == 1 else out / results.name
        _write_one(results, folder, formats, figures)
        for grid in results.grids:
            table = accuracy_table(grid, published=False)
            texts += [f"{grid.setting.title}\n{plain_text(table)}"] if table else []
    return "\n".join([*texts, f"Tables and figures are in {out}."])


def generated_texts(root: Path) -> dict[Path, str]:
    """Return what the project's pages should say, from the rows in ``results/``.

    Parameters
    ----------
    root
        Of the repository.

    Returns
    -------
    dict
        Text by path relative to the root: the page of results, and the README and the page on
        deviations where they have markers. Empty where there are no rows.
    """
    found = _committed(root)
    if not found:
        return {}
    texts = {PAGE: _page(found, root)}
    for path, block in ((README, _readme_block(found)), (DEVIATIONS, _deviations_block(found))):
        if (root / path).is_file():
            text = with_block((root / path).read_text(encoding="utf-8"), block)
            if text is not None:
                texts[path] = text
    return texts


def write_results(root: Path) -> list[Path]:
    """Bring the project's pages and their figures up to date, and return what was written."""
    written: list[Path] = []
    for results in _committed(root):
        for grid in results.grids:
            prefix = f"{results.name}-{results.prefix(grid)}"
            for paths in write_figures(grid, root / FIGURES, prefix, endings=("svg",)).values():
                written += paths
    for path, text in generated_texts(root).items():
        write_text(root / path, text)
        written.append(root / path)
    return written


def with_block(text: str, block: str) -> str | None:
    r"""Return a text with a block between its markers, or None where it has no markers.

    Examples
    --------
    >>> with_block("a\n<!-- results -->\nold\n<!-- /results -->\nb", "new")
    'a\n<!-- results -->\nnew\n<!-- /results -->\nb'
    """
    pattern = re.compile(f"{re.escape(START)}.*?{re.escape(END)}", re.DOTALL)
    if not pattern.search(text):
        return None
    return pattern.sub(lambda _: f"{START}\n{block.strip()}\n{END}", text, count=1)


def _write_one(results: Results, folder: Path, formats: Sequence[str], figures: bool) -> None:
    there: set[str] = set()
    tables = [("", table) for table in tables_over(results.grids)]
    for grid in results.grids:
        prefix = results.prefix(grid)
        tables += [(prefix, table) for table in tables_of(grid)]
        if figures:
            there |= {prefix + name for name in write_figures(grid, folder / "figures", prefix)}
    for prefix, table in tables:
        for form in formats:
            path = folder / "tables" / f"{prefix}{table.name}.{FORMATS[form]}"
            write_text(path, render(table, form))
    write_text(folder / "results.csv", long_table(results.grids))
    section = results_section(
        results, 1, lambda name: f"figures/{name}.svg" if name in there else None
    )
    write_text(folder / "results.md", f"{section}\n## How to read this\n\n{HOW_TO_READ}\n")


def _committed(root: Path) -> tuple[Results, ...]:
    return read_results(sorted((root / "results").glob("*.jsonl")))


def _page(found: Sequence[Results], root: Path) -> str:
    parts = [
        "# Results",
        "Generated by `make results` from the rows in [results/](../results/), one JSON line per "
        "run with its recipe; do not edit.",
        HOW_TO_READ,
    ]
    for results in found:

        def link(name: str, results: Results = results) -> str | None:
            path = FIGURES / f"{results.name}-{name}.svg"
            return f"figures/{path.name}" if (root / path).is_file() else None

        parts.append(results_section(results, 2, link))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _readme_block(found: Sequence[Results]) -> str:
    link = "All results, with the paper's values beside ours: [docs/results.md](docs/results.md)."
    tables = [short_table(results) for results in found if results.name == README_GRID]
    return " ".join([*filter(None, tables), link])


def _deviations_block(found: Sequence[Results]) -> str:
    grids = [grid for results in found if results.name == DEVIATIONS_GRID for grid in results.grids]
    return "\n".join(
        markdown(table, title=False) for table in map(deviations_table, grids) if table
    )
