"""How long a grid will take, from rows that are there and a few steps on real examples."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from bltm.benchmark.cells import open_cell
from bltm.benchmark.execute import family, make_estimator, planned_stages
from bltm.benchmark.spec import RunSpec
from bltm.engine.job import Job
from bltm.runs.estimate import OVERHEAD, seconds_per_example

VALIDATION = 0.1
NET = ("net", "preset", "weights", "image_size", "batch_size")
"""Parameters that decide how long a step takes."""


class _Probed(Exception):
    """Ends a fit before its first stage."""


def forecast(
    runs: Sequence[RunSpec],
    rows: Iterable[Mapping[str, Any]],
    work: Path,
    threads: int | None = None,
) -> dict[str, float]:
    """Return the expected seconds of each run, by its id.

    Parameters
    ----------
    runs
        What is to be run.
    rows
        Results that are there: a method takes about as long at another rate or seed.
    work
        Folder of working files, for noisy labels.
    threads
        How many threads a run will have.
    """
    known: dict[str, list[float]] = {}
    for row in rows:
        if row["status"] == "done":
            spec = RunSpec.from_json(row["spec"])
            known.setdefault(_kind(spec), []).append(row["cost"]["seconds"])
    speeds: dict[str, float] = {}
    expected: dict[str, float] = {}
    # What runs of a family share is trained by the first of them.
    shared: dict[str, float] = {}
    threads_before = torch.get_num_threads()
    try:
        if threads is not None:
            torch.set_num_threads(threads)
        for run in runs:
            times = known.get(_kind(run))
            net = repr([run.cell.data, run.cell.images, *map(run.parameters.get, NET)])
            if times:
                seconds = sum(times) / len(times)
            else:
                if net not in speeds:
                    speeds[net] = _speed(run, work)
                examples = sum(stage.work for stage in planned_stages(run, _examples(run)))
                seconds = OVERHEAD * examples * speeds[net]
            before_it = shared.get(family(run), 0.0)
            expected[run.id] = max(0.0, seconds - before_it)
            shared[family(run)] = max(seconds, before_it)
    finally:
        torch.set_num_threads(threads_before)
    return expected


def _kind(spec: RunSpec) -> str:
    """Return what decides how long a run takes."""
    cell = spec.cell
    return repr([cell.data, cell.images, spec.method, sorted(spec.parameters.items(), key=str)])


def _examples(run: RunSpec) -> int:
    """Return the number of examples that a method trains on."""
    from bltm.data.registry import dataset_info

    n = run.cell.images or dataset_info(run.cell.data).n_train
    return round((1.0 - VALIDATION) * n)


def _speed(run: RunSpec, work: Path) -> float:
    """Return the seconds that one example takes in training."""
    found: list[float] = []

    def probe(job: Job) -> None:
        batch = max(stage.schedule.batch_size for stage in estimator.plan(len(job.split.train)))
        found.append(seconds_per_example(job, batch))
        raise _Probed

    cell = open_cell(run.cell, work / "cells")
    estimator = make_estimator(run, cell)
    with contextlib.suppress(_Probed):
        estimator.fit_source(cell.train, before=probe)
    return found[0]
