"""``bltm data``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bltm.cli.errors import reported
from bltm.cli.listing import print_rows

app = typer.Typer(help="Registered data sets.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="See 'bltm data list'.")]
Root = Annotated[
    Path | None,
    typer.Option(help="Folder that has the files; searched before $BLTM_DATA and the cache."),
]
Cache = Annotated[
    Path | None,
    typer.Option(help="Folder for downloads, instead of $BLTM_CACHE or the user's cache."),
]


@app.command("list")
def list_() -> None:
    """List the data sets that go by a name."""
    with reported():
        from bltm.data.registry import dataset_rows

        names = ("name", "n_train", "n_test", "n_classes", "license", "description")
        rows = [[str(row[name]) for name in names] for row in dataset_rows()]
        heading = ["name", "train", "test", "classes", "terms of use", "what it is"]
        print_rows([heading, *rows])


@app.command()
def info(name: Name, root: Root = None, cache: Cache = None) -> None:
    """Say what a data set is, and where its files are or should be."""
    with reported():
        from bltm.data.releases import Places
        from bltm.data.report import describe

        _print(describe(name, Places.chosen(root, cache)))


@app.command()
def get(name: Name, root: Root = None, cache: Cache = None) -> None:
    """Find the files of a data set, or download them into the cache."""
    with reported():
        from bltm.data.releases import Places
        from bltm.data.report import fetch

        _print(fetch(name, Places.chosen(root, cache)))


@app.command()
def verify(name: Name, root: Root = None, cache: Cache = None) -> None:
    """Read a data set that is there, and check files, sizes and labels."""
    with reported():
        from bltm.data.releases import Places
        from bltm.data.report import verify

        _print(verify(name, Places.chosen(root, cache, download=False)))


def _print(lines: list[str]) -> None:
    for line in lines:
        typer.echo(line)


@app.callback()
def _group() -> None:
    """Show, fetch and check registered data sets."""
