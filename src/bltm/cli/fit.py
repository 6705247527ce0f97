"""``bltm fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bltm.cli.errors import INTERRUPTED, reported, say


def fit(
    data: Annotated[
        str,
        typer.Argument(
            help="CSV, TSV, Parquet or .npz file, folder with a folder of images for each class, "
            "or the name of a registered data set."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Directory for the model and its records.")],
    label: Annotated[str | None, typer.Option(help="Column of the labels.")] = None,
    image: Annotated[str | None, typer.Option(help="Column of image paths.")] = None,
    id: Annotated[str | None, typer.Option(help="Column that names the rows.")] = None,
    classes: Annotated[
        str | None,
        typer.Option(help="All classes, separated by commas, if some may be missing."),
    ] = None,
    method: Annotated[str, typer.Option(help="Name of a method; see 'bltm methods'.")] = "bltm-v",
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the data in every stage.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Examples in a step, over all processes.")
    ] = None,
    lr: Annotated[float | None, typer.Option(min=0.0, help="Learning rate.")] = None,
    net: Annotated[
        str | None, typer.Option(help="Network: auto, mlp, compact, resnet18, resnet34, resnet50.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="Schedules: default, paper or authors.")
    ] = None,
    rho_max: Annotated[
        float | None,
        typer.Option(help="Assumed bound on how often one wrong label is given to an example."),
    ] = None,
    collector: Annotated[
        str | None, typer.Option(help="Rule: in-sample, cross-fitted or covering.")
    ] = None,
    noise_rate: Annotated[
        float | None,
        typer.Option(help="Share of wrong labels, for methods that need it; else estimated."),
    ] = None,
    audit_folds: Annotated[
        int,
        typer.Option(
            min=0, help="Folds for judging labels by classifiers that have not seen them; or 0."
        ),
    ] = 3,
    labels: Annotated[
        str | None,
        typer.Option(help="Table of labels by id that replace those in the data."),
    ] = None,
    augment: Annotated[
        str | None,
        typer.Option(help="Random changes of training images: none, crop-flip, crop or flip."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other parameter of the method."),
    ] = None,
    image_size: Annotated[
        int | None, typer.Option(min=1, help="Side in pixels that images are resized to.")
    ] = None,
    skip_unreadable: Annotated[
        bool, typer.Option("--skip-unreadable", help="Leave out images that cannot be read.")
    ] = False,
    weights: Annotated[
        str | None, typer.Option(help="File of network weights to start from.")
    ] = None,
    device: Annotated[
        str, typer.Option(help="Where to compute: auto, cpu, cuda, cuda:1 or mps.")
    ] = "auto",
    precision: Annotated[
        str, typer.Option(help="Number format: 32-true, bf16-mixed or 16-mixed.")
    ] = "32-true",
    devices: Annotated[int, typer.Option(min=1, help="Processes on this machine.")] = 1,
    num_nodes: Annotated[int, typer.Option(min=1, help="Machines.")] = 1,
    checkpoint_every: Annotated[
        float, typer.Option(min=0.0, metavar="SECONDS", help="Time between two saves.")
    ] = 60.0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a run; start it if there is none.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run that exists.")
    ] = False,
    audit: Annotated[
        bool, typer.Option("--audit/--no-audit", help="Whether to end with an audit and a report.")
    ] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Learn from noisy labels and write a run directory."""
    with reported(resumable=True):
        from bltm.engine.workbench import Interrupted
        from bltm.runs.config import RunConfig, parse_parameters
        from bltm.runs.fit import FitOptions, fit_run
        from bltm.runs.processes import is_first_process

        config = RunConfig(
            data=data,
            label=label,
            image=image,
            id=id,
            classes=None if classes is None else tuple(c.strip() for c in classes.split(",")),
            skip_unreadable=skip_unreadable,
            method=method,
            seed=seed,
            preset=preset,
            epochs=epochs,
            batch_size=batch_size,
            lr=lr,
            net=net,
            weights=weights,
            image_size=image_size,
            rho_max=rho_max,
            collector=collector,
            noise_rate=noise_rate,
            augment=augment,
            parameters=parse_parameters(set_ or []),
            audit_folds=audit_folds,
            labels=labels,
            device=device,
            precision=precision,
            devices=devices,
            num_nodes=num_nodes,
        )
        options = FitOptions(resume, overwrite, checkpoint_every, quiet)
        first = is_first_process()
        try:
            summary = fit_run(config, out, options, say)
        except Interrupted:
            if first:
                say("Stopped and saved. Repeat the command with --resume to continue.")
            # The first process speaks for all; a code other than 0 in another one is an accident.
            raise typer.Exit(INTERRUPTED if first else 0) from None
        if first:
            typer.echo(summary)
            if audit:
                from bltm.report.run_audit import audit_run

                typer.echo(audit_run(out, brief=True))
