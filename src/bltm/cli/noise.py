"""``bltm noise``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bltm.cli.errors import reported


def noise(
    data: Annotated[
        str, typer.Argument(help="Data with right labels: .npz file, table of numbers, or name.")
    ],
    out: Annotated[Path, typer.Option(help="The .npz file to write.")],
    model: Annotated[
        str, typer.Option(help="Kind of noise: instance, symmetric, pair or pmd.")
    ] = "instance",
    rate: Annotated[float, typer.Option(help="Share of labels to make wrong.")] = 0.3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    rho_max: Annotated[
        float | None, typer.Option(help="Largest flip rate of an example (instance noise).")
    ] = None,
    feature_mode: Annotated[
        str | None, typer.Option(help="How instance noise scales inputs, e.g. raw255, std_unit.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column of the labels.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file if it exists.")
    ] = False,
) -> None:
    """Make some labels of a data set wrong, in a known way."""
    with reported():
        from bltm.runs.noise import write_noisy

        given = {"rho_max": rho_max, "feature_mode": feature_mode}
        text = write_noisy(
            data,
            out,
            model=model,
            rate=rate,
            seed=seed,
            options={name: value for name, value in given.items() if value is not None},
            label=label,
            overwrite=overwrite,
        )
        typer.echo(text)
