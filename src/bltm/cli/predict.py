"""``bltm predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bltm.cli.errors import reported


def predict(
    run: Annotated[Path, typer.Argument(help="Directory of a finished run.")],
    data: Annotated[str, typer.Argument(help="New data, of the kind the run learned from.")],
    out: Annotated[Path, typer.Option(help="Table to write: .csv, .tsv or .parquet.")],
    image: Annotated[
        str | None, typer.Option(help="Column of image paths, if not called as before.")
    ] = None,
    id: Annotated[
        str | None, typer.Option(help="Column that names the rows, if not called as before.")
    ] = None,
    device: Annotated[
        str, typer.Option(help="Where to compute: auto, cpu, cuda, cuda:1 or mps.")
    ] = "auto",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the table if it exists.")
    ] = False,
) -> None:
    """Label new data with the model of a run."""
    with reported():
        from bltm.runs.predict import PredictOptions, predict_run

        typer.echo(predict_run(run, data, out, PredictOptions(image, id, device, overwrite)))
