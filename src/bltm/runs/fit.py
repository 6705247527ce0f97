"""Fit a method to a source inside a run directory, from the start or from where it stopped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bltm.engine.devices import make_fabric
from bltm.engine.job import Job
from bltm.engine.workbench import Workbench
from bltm.methods.persistence import save
from bltm.runs.artifacts import write_evidence
from bltm.runs.config import RunConfig
from bltm.runs.directory import POSTERIORS, RunDirectory, State
from bltm.runs.estimate import estimate
from bltm.runs.processes import StopSignal, agreed, is_first_process
from bltm.runs.summary import summarise

Say = Callable[[str], None]


@dataclass(frozen=True)
class FitOptions:
    """What does not change the result of a run.

    Attributes
    ----------
    resume, overwrite
        What may happen to a run that exists.
    checkpoint_every
        Seconds between two saves inside an epoch.
    quiet
        No progress.
    """

    resume: bool = False
    overwrite: bool = False
    checkpoint_every: float = 60.0
    quiet: bool = False


def fit_run(config: RunConfig, out: Path, options: FitOptions, say: Say) -> str:
    """Fit, write the run directory and return the summary in words.

    With several processes all of them run this; the first one writes. Whatever can be checked is
    checked before others are launched.

    Parameters
    ----------
    config
        What to fit.
    out
        The run directory.
    options
        How to go about it.
    say
        Takes a line for the user while the run goes on.
    """
    directory, first = RunDirectory(out), is_first_process()
    permission = {"resume": options.resume, "overwrite": options.overwrite}
    if first:
        directory.check(**permission)
    estimator = config.make_estimator()
    estimator.check_processes(config.devices * config.num_nodes)
    estimator.set_params(verbose=0 if options.quiet or not first else 1)
    source = config.open_source()
    place = str(Path(config.data).resolve()) if Path(config.data).exists() else config.data
    labels = None if config.labels is None else str(Path(config.labels).resolve())
    config = replace(config, data=place, labels=labels, data_sha256=source.fingerprint)
    with (
        directory.claimed(**permission) if first else nullcontext(),
        StopSignal(say if first else _silent) as stop,
    ):
        if first and options.resume and directory.state is State.FINISHED:
            directory.compare(config)
            directory.drop_checkpoint()
            return f"'{out}' holds a finished run of this kind; there is nothing to do."
        if first and not options.quiet:
            for note in source.notes:
                say(f"note: {note}")
        fabric = make_fabric(config.device, config.precision, config.devices, config.num_nodes)

        def workbench(**parts: Any) -> Workbench:
            if first:
                if options.resume and directory.state is State.UNFINISHED and not options.quiet:
                    say(f"Resuming '{out}' where it was saved; the estimate is of the whole run.")
                directory.begin(config, overwrite=options.overwrite)
            fabric.barrier()
            return Workbench(
                store=directory.store(writes=first),
                checkpoint_every=options.checkpoint_every,
                checkpoint_least=min(1.0, options.checkpoint_every),
                stop_requested=agreed(stop, fabric),
                **parts,
            )

        def before(job: Job) -> None:
            if first and not options.quiet:
                say(estimate(job, estimator.full_plan(len(job.split.train))).in_words())
            stop.arm()

        estimator.fit_source(source, workbench, fabric=fabric, before=before)
        evidence = estimator.evidence_
        if first:
            write_evidence(evidence, out / POSTERIORS)
            save(estimator, out)
            directory.drop_checkpoint()
    return summarise(config, evidence, estimator.findings_, out) if first else ""


def _silent(message: str) -> None:
    """Say nothing."""
