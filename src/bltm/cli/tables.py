"""``bltm tables``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bltm.cli.errors import reported


def tables(
    rows: Annotated[
        list[Path],
        typer.Argument(
            metavar="ROWS",
            help="Files of rows that 'bltm bench' wrote; files of one name hold one grid.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for tables and figures.")],
    format_: Annotated[
        list[str] | None,
        typer.Option("--format", help="Write only tables of this kind: md, latex or csv."),
    ] = None,
    figures: Annotated[bool, typer.Option(help="Draw figures as SVG and PNG.")] = True,
) -> None:
    """Turn result rows into tables and figures."""
    with reported():
        from bltm.report.documents import write_documents
        from bltm.report.render import FORMATS

        typer.echo(write_documents(rows, out, format_ or tuple(FORMATS), figures))
