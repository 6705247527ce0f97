"""``bltm data``."""

from __future__ import annotations

import typer

from bltm.cli.errors import reported
from bltm.cli.listing import print_rows

app = typer.Typer(help="Registered data sets.", no_args_is_help=True)


@app.command("list")
def list_() -> None:
    """List the data sets that go by a name."""
    with reported():
        from bltm.data.registry import dataset_rows

        names = ("name", "n_train", "n_test", "n_classes", "license", "description")
        rows = [[str(row[name]) for name in names] for row in dataset_rows()]
        heading = ["name", "train", "test", "classes", "license", "what it is"]
        print_rows([heading, *rows])


@app.callback()
def _group() -> None:
    """Show registered data sets."""
