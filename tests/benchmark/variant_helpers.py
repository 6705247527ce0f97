"""A small noisy problem whose T(x) is known, and quick variants."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bltm.benchmark.variants import VARIANTS, Truth, make_variant
from bltm.core.random import stream
from bltm.data.source import Source, as_source
from bltm.engine.workbench import Workbench
from bltm.methods.base import NoisyLabelClassifier
from bltm.noise import make_noise
from bltm.noise.record import assemble


@dataclass(frozen=True)
class Problem:
    x: np.ndarray
    clean: np.ndarray
    truth: Truth

    @property
    def source(self) -> Source:
        assert self.truth.noise is not None
        return as_source(self.x, self.truth.noise.y_noisy)


@cache
def blobs(n: int = 240) -> Problem:
    """Three classes around the corners of a triangle, and noise of Algorithm 2."""
    clean = np.arange(n) % 3
    x = 4.0 * np.eye(3)[clean] + stream(0, "blobs").standard_normal((n, 3))
    return Problem(x, clean, Truth(clean, make_noise(x, clean, "instance", 0.2, 0)))


@cache
def half_turned(n: int = 600) -> Problem:
    """Two classes side by side; in the upper half plane most labels are the other class's."""
    clean = np.arange(n) % 2
    x = stream(0, "points").standard_normal((n, 2)) + np.column_stack([4.0 * clean, 0 * clean])
    q = np.where(x[:, 1] > 0, 0.8, 0.05)
    T = np.stack([np.stack([1 - q, q], 1), np.stack([q, 1 - q], 1)], 1)
    row = T[np.arange(n), clean]
    noisy = np.where(stream(0, "flips").random(n) < q, 1 - clean, clean)
    noise = assemble(
        model="half-turned",
        rate=0.4,
        seed=0,
        y=clean,
        y_noisy=noisy,
        row=row,
        options={},
        transition_of=lambda index: T[index],
    )
    return Problem(x, clean, Truth(clean, noise))


def fitted(
    name: str, problem: Problem, workbench: Any = Workbench, **parameters: Any
) -> NoisyLabelClassifier:
    """The variant, trained for a few epochs."""
    settings = {"epochs": 3, "batch_size": 32, "random_state": 0, "device": "cpu"} | parameters
    truth = problem.truth if VARIANTS[name].needs_truth else None
    return make_variant(name, truth, **settings).fit_source(problem.source, workbench)
