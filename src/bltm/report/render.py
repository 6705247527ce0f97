"""Tables as Markdown, LaTeX, CSV and plain text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from bltm.report.layout import Cell, Column, Table

FORMATS = {"md": "md", "latex": "tex", "csv": "csv"}
"""File name endings by format."""

MOST_COLUMNS = 7
"""LaTeX tables with more columns are scaled to the width of the page."""

_LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "ℓ": r"$\ell$",
    "×": r"$\times$",
    "·": r"$\cdot$",
}


def render(table: Table, form: str) -> str:
    """Return a table in one of ``FORMATS``."""
    return {"md": markdown, "latex": latex, "csv": comma_separated}[form](table)


def markdown(table: Table, title: bool = True) -> str:
    """Return a table as Markdown, with its title (if wanted) before and its notes after it."""
    heading = [table.corner, *(column.full for column in table.columns)]
    lines = [_line(heading), _line(["---", *("--:" for _ in table.columns)])]
    for section in table.sections:
        if section.title:
            lines.append(_line([f"*{_markdown(section.title)}*", *("" for _ in table.columns)]))
        for row in section.rows:
            lines.append(_line([_markdown(row.heading), *map(_markdown_cell, row.cells)]))
    parts = [f"**{_markdown(table.title)}**"] if title else []
    parts += ["\n".join(lines), " ".join(map(_markdown, table.notes))]
    return "\n\n".join(part for part in parts if part) + "\n"


def latex(table: Table) -> str:
    """Return a table as LaTeX for the packages ``booktabs`` and, if it is wide, ``graphicx``."""
    wide = len(table.columns) > MOST_COLUMNS
    lines = [
        r"% \usepackage{booktabs,graphicx}",
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{_latex('. '.join([table.title, ' '.join(table.notes)]).strip())}}}",
        rf"\label{{tab:{table.name}}}",
        *([r"\resizebox{\linewidth}{!}{%"] if wide else []),
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        *_latex_groups(table.columns),
        _latex_line([table.corner, *(column.name for column in table.columns)]),
    ]
    for section in table.sections:
        lines.append(r"\midrule")
        if section.title:
            width = 1 + len(table.columns)
            lines.append(rf"\multicolumn{{{width}}}{{l}}{{\emph{{{_latex(section.title)}}}}} \\")
        for row in section.rows:
            cells = " & ".join([_latex(row.heading), *map(_latex_cell, row.cells)])
            lines.append(rf"{cells} \\")
    lines += [r"\bottomrule", r"\end{tabular}" + ("}" if wide else ""), r"\end{table*}"]
    return "\n".join(lines) + "\n"


def comma_separated(table: Table) -> str:
    """Return a table as CSV, as it is laid out; the long table has numbers to compute with."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([table.corner, *(column.full for column in table.columns)])
    for section in table.sections:
        for row in section.rows:
            writer.writerow([row.heading, *(cell.full for cell in row.cells)])
    return buffer.getvalue()


def plain_text(table: Table) -> str:
    """Return a table for a terminal: columns as wide as they need to be, sections apart."""
    rows = [[table.corner, *(column.full for column in table.columns)]]
    for section in table.sections:
        rows.append([""] * len(rows[0]))
        rows += [[row.heading, *(cell.full for cell in row.cells)] for row in section.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([table.title, "", *lines]) + "\n"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown(text: str) -> str:
    return re.sub(r"([|*<])", r"\\\1", text)


def _markdown_cell(cell: Cell) -> str:
    text = _markdown(cell.text)
    text = f"**{text}**" if cell.bold else text
    return f"{text} [{cell.mark}]" if cell.mark else text


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _latex_cell(cell: Cell) -> str:
    text = _latex(cell.text)
    text = rf"\textbf{{{text}}}" if cell.bold else text
    return rf"{text}\,[{_latex(cell.mark)}]" if cell.mark else text


def _latex_line(cells: list[str]) -> str:
    return rf"{' & '.join(map(_latex, cells))} \\"


def _latex_groups(columns: tuple[Column, ...]) -> Iterator[str]:
    """Yield the line above the headings that names groups of columns, and its rules."""
    if not any(column.group for column in columns):
        return
    cells, rules, start = [""], [], 2
    while start - 2 < len(columns):
        group = columns[start - 2].group
        end = start
        while end - 1 < len(columns) and columns[end - 1].group == group:
            end += 1
        cells.append(rf"\multicolumn{{{end - start + 1}}}{{c}}{{{_latex(group)}}}")
        if group:
            rules.append(rf"\cmidrule(lr){{{start}-{end}}}")
        start = end + 1
    yield rf"{' & '.join(cells)} \\"
    yield " ".join(rules)
