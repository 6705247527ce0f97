"""One run: fit a method to a noisy data set, then judge it, and return the row of results."""

from __future__ import annotations

import shutil
import time
import traceback
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bltm.benchmark.cells import NoisyCell, open_cell
from bltm.benchmark.machine import describe_machine, forget_peak_memory
from bltm.benchmark.scoring import score
from bltm.benchmark.snapshots import keep_snapshots, plain_name, read_snapshots
from bltm.benchmark.spec import CEILING, REAL, RunSpec, hash_of
from bltm.benchmark.variants import VARIANTS, make_variant
from bltm.core.errors import InputError
from bltm.core.records import Split
from bltm.engine.job import Job
from bltm.engine.schedule import PlannedStage
from bltm.engine.store import DirectoryStore
from bltm.engine.workbench import Interrupted, Outcome, Workbench
from bltm.methods.base import NoisyLabelClassifier
from bltm.methods.registry import METHODS, make_method
from bltm.runs.estimate import peak_memory

FAMILIES = {"bltm": "bltm", "bltm-v": "bltm", "ptd": "ptd", "ptd-v": "ptd"}
"""Methods that are the same up to their revision; the stages they share are trained once.

So is the ceiling for all kinds and rates of noise.
"""


@dataclass(frozen=True, eq=False)
class _Fitted:
    """A fitted method with what is needed to judge it.

    ``outcome`` is of the final stage, ``outcomes`` of all.
    ``stages`` are the seconds of each training stage, ``taken_over`` how many of them were spent
    before: by a run of the same family, or by this one before it was killed.
    """

    estimator: NoisyLabelClassifier
    split: Split
    outcome: Outcome | None
    outcomes: list[Outcome]
    final: str
    stages: dict[str, float]
    taken_over: float


def execute(spec: RunSpec, work: Path) -> dict[str, Any]:
    """Fit and judge a method; a run that fails returns a row that says so.

    A run that was killed goes on where it was, from the files in ``work``.

    Parameters
    ----------
    spec
        The run.
    work
        Folder of the grid's working files.
    """
    started = time.perf_counter()
    row: dict[str, Any] = {"id": spec.id, "status": "done", "spec": spec.to_json()}
    forget_peak_memory()
    try:
        cell = open_cell(spec.cell, work / "cells")
        fitted = _fit(spec, cell, work)
        found = fitted.estimator.findings_
        fit_ended = time.perf_counter()
        judge = cell.evaluate()
        figures = score(
            fitted.estimator,
            cell.train,
            fitted.split,
            judge,
            read_snapshots(snapshot_directory(spec, work)),
            fitted.outcome,
            fitted.final,
        )
        if spec.method == CEILING:
            # It has not seen the labels that it would have to doubt.
            figures["average_precision"] = None
    except (KeyboardInterrupt, Interrupted):
        raise
    except Exception as error:
        failure = {
            "kind": type(error).__name__,
            "message": str(error),
            "traceback": traceback.format_exc(),
        }
        return {**row, "status": "failed", "error": failure, "recipe": describe_machine()}
    scored = time.perf_counter()
    return {
        **row,
        "figures": figures,
        "cost": {
            "seconds": found["seconds"] + fitted.taken_over,
            "stages": fitted.stages,
            "scoring_seconds": scored - fit_ended,
            "overhead_seconds": fit_ended - started - found["seconds"],
            "peak_memory": peak_memory(),
        },
        "noise": judge.noise,
        "recipe": describe_machine() | {"stages": _trained(fitted.outcomes)},
    }


def clean_up(specs: list[RunSpec], work: Path) -> None:
    """Delete the working files of runs whose rows are kept."""
    for spec in specs:
        for directory in (run_directory(spec, work), snapshot_directory(spec, work)):
            shutil.rmtree(directory, ignore_errors=True)


def family(spec: RunSpec) -> str:
    """Return what runs have in common that share stages; they must not run at the same time.

    Examples
    --------
    >>> from bltm.benchmark.spec import Cell
    >>> cell = Cell("digits", None, "instance", 0.3, 0)
    >>> family(RunSpec(cell, "bltm")) == family(RunSpec(cell, "bltm-v"))
    True
    """
    spec = _as_trained(spec)
    values = spec.to_json() | {"method": FAMILIES.get(spec.method, spec.method)}
    return hash_of(values)[:16]


def run_directory(spec: RunSpec, work: Path) -> Path:
    """Return where a run and its family keep their stages."""
    return work / "stages" / family(spec)


def snapshot_directory(spec: RunSpec, work: Path) -> Path:
    """Return where a run keeps its networks after each epoch."""
    return work / "epochs" / _as_trained(spec).id


def make_estimator(spec: RunSpec, cell: NoisyCell | None = None) -> NoisyLabelClassifier:
    """Return the estimator of a run; an oracle needs the cell."""
    common = {"random_state": spec.cell.seed}
    if cell is not None:
        common["classes"] = cell.classes.tolist()
    if spec.method in VARIANTS:
        truth = cell.truth() if cell is not None and VARIANTS[spec.method].needs_truth else None
        return make_variant(spec.method, truth, **common, **spec.parameters)
    name = "cross-entropy" if spec.method == CEILING else spec.method
    if name not in METHODS:
        known = ", ".join([CEILING, *METHODS, *VARIANTS])
        raise InputError("methods", f"there is no method '{name}'", f"Known are {known}.")
    estimator = make_method(name)
    unknown = sorted(set(spec.parameters) - set(estimator.get_params(deep=False)))
    if unknown:
        raise InputError("parameters", f"'{unknown[0]}' is no parameter of the method '{name}'")
    estimator.set_params(**common, **spec.parameters)
    return estimator


def planned_stages(spec: RunSpec, n: int) -> list[PlannedStage]:
    """Return the training stages of a run with ``n`` training examples; refuse what cannot be."""
    if spec.method in VARIANTS and VARIANTS[spec.method].needs_truth:
        # Without the truth there is no oracle yet; it trains one classifier, as the bounds do.
        spec = replace(spec, method=CEILING)
    return make_estimator(spec).plan(n)


def stage_seconds(history: list[dict[str, Any]]) -> dict[str, float]:
    """Return the time that stages took, the lengths that one was tried with together.

    Examples
    --------
    >>> stage_seconds([{"stage": "fit/3-epochs", "seconds": 1}, {"stage": "fit", "seconds": 2}])
    {'fit': 3}
    """
    seconds: dict[str, float] = {}
    for line in history:
        name = plain_name(line["stage"])
        seconds[name] = seconds.get(name, 0) + line["seconds"]
    return seconds


def _fit(spec: RunSpec, cell: NoisyCell, work: Path) -> _Fitted:
    directory, snapshots = run_directory(spec, work), snapshot_directory(spec, work)
    estimator = make_estimator(spec, cell)
    train = cell.train
    if spec.method == CEILING:
        train = replace(train, labels=cell.classes[cell.truth().clean])
    # How many examples train makes no difference to the names of the stages.
    final = estimator.plan(len(train))[-1].stage
    for folder in (directory, snapshots):
        folder.mkdir(parents=True, exist_ok=True)
    benches: list[Workbench] = []
    jobs: list[Job] = []
    before: list[dict[str, Any]] = []

    def workbench(**parts: Any) -> Workbench:
        store = DirectoryStore(directory, directory / "history.jsonl")
        before.extend(store.history)
        watch = keep_snapshots(snapshots, final, spec.watch_transition)
        benches.append(Workbench(store=store, watch=watch, **parts))
        return benches[0]

    with warnings.catch_warnings():
        # A collection that misses a class is in the row; a grid of hundreds of runs is quiet.
        warnings.simplefilter("ignore", UserWarning)
        estimator.fit_source(train, workbench, before=jobs.append)
    (bench,), (job,) = benches, jobs
    own = {outcome.stage for outcome in bench.outcomes}
    stages = stage_seconds([line for line in estimator.history_ if line["stage"] in own])
    taken_over = stage_seconds([line for line in before if line["stage"] in own])
    return _Fitted(
        estimator,
        job.split,
        _chosen(bench, final),
        bench.outcomes,
        final,
        stages,
        sum(taken_over.values()),
    )


def _as_trained(spec: RunSpec) -> RunSpec:
    """Return the run without what it does not learn from: the ceiling knows nothing of noise."""
    if spec.method != CEILING:
        return spec
    return replace(spec, cell=replace(spec.cell, noise=REAL, rate=None, noise_options={}))


def _trained(outcomes: list[Outcome]) -> dict[str, dict[str, Any]]:
    """Return how each stage was trained, so that a row tells of which recipe it is."""
    return {each.stage: {"epochs": each.epochs, "lr": each.lr} for each in outcomes}


def _chosen(bench: Workbench, final: str) -> Outcome | None:
    """Return what came of the final stage with the length that was chosen."""
    length = bench.lengths.get(final)
    outcomes = [
        outcome
        for outcome in bench.outcomes
        if plain_name(outcome.stage) == final and length in (None, outcome.epochs)
    ]
    return outcomes[-1] if outcomes else None
