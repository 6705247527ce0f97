"""The command line: options and their help, and nothing else.

What the commands do is in ``bltm.runs``; it is imported when a command runs, so that help is quick.
"""

from __future__ import annotations

from typing import Annotated

import typer

from bltm import __version__
from bltm.cli import audit, bench, data, demo, fit, methods, noise, predict, tables
from bltm.engine.tuning import sleep_soon

app = typer.Typer(
    name="bltm",
    help="Learn from labels that are partly wrong.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bltm {__version__}")
        raise typer.Exit


@app.callback()
def _bltm(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Learn from labels that are partly wrong."""


app.command("fit")(fit.fit)
app.command("predict")(predict.predict)
app.command("noise")(noise.noise)
app.command("demo")(demo.demo)
app.command("tables")(tables.tables)
app.command("methods")(methods.methods)
app.command("bench")(bench.bench)
app.command("report")(audit.report)
app.add_typer(audit.app, name="audit")
app.add_typer(data.app, name="data")


def main() -> None:
    """Run the command line."""
    sleep_soon()
    app(prog_name="bltm")
