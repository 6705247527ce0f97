"""Tables in each format."""

import csv
import io
import re

import pytest

from bltm.report.layout import Cell, Column, Row, Section, Table
from bltm.report.render import latex, markdown, plain_text, render
from bltm.report.runs import as_runs
from bltm.report.summary import summarise
from bltm.report.tables import tables_of, tables_over

from .rows import ALL, failed_row, make_rows
from .rows import Row as ResultRow

SMALL = Table(
    "small",
    "50 % & more_of_{it}",
    "method",
    (Column("a"), Column("b", "paper"), Column("c", "paper")),
    (
        Section("", (Row("x|y", (Cell("1.0 ± 0.1", True, "2/3"), Cell("−2"), Cell("–"))),)),
        Section("apart", (Row("a*b", (Cell("p < 0.1"), Cell(""), Cell("1"))),)),
    ),
    ("A note: 5 $.", "Another."),
)


@pytest.fixture(scope="module")
def every_table() -> list[Table]:
    rows: list[ResultRow] = make_rows((*ALL, "oracle-class", "relabelled"), data="cifar10")
    rows += make_rows(("deviation/base", "deviation/threshold-0.55"), data="cifar10")
    rows.append(failed_row("gce", 0.1, 0, data="cifar10"))
    grids = summarise(as_runs(rows))
    return [table for grid in grids for table in tables_of(grid)] + list(tables_over(grids))


def test_markdown() -> None:
    assert markdown(SMALL) == (
        "**50 % & more_of_{it}**\n\n"
        "| method | a | paper: b | paper: c |\n"
        "| --- | --: | --: | --: |\n"
        "| x\\|y | **1.0 ± 0.1** [2/3] | −2 | – |\n"
        "| *apart* |  |  |  |\n"
        "| a\\*b | p \\< 0.1 |  | 1 |\n\n"
        "A note: 5 $. Another.\n"
    )


def test_markdown__every_line_has_the_same_number_of_columns(every_table: list[Table]) -> None:
    for table in every_table:
        lines = [x for x in markdown(table).splitlines() if x.startswith("|")]
        counts = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
        assert counts == {len(table.columns) + 2}, table.name


def test_latex() -> None:
    text = latex(SMALL)
    assert r"\caption{50 \% \& more\_of\_\{it\}. A note: 5 \$. Another.}" in text
    assert r" & \multicolumn{1}{c}{} & \multicolumn{2}{c}{paper} \\" in text
    assert r"\cmidrule(lr){3-4}" in text
    assert r"x|y & \textbf{1.0 $\pm$ 0.1}\,[2/3] & $-$2 & -- \\" in text
    assert r"\multicolumn{4}{l}{\emph{apart}} \\" in text
    assert r"a*b & p \textless{} 0.1 &  & 1 \\" in text
    assert "resizebox" not in text


def test_latex__is_ascii_balanced_and_as_wide_as_its_columns(every_table: list[Table]) -> None:
    for table in every_table:
        text = latex(table)
        assert text.isascii(), table.name
        bare = re.sub(r"\\[{}]", "", text)
        depths = [bare[:i].count("{") - bare[:i].count("}") for i in range(len(bare) + 1)]
        assert min(depths) == depths[-1] == 0, table.name
        for name in ("table*", "tabular"):
            assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") == 1
        assert text.count("resizebox") == (len(table.columns) > 7)
        body = text.partition(r"\toprule")[2].partition(r"\bottomrule")[0]
        for line in (x for x in body.splitlines() if x.endswith(r"\\")):
            spans = [int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", line)]
            columns = len(re.findall(r"(?<!\\)&", line)) + 1 + sum(spans)
            assert columns == len(table.columns) + 1, (table.name, line)


def test_csv__reads_back_as_it_is_laid_out(every_table: list[Table]) -> None:
    for table in every_table:
        lines = list(csv.reader(io.StringIO(render(table, "csv"))))
        assert lines[0] == [table.corner, *(column.full for column in table.columns)]
        rows = [row for section in table.sections for row in section.rows]
        assert [x[0] for x in lines[1:]] == [row.heading for row in rows]
        assert lines[-1][1:] == [cell.full for cell in rows[-1].cells]


def test_plain_text__has_aligned_columns() -> None:
    lines = plain_text(SMALL).splitlines()
    assert lines[0] == SMALL.title
    assert lines[2].index("paper: b") == lines[4].index("−2")
    assert lines[4] == "x|y     1.0 ± 0.1 [2/3]  −2        –"
