"""``bltm bench``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bltm.cli.errors import FAILED, INTERRUPTED, reported, say


def bench(
    grid: Annotated[
        str | None,
        typer.Argument(metavar="GRID", help="TOML file, or the name of a built-in grid."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for rows, tables and figures; by default the grid's name."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time on this machine.")] = 1,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads of a run; by default the cores divided.")
    ] = None,
    engine: Annotated[str, typer.Option(help="Who runs it: local or ray.")] = "local",
    ray_address: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster; by default a local one.")
    ] = None,
    gpus: Annotated[
        float, typer.Option(min=0, help="Share of a GPU that a run takes on a Ray cluster.")
    ] = 0.0,
    quick: Annotated[
        bool, typer.Option("--quick", help="The smaller form that the grid describes.")
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of all methods."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", help="Only this method, of the grid or not, and the bounds."),
    ] = None,
    data: Annotated[
        list[str] | None, typer.Option("--data", help="Only this data set of the grid.")
    ] = None,
    rate: Annotated[
        list[float] | None, typer.Option("--rate", help="Only this noise rate of the grid.")
    ] = None,
    seed: Annotated[
        list[int] | None, typer.Option("--seed", help="Only this seed of the grid.")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try runs again that failed.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would run and for how long, and stop.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the built-in grids.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Run methods on noisy data sets and compare them; started again, it goes on."""
    with reported():
        from bltm.benchmark.choice import Choice
        from bltm.benchmark.command import BenchOptions, list_grids, run_bench
        from bltm.core.errors import InputError
        from bltm.runs.config import parse_parameters

        if list_:
            typer.echo(list_grids())
            return
        if grid is None:
            raise InputError("GRID", "is missing", "See 'bltm bench --list'.")
        options = BenchOptions(
            grid=grid,
            out=out,
            jobs=jobs,
            threads=threads,
            engine=engine,
            ray_address=ray_address,
            gpus=gpus,
            quick=quick,
            parameters=parse_parameters(set_ or []),
            choice=Choice(
                tuple(method or ()), tuple(data or ()), tuple(rate or ()), tuple(seed or ())
            ),
            retry_failed=retry_failed,
            dry_run=dry_run,
            quiet=quiet,
        )
        try:
            result = run_bench(options, typer.echo)
        except KeyboardInterrupt:
            say("Stopped. Repeat the command to go on where it was.")
            raise typer.Exit(INTERRUPTED) from None
        if result is None:
            return
        if result.done:
            from bltm.report.documents import write_documents

            typer.echo(write_documents([result.rows], result.out))
        typer.echo(result.in_words())
        if result.failed or result.left:
            raise typer.Exit(FAILED)
