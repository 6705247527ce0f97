"""A problem in the plane of which everything is known: P(Y | x), Bayes labels, T(x), T*(x)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bltm.core.errors import InputError
from bltm.core.matrix import FloatArray, sample_rows
from bltm.core.random import stream
from bltm.core.records import IntArray


@dataclass(frozen=True, eq=False)
class ToySample:
    """Points x (n, 2) with clean labels drawn from P(Y | x), Bayes labels and noisy labels (n,)."""

    x: FloatArray
    y_clean: IntArray
    y_bayes: IntArray
    y_noisy: IntArray

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True)
class ToyProblem:
    r"""Overlapping Gaussian classes with instance-dependent noise in closed form.

    Classes have equal priors and unit covariance; their means lie evenly on a circle. A clean
    label flips with probability

    .. math:: q(x) = low + (high - low) / (1 + \exp(-x_1)),

    to the next class (mod C) with share ``(1 + lean tanh(x_2)) / 2`` and to the previous one
    otherwise.

    Parameters
    ----------
    n_classes
        Number of classes C.
    radius
        Radius of the circle of means; the smaller, the more the classes overlap.
    low, high
        Infimum and supremum of the flip rate q(x), ``0 <= low <= high < 1``.
    lean
        How strongly x decides between the two targets, in [0, 1].

    Notes
    -----
    ``rho_max`` is exact: section 3 of the paper defines it as the supremum over x and y of
    ``P(noisy = y | Y != y, x)``, a mean of the entries ``T_iy(x)``, i != y. Each entry is at most
    ``high (1 + lean) / 2``. Far out in a direction in which both coordinates grow, T_{i,i+1}(x)
    tends to this value for all i, and all weight goes to the class i whose mean lies farthest in
    that direction; so y = i + 1 attains it in the limit. With two classes next and previous are
    the same and the supremum is ``high``. With the default values it is 0.3.

    Examples
    --------
    >>> toy = ToyProblem()
    >>> round(toy.rho_max, 3)
    0.3
    >>> sample = toy.sample(100, seed=0)
    >>> sample.x.shape, toy.clean_transition(sample.x).shape
    ((100, 2), (100, 3, 3))
    """

    n_classes: int = 3
    radius: float = 1.6
    low: float = 0.1
    high: float = 0.4
    lean: float = 0.5

    def __post_init__(self) -> None:
        if self.n_classes < 2:
            raise InputError("n_classes", f"must be at least 2, got {self.n_classes}")
        if not 0.0 < self.radius < np.inf:
            raise InputError("radius", f"must be positive, got {self.radius}", "Use 1.6.")
        if not 0.0 <= self.low <= self.high < 1.0:
            raise InputError(
                "high",
                f"needs 0 <= low <= high < 1, got low={self.low}, high={self.high}",
                "They bound the probability that a label is wrong.",
            )
        if not 0.0 <= self.lean <= 1.0:
            raise InputError("lean", f"must lie in [0, 1], got {self.lean}")

    @property
    def means(self) -> FloatArray:
        """Return the class means, shape (C, 2)."""
        angles = 2 * np.pi * np.arange(self.n_classes) / self.n_classes
        return self.radius * np.column_stack([np.cos(angles), np.sin(angles)])

    @property
    def rho_max(self) -> float:
        """Return the supremum over x and y of P(noisy = y | Y != y, x)."""
        return self.high if self.n_classes == 2 else self.high * (1 + self.lean) / 2

    def posterior(self, x: ArrayLike) -> FloatArray:
        """Return P(Y | x), shape (N, C)."""
        points = _points(x)
        distances = ((points[:, None, :] - self.means) ** 2).sum(axis=2)
        scores = -0.5 * (distances - distances.min(axis=1, keepdims=True))
        weights = np.exp(scores)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float64)

    def bayes_labels(self, x: ArrayLike) -> IntArray:
        """Return the most probable label under P(Y | x), shape (N,)."""
        return np.asarray(self.posterior(x).argmax(axis=1), dtype=np.int64)

    def flip_rate(self, x: ArrayLike) -> FloatArray:
        """Return q(x) = P(noisy != Y | x), shape (N,)."""
        # The logistic function by way of tanh, which does not overflow.
        logistic = 0.5 * (1 + np.tanh(0.5 * _points(x)[:, 0]))
        return np.asarray(self.low + (self.high - self.low) * logistic, dtype=np.float64)

    def clean_transition(self, x: ArrayLike) -> FloatArray:
        """Return T(x), ``T[n, i, j] = P(noisy=j | Y=i, x_n)``, shape (N, C, C)."""
        points = _points(x)
        q = self.flip_rate(points)[:, None]
        share = 0.5 * (1 + self.lean * np.tanh(points[:, 1]))[:, None]
        i = np.arange(self.n_classes)
        T = np.zeros((len(points), self.n_classes, self.n_classes))
        T[:, i, i] = 1 - q
        T[:, i, (i + 1) % self.n_classes] += q * share
        T[:, i, (i - 1) % self.n_classes] += q * (1 - share)
        return T

    def noisy_posterior(self, x: ArrayLike) -> FloatArray:
        """Return P(noisy | x) = sum_i P(Y=i | x) T_i(x), shape (N, C)."""
        rows = np.einsum("ni,nij->nj", self.posterior(x), self.clean_transition(x))
        return np.asarray(rows, dtype=np.float64)

    def bayes_row(self, x: ArrayLike) -> FloatArray:
        """Return P(noisy | Y* = y*(x), x), shape (N, C): the row of T*(x) that data can show.

        The Bayes label is a function of x. To condition on it adds nothing to conditioning on x,
        so the row equals the noisy posterior.
        """
        return self.noisy_posterior(x)

    def bayes_transition(self, x: ArrayLike) -> FloatArray:
        """Return T*(x) of Eq. 1, ``P(noisy=j | Y*=i, x)``, shape (N, C, C).

        Row y*(x) is `bayes_row`. The other rows condition on an event of probability zero and
        nothing determines them; here they are the clean-label rows T_i(x), to which T*_i tends
        as P(Y=i | x) tends to one.
        """
        points = _points(x)
        T = self.clean_transition(points)
        T[np.arange(len(points)), self.bayes_labels(points)] = self.bayes_row(points)
        return T

    def sample(self, n: int, seed: int) -> ToySample:
        """Draw n independent points with their clean, Bayes and noisy labels."""
        if n < 1:
            raise InputError("n", f"must be at least 1, got {n}")
        y = stream(seed, "toy", "classes").integers(self.n_classes, size=n)
        x = self.means[y] + stream(seed, "toy", "points").standard_normal((n, 2))
        rows = self.clean_transition(x)[np.arange(n), y]
        y_noisy = sample_rows(rows, stream(seed, "toy", "labels"))
        return ToySample(x, y, self.bayes_labels(x), y_noisy)


def _points(x: ArrayLike) -> FloatArray:
    points = np.asarray(x, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise InputError("x", f"needs shape (N, 2), got {points.shape}")
    return points
