"""Search in a unit cube by independent Beta distributions that move towards good draws.

The expected score of a draw is raised by Newton steps on the log-density of the better draws of a
round. The log-density of an exponential family has minus the Fisher information as its second
derivative, whatever was drawn, so this is also the natural gradient; and it falls apart into one
problem with two unknowns for each coordinate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, polygamma

FloatArray = NDArray[np.float64]

LEAST = 1.0
"""Parameters below one would have their mass at both ends of the interval."""
EDGE = 1e-6


@dataclass(frozen=True)
class Betas:
    """Independent Beta distributions, ``x_k ~ Beta(a_k, b_k)``, with all parameters at least 1.

    Examples
    --------
    >>> betas = Betas.uniform(1)
    >>> for _ in range(5):
    ...     betas = betas.moved_to(np.array([[0.9]]))
    >>> bool(betas.mean[0] > 0.8)
    True
    """

    a: FloatArray
    b: FloatArray

    @classmethod
    def uniform(cls, size: int) -> Betas:
        """Return uniform distributions."""
        return cls(np.ones(size), np.ones(size))

    @property
    def mean(self) -> FloatArray:
        """Return the mean of each coordinate."""
        return self.a / (self.a + self.b)

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Draw one point."""
        return np.asarray(rng.beta(self.a, self.b), dtype=np.float64)

    def moved_to(self, points: FloatArray, step: float = 1.0) -> Betas:
        """Return the distributions after a Newton step on the points' mean log-density.

        Parameters
        ----------
        points
            The better draws of a round, shape (M, size).
        step
            How far to go: 1 for the whole step.
        """
        points = points.clip(EDGE, 1 - EDGE)
        total = digamma(self.a + self.b)
        gradient = np.stack(
            [
                np.log(points).mean(axis=0) - digamma(self.a) + total,
                np.log1p(-points).mean(axis=0) - digamma(self.b) + total,
            ],
            axis=1,
        )
        shared = polygamma(1, self.a + self.b)
        fisher = np.empty((len(self.a), 2, 2))
        fisher[:, 0, 0] = polygamma(1, self.a) - shared
        fisher[:, 1, 1] = polygamma(1, self.b) - shared
        fisher[:, 0, 1] = fisher[:, 1, 0] = -shared
        least = LEAST - np.stack([self.a, self.b], axis=1)
        move = step * highest_within(gradient, fisher, least)
        return Betas(self.a + move[:, 0], self.b + move[:, 1])


def highest_within(gradient: FloatArray, curvature: FloatArray, least: FloatArray) -> FloatArray:
    """Return ``argmax_d g·d - d·H·d / 2`` with ``d >= least``, for K problems of two unknowns.

    Cutting an unbounded Newton step at the bounds would not do: the other unknown has to know of
    the cut.

    Parameters
    ----------
    gradient
        g, shape (K, 2).
    curvature
        H, positive definite, shape (K, 2, 2).
    least
        Lower bounds, not above zero, shape (K, 2).
    """
    free = np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
    candidates = [np.where((free >= least).all(axis=1, keepdims=True), free, np.nan)]
    for held, other in ((0, 1), (1, 0)):
        bounded = least.copy()
        slope = gradient[:, other] - curvature[:, other, held] * least[:, held]
        bounded[:, other] = np.maximum(slope / curvature[:, other, other], least[:, other])
        candidates.append(bounded)
    moves = np.stack(candidates)
    gains = (moves * gradient).sum(-1) - np.einsum("cki,kij,ckj->ck", moves, curvature, moves) / 2
    best = np.nanargmax(gains, axis=0)
    return np.asarray(moves[best, np.arange(len(best))], dtype=np.float64)
