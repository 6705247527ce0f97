"""Small problems in which f, T(x), right and given labels are all known."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bltm.core.matrix import sample_rows


@dataclass(frozen=True)
class Problem:
    f: NDArray[np.float64]
    T: NDArray[np.float64]  # (N, C, C)
    right: NDArray[np.int64]
    labels: NDArray[np.int64]

    @property
    def wrong(self) -> NDArray[np.bool_]:
        return self.right != self.labels

    @property
    def noisy(self) -> NDArray[np.float64]:
        return np.einsum("nc,ncd->nd", self.f, self.T)

    @property
    def posterior(self) -> NDArray[np.float64]:
        n = np.arange(len(self.labels))
        joint = self.f * self.T[n, :, self.labels]
        return joint / joint.sum(axis=1, keepdims=True)


def clear_f(n: int, n_classes: int, rng: np.random.Generator, blur: float = 0.15) -> np.ndarray:
    """Return class probabilities that are mostly sure of one class."""
    f = rng.dirichlet(np.full(n_classes, blur), n) + 1e-9
    return f / f.sum(axis=1, keepdims=True)


def instance_dependent(n: int, n_classes: int, rate: float, seed: int = 0) -> Problem:
    """Half of the examples of a class flip to one neighbour, the others hardly at all."""
    rng = np.random.default_rng(seed)
    f = clear_f(n, n_classes, rng)
    hard = rng.random(n) < 0.5
    flip = np.where(hard, 2 * rate - 0.02, 0.02)
    step = np.where(rng.random(n) < 0.5, 1, n_classes - 1)
    T = np.zeros((n, n_classes, n_classes))
    for i in range(n_classes):
        T[:, i, i] = 1.0 - flip
        T[np.arange(n), i, (i + step) % n_classes] += flip
    return _drawn(f, T, rng)


def class_dependent(n: int, T: np.ndarray, seed: int = 0, blur: float = 0.15) -> Problem:
    rng = np.random.default_rng(seed)
    f = clear_f(n, len(T), rng, blur)
    return _drawn(f, np.broadcast_to(T, (n, *T.shape)), rng)


def pair(n_classes: int, rate: float) -> np.ndarray:
    return (1 - rate) * np.eye(n_classes) + rate * np.roll(np.eye(n_classes), 1, axis=1)


def symmetric(n_classes: int, rate: float) -> np.ndarray:
    flips = np.full((n_classes, n_classes), rate / (n_classes - 1))
    np.fill_diagonal(flips, 1 - rate)
    return flips


def _drawn(f: np.ndarray, T: np.ndarray, rng: np.random.Generator) -> Problem:
    right = sample_rows(f, rng)
    labels = sample_rows(T[np.arange(len(f)), right], rng)
    return Problem(f, T, right, labels)
