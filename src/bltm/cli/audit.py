"""``bltm audit`` and ``bltm report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bltm.cli.errors import reported

OF_RUN = "of-run"


class RunByDefault(TyperGroup):
    """``bltm audit run/`` is the command for a run; ``bltm audit apply ...`` is another."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the usual command in front where none is named."""
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = [OF_RUN, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=RunByDefault, no_args_is_help=True)

Relabel = Annotated[float, typer.Option(help="Relabel if another label is this probable.")]
Review = Annotated[float, typer.Option(help="Review if the label is wrong with this probability.")]
Drop = Annotated[
    float, typer.Option(help="Drop if it is this surely wrong and no other label is sure.")
]


@app.callback()
def _audit() -> None:
    """Find labels that are probably wrong: of a run (bltm audit RUN), or of ready posteriors.

    bltm audit RUN writes audit.csv, audit.parquet, audit.json and report.html into the run.
    bltm audit --labels labels.npy --probs probs.npy --out audit/ takes posteriors of any model.
    """


@app.command(OF_RUN, hidden=False)
def of_run(
    run: Annotated[Path | None, typer.Argument(help="Directory of a finished run.")] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Given labels (.npy), instead of a run.")
    ] = None,
    probs: Annotated[
        Path | None, typer.Option(help="Class probabilities (.npy) of any model.")
    ] = None,
    transition: Annotated[
        Path | None, typer.Option(help="T (.npy), if the probabilities are of right labels.")
    ] = None,
    classes: Annotated[
        str | None, typer.Option(help="Classes of the columns, separated by commas.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Directory for the files, by default the run.")
    ] = None,
    relabel: Relabel = 0.9,
    review: Review = 0.5,
    drop: Drop = 0.95,
    in_sample: Annotated[
        bool, typer.Option("--in-sample", help="Ask the classifier that saw the labels.")
    ] = False,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Whether to write report.html.")
    ] = True,
) -> None:
    """Judge the labels of a run, or labels beside ready posteriors (the usual command)."""
    with reported():
        from bltm.audit import Thresholds
        from bltm.core.errors import InputError
        from bltm.report.run_audit import AuditOptions, audit_arrays, audit_run

        thresholds = Thresholds(relabel, review, drop)
        options = AuditOptions(thresholds, True if in_sample else None, report)
        if run is not None:
            for name, value in (("labels", labels), ("probs", probs), ("transition", transition)):
                if value is not None:
                    raise InputError(name, "cannot be given with a run", "Give one of the two.")
            typer.echo(audit_run(run, out, options))
            return
        if labels is None or probs is None or out is None:
            missing = "RUN" if labels is None and probs is None else "--labels, --probs and --out"
            raise InputError("audit", f"needs {missing}", "See 'bltm audit --help'.")
        names = None if classes is None else [name.strip() for name in classes.split(",")]
        typer.echo(
            audit_arrays(labels, probs, out, transition=transition, classes=names, options=options)
        )


@app.command()
def apply(
    run: Annotated[Path, typer.Argument(help="Directory of the run whose labels were reviewed.")],
    corrected: Annotated[
        Path, typer.Argument(help="Table of corrected labels, as the report exports it.")
    ],
    out: Annotated[Path, typer.Option(help="Table to write: .csv, .tsv or .parquet.")],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the table if it exists.")
    ] = False,
) -> None:
    """Write all labels of a run with the corrections of a review."""
    with reported():
        from bltm.runs.relabel import apply_to_run

        typer.echo(apply_to_run(run, corrected, out, overwrite=overwrite))


def report(
    run: Annotated[Path, typer.Argument(help="Directory of a finished run.")],
    out: Annotated[Path, typer.Option(help="File to write.")],
) -> None:
    """Write the report of a run: one HTML file that needs no network."""
    with reported():
        from bltm.report.run_audit import report_run

        typer.echo(report_run(run, out))
