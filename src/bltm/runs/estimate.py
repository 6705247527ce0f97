"""How long a fit will take and how much memory it needs, from a few steps on real examples."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bltm.engine.devices import alone
from bltm.engine.job import Job
from bltm.engine.loop import TrainState, train
from bltm.engine.schedule import PlannedStage, Schedule
from bltm.engine.stage import Stage
from bltm.engine.supervised import cross_entropy_step

BUDGET = 1.0
PROBE = 16
MOST = 1000
# Validation after each epoch and predictions between stages, relative to training.
OVERHEAD = 1.15


@dataclass(frozen=True)
class Estimate:
    """Seconds of training, number of training steps, and peak memory in bytes where known."""

    seconds: float
    steps: int
    memory: int | None

    def in_words(self) -> str:
        """Return one sentence.

        Examples
        --------
        >>> Estimate(75.0, 1200, 400 * 2**20).in_words()
        'Estimate: about 1.2 minutes for 1,200 training steps, and about 400 MB of memory.'
        """
        text = f"Estimate: about {duration(self.seconds)} for {self.steps:,} training steps"
        if self.memory is None:
            return f"{text}."
        return f"{text}, and about {self.memory / 2**20:,.0f} MB of memory."


def estimate(job: Job, plan: Sequence[PlannedStage]) -> Estimate:
    """Time some steps of a throwaway network and multiply by what is planned.

    Parameters
    ----------
    job
        The fit that is about to start; nothing of it changes.
    plan
        Its stages.
    """
    schedules = [
        (schedule, stage.examples)
        for stage in plan
        for schedule in stage.schedule.candidates(stage.examples)
    ]
    total = sum(s.epochs * math.ceil(examples / s.batch_size) for s, examples in schedules)
    if total == 0 or len(job.split.train) < 2:
        return Estimate(0.0, 0, None)
    per_example = seconds_per_example(job, max(s.batch_size for s, _ in schedules))
    work = sum(stage.work for stage in plan)
    seconds = OVERHEAD * work * per_example / job.bench.fabric.world_size
    return Estimate(seconds, total, _memory(job))


def seconds_per_example(job: Job, batch_size: int) -> float:
    """Return the time of forward, backward and update, divided by the examples in a batch.

    A small batch goes first; where it shows that a whole one would take too long, it has to do.
    """
    whole = min(batch_size, len(job.split.train))
    # The first step also sets up kernels.
    _, best = islice(_steps_of(job, min(PROBE, whole)), 2)
    spent = 0.0
    if best * whole < BUDGET:
        for seconds in _steps_of(job, whole):
            best, spent = min(best, seconds), spent + max(seconds * whole, 0.05)
            if spent + best * whole >= BUDGET:
                break
    return best


def duration(seconds: float) -> str:
    """Return a length of time in words.

    Examples
    --------
    >>> duration(3.2), duration(600), duration(9000)
    ('3 seconds', '10.0 minutes', '2.5 hours')
    """
    if seconds < 60:
        count = max(1, math.ceil(seconds - 0.5))
        return f"{count} second{'s' if count > 1 else ''}"
    if seconds < 3600:
        return f"{seconds / 60:.1f} minutes"
    return f"{seconds / 3600:.1f} hours"


def _steps_of(job: Job, size: int) -> Iterator[float]:
    """Train a throwaway network on one batch again and again; yield seconds per example."""
    stage = Stage(
        "estimate",
        {"classifier": job.new_classifier("estimate")},
        cross_entropy_step,
        job.training(index=job.split.train[:size]),
        Schedule(MOST, 1e-4, "adamw", batch_size=size),
    )
    for record in train(TrainState.of(stage), stage, alone(job.bench.fabric), seed=job.bench.seed):
        yield record.seconds / size


def _memory(job: Job) -> int | None:
    """Return the peak so far plus what stages keep for each example."""
    peak = peak_memory()
    if peak is None:
        return None
    # Posteriors, beliefs and a column of T*(x) are C numbers for each example.
    return peak + 4 * 4 * len(job.data) * job.data.n_classes


def peak_memory() -> int | None:
    """Return the largest amount of main memory that this process has held, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
