"""How long a fit will take and how much memory it needs, from a few steps on real examples."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from bltm.core.random import torch_stream
from bltm.engine.job import Job
from bltm.engine.schedule import PlannedStage, Schedule, make_optimizer
from bltm.losses import cross_entropy

BUDGET = 1.0
PROBE = 16
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
    steps = [(stage, *_steps(stage.schedule, stage.examples)) for stage in plan]
    total = sum(count for _, count, _ in steps)
    if total == 0 or len(job.split.train) < 2:
        return Estimate(0.0, 0, None)
    widest = max(batch for _, _, batch in steps)
    per_example = seconds_per_example(job, widest)
    work = sum(stage.examples * stage.schedule.fitted_to(stage.examples).epochs for stage in plan)
    seconds = OVERHEAD * work * per_example / job.bench.fabric.world_size
    return Estimate(seconds, total, _memory(job))


def seconds_per_example(job: Job, batch_size: int) -> float:
    """Return the time of forward, backward and update, divided by the examples in a batch.

    A small batch goes first; where it shows that a whole one would take too long, it has to do.
    """
    network = job.new_classifier("estimate").train()
    optimizer = make_optimizer({"classifier": network}, Schedule(1, 1e-4, "adamw"))
    size = min(PROBE, batch_size, len(job.split.train))
    with torch_stream(job.bench.seed, "estimate"):
        _step(job, network, optimizer, size)  # the first step also sets up kernels
        best = _step(job, network, optimizer, size) / size
        whole = min(batch_size, len(job.split.train))
        spent = 0.0
        while spent + best * whole < BUDGET:
            seconds = _step(job, network, optimizer, whole)
            best, spent = min(best, seconds / whole), spent + max(seconds, 0.05)
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


def _steps(schedule: Schedule, examples: int) -> tuple[int, int]:
    """Return the number of steps and the batch size."""
    fitted = schedule.fitted_to(examples)
    return fitted.epochs * math.ceil(examples / fitted.batch_size), fitted.batch_size


def _step(job: Job, network: nn.Module, optimizer: torch.optim.Optimizer, size: int) -> float:
    started = time.perf_counter()
    index = torch.from_numpy(job.split.train[:size].copy())
    device = job.bench.device
    (x,) = job.data.examples.batches([index], device)
    labels = torch.from_numpy(job.data.labels)[index].to(device)
    parameters = list(network.parameters())
    with job.bench.fabric.autocast():
        loss = cross_entropy(network(x), labels).mean()
    for parameter, gradient in zip(
        parameters, torch.autograd.grad(loss, parameters, allow_unused=True), strict=True
    ):
        parameter.grad = gradient
    optimizer.step()
    loss.item()  # waits for the device
    return time.perf_counter() - started


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
