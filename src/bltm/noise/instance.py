"""Bounded instance-dependent noise (Algorithm 2 of the paper)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bltm.core.errors import InputError
from bltm.core.matrix import FloatArray, sample_rows
from bltm.core.random import stream
from bltm.core.records import IntArray
from bltm.noise.features import Scaling, blocks, scaling
from bltm.noise.inputs import check_features, check_labels, check_rate
from bltm.noise.record import NoisyLabels, TransitionOf, assemble, unchanged

WeightsOf = Callable[[int], FloatArray]


def instance_noise(
    x: Any,
    y: ArrayLike,
    rate: float | None,
    seed: int,
    n_classes: int | None = None,
    *,
    rho_max: float = 0.6,
    sd: float = 0.1,
    feature_mode: str = "raw255",
    shared_w: bool = False,
) -> NoisyLabels:
    """Flip labels with a rate and towards targets that depend on the example (Algorithm 2).

    For each example a flip rate ``q_i ~ N(rate, sd^2)`` truncated to ``[0, rho_max]`` is drawn,
    and for each class c one matrix ``W_c ~ N(0, 1)`` of shape (d, C). The label of example i then
    comes from the row with ``1 - q_i`` at its clean label ``y_i`` and ``q_i softmax(x_i W_{y_i})``
    elsewhere, the softmax running over the other labels.

    Parameters
    ----------
    x
        Features (n, d), or images (n, ...), which are flattened.
    y
        Clean labels as codes 0..C-1, shape (n,).
    rate
        Nominal noise rate in [0, rho_max]. The truncation moves the mean of q: at ``rho_max=0.6``
        nominal rates 0.1, 0.2, 0.3, 0.4, 0.5 give 0.129, 0.206, 0.300, 0.395, 0.471. Rate 0
        leaves the labels alone (the truncated normal would have mean 0.080).
    seed
        Seed of the streams that flip rates, matrices and labels are drawn from.
    n_classes
        Number of classes C; by default the largest label plus one.
    rho_max
        Upper bound of the flip rates, in (0, 1]; 0.6 in the paper, 1 in part-dependent noise.
    sd
        Standard deviation of the normal before truncation.
    feature_mode
        How features are scaled, see `bltm.noise.features.scaling`. ``raw255`` is what the paper's
        experiments used: the softmax is then an argmax, each image has a single flip target, and
        most images of a class share it. ``std_unit`` gives several targets for each example.
    shared_w
        Use one matrix W for all classes, as a public variant does (with ``rho_max=1``). Its
        results are not comparable with those of the default.

    Notes
    -----
    *Two quantities called rho_max.* Here ``rho_max`` bounds the flip rate ``q_i``, the probability
    that a label is wrong. Section 3 of the paper, and with it the threshold ``(1 + rho_max) / 2``
    of section 4.2, bounds ``rho_y(x) = P(noisy = y | Y != y, x)``, the probability that examples
    of *other* classes are given the label y. That probability is a mean of entries ``T_iy(x)``
    with i != y, weighted by P(Y = i | Y != y, x). If the clean label is a function of x it is one
    such entry. Off-diagonal entries of a row add up to q_i, so the second quantity never exceeds
    the first, and stays well below it when flips spread over several targets. A threshold made
    with this ``rho_max`` is therefore safe, and larger than needed; the largest entry that occurred
    is in ``meta["bounds"]["wrong_label"]``.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(500, 8))
    >>> noisy = instance_noise(x, np.arange(500) % 4, rate=0.3, seed=1, feature_mode="std_unit")
    >>> noisy.row.shape, noisy.transition([0, 7]).shape
    ((500, 4), (2, 4, 4))
    >>> bool(noisy.q.max() <= 0.6)
    True
    """
    labels, count = check_labels(y, n_classes)
    features = check_features(x, len(labels))
    if not 0.0 < rho_max <= 1.0:
        raise InputError("rho_max", f"must lie in (0, 1], got {rho_max}", "The paper uses 0.6.")
    if not (0.0 < sd < np.inf):
        raise InputError("sd", f"must be positive, got {sd}", "The paper uses 0.1.")
    nominal = check_rate(rate, rho_max)
    scale = scaling(features, feature_mode)
    options = {"rho_max": rho_max, "sd": sd, "feature_mode": feature_mode, "shared_w": shared_w}
    if nominal == 0.0:
        return unchanged(model="instance", seed=seed, y=labels, n_classes=count, options=options)

    q = flip_rates(len(labels), nominal, rho_max, sd, stream(seed, "noise", "flip_rates"))
    weights_of = _weights(seed, features.shape[1], count, shared_w)
    row = np.empty((len(labels), count))
    for c in np.unique(labels).tolist():
        w = weights_of(c)
        for block in blocks(np.flatnonzero(labels == c)):
            row[block] = _rows(scale(features[block]), q[block], w, c)
    return assemble(
        model="instance",
        rate=nominal,
        seed=seed,
        y=labels,
        y_noisy=sample_rows(row, stream(seed, "noise", "labels")),
        row=row,
        q=q,
        x=features,
        flip_rate_bound=rho_max,
        options=options,
        transition_of=_transition_of(features, scale, q, weights_of, count),
    )


def flip_rates(
    n: int, rate: float, rho_max: float, sd: float, rng: np.random.Generator
) -> FloatArray:
    """Draw n flip rates from the normal truncated to [0, rho_max] (line 1 of Algorithm 2).

    Examples
    --------
    >>> q = flip_rates(1000, 0.3, 0.6, 0.1, np.random.default_rng(0))
    >>> bool(q.min() >= 0 and q.max() <= 0.6)
    True
    """
    from scipy.stats import truncnorm

    # SciPy takes the bounds in units of sd, measured from the mean.
    low, high = -rate / sd, (rho_max - rate) / sd
    q = truncnorm.rvs(low, high, loc=rate, scale=sd, size=n, random_state=rng)
    return np.clip(q, 0.0, rho_max)


def _weights(seed: int, d: int, n_classes: int, shared_w: bool) -> WeightsOf:
    # Each class has its own stream: W_c can be made again for a batch, and the C x d x C numbers
    # (246 MB for 100 classes of 32 x 32 colour images) are never in memory together.
    def weights_of(c: int) -> FloatArray:
        name = "shared" if shared_w else c
        return stream(seed, "noise", "weights", name).standard_normal((d, n_classes))

    return weights_of


def _rows(x: FloatArray, q: FloatArray, w: FloatArray, c: int) -> FloatArray:
    scores = x @ w
    scores[:, c] = -np.inf
    scores -= scores.max(axis=1, keepdims=True)
    targets = np.exp(scores)
    row = q[:, None] * targets / targets.sum(axis=1, keepdims=True)
    row[:, c] = 1.0 - q
    return np.asarray(row, dtype=np.float64)


def _transition_of(
    features: NDArray[Any], scale: Scaling, q: FloatArray, weights_of: WeightsOf, n_classes: int
) -> TransitionOf:
    def transition_of(index: IntArray) -> FloatArray:
        scaled = scale(features[index])
        rows = [_rows(scaled, q[index], weights_of(c), c) for c in range(n_classes)]
        return np.stack(rows, axis=1)

    return transition_of
