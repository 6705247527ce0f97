"""``bltm demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bltm.cli.errors import reported, say


def demo(
    out: Annotated[Path, typer.Option(help="Directory for the results.")] = Path("demo"),
    rate: Annotated[float, typer.Option(help="Share of labels to make wrong.")] = 0.4,
    seeds: Annotated[int, typer.Option(min=1, help="Number of repetitions.")] = 5,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the data in every stage.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an earlier demonstration.")
    ] = False,
) -> None:
    """Make labels of scikit-learn's digits wrong and learn from them, in a minute or two."""
    with reported():
        from bltm.report.run_audit import audit_run
        from bltm.runs.demo import RUN, run_demo

        typer.echo(run_demo(out, rate, seeds, say, epochs=epochs, overwrite=overwrite))
        audit_run(out / RUN)
        typer.echo(f"Open {out / RUN / 'report.html'}: the labels that are probably wrong.")
