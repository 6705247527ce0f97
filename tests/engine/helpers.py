"""Small data, networks and workbenches for the tests of the engine."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from bltm.core.records import NoisyData
from bltm.data.examples import ImageExamples, VectorExamples
from bltm.data.groups import group_rows
from bltm.data.source import as_source
from bltm.data.splits import split_noisy
from bltm.engine.batches import Task
from bltm.engine.devices import make_fabric
from bltm.engine.job import Job
from bltm.engine.loop import EpochRecord, TrainState, train
from bltm.engine.schedule import Schedule, make_optimizer
from bltm.engine.selection import Score
from bltm.engine.stage import Stage, Step
from bltm.engine.store import Store
from bltm.engine.workbench import Workbench

FABRIC = make_fabric("cpu")
CPU = torch.device("cpu")


def blobs(n: int, n_classes: int = 3, d: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points around one corner per class, and their labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_classes, size=n)
    centres = 2.0 * np.eye(n_classes, d)
    return (centres[labels] + rng.standard_normal((n, d))).astype(np.float32), labels


def noisy_data(
    x: np.ndarray,
    labels: np.ndarray,
    n_classes: int,
    weights: np.ndarray | None = None,
    trusted: np.ndarray | None = None,
) -> NoisyData:
    """Vectors or images (N, H, W, channels) with labels."""
    n = len(x)
    values = torch.from_numpy(np.ascontiguousarray(x))
    examples = (
        VectorExamples(values)
        if x.ndim == 2
        else ImageExamples(values, torch.ones(x.shape[3]), torch.zeros(x.shape[3]))
    )
    return NoisyData(
        examples=examples,
        labels=labels.astype(np.int64),
        classes=np.arange(n_classes),
        weights=np.ones(n) if weights is None else weights,
        trusted=np.zeros(n, dtype=bool) if trusted is None else trusted,
        group=group_rows(as_source(x.reshape(n, -1))),
        ids=np.arange(n),
    )


def tiny_job(
    n: int = 60,
    n_classes: int = 3,
    *,
    seed: int = 0,
    validation: float = 0.2,
    net: str | Callable[[int], nn.Module] = "mlp",
    trusted: np.ndarray | None = None,
    **bench: Any,
) -> Job:
    """A job on a few points around one corner per class."""
    data = noisy_data(*blobs(n, n_classes), n_classes, trusted=trusted)
    split = split_noisy(data, validation, seed)
    return Job(data, split, Workbench(fabric=FABRIC, seed=seed, **bench), net)


class MemoryStore(Store):
    """Keeps artifacts in memory, as a directory would."""

    persistent = True

    def __init__(self) -> None:
        super().__init__()
        self.artifacts: dict[str, Any] = {}
        self.saved: list[str] = []

    def load(self, name: str) -> Any:
        return self.artifacts.get(name)

    def save(self, name: str, artifact: Any) -> None:
        tensors = {key: value.detach().clone() for key, value in artifact.tensors.items()}
        self.artifacts[name] = type(artifact)(tensors, artifact.values)
        self.saved.append(name)

    def discard(self, name: str) -> None:
        self.artifacts.pop(name, None)


def state_of(modules: dict[str, nn.Module], schedule: Schedule) -> TrainState:
    return TrainState(modules, make_optimizer(modules, schedule))


def stage_of(
    state: TrainState,
    step: Step,
    task: Task,
    schedule: Schedule,
    name: str = "stage",
    **options: Any,
) -> Stage:
    """The stage that a state belongs to."""
    return Stage(name, state.modules, step, task, schedule, **options)


def run(
    state: TrainState,
    step: Step,
    task: Task,
    schedule: Schedule,
    *,
    score: Score | None = None,
    validation: Task | None = None,
    tick: Callable[[TrainState, int], None] | None = None,
    seed: int = 0,
) -> list[EpochRecord]:
    """Train to the end of the schedule on one process."""
    stage = stage_of(state, step, task, schedule, score=score, validation=validation)
    return list(train(state, stage, FABRIC, seed=seed, tick=tick))


def weights_of(module: nn.Module) -> dict[str, bytes]:
    """Every weight and buffer, byte by byte."""
    return {
        name: value.detach().contiguous().numpy().tobytes()
        for name, value in module.state_dict().items()
    }
