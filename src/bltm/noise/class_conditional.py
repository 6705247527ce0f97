"""Noise that depends on the clean class and on nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bltm.core.errors import InputError
from bltm.core.matrix import FloatArray, check_transition, sample_rows
from bltm.core.random import stream
from bltm.core.records import IntArray
from bltm.noise.inputs import check_choice, check_labels, check_length, check_rate
from bltm.noise.matrices import map_matrix, map_targets, pair_matrix, symmetric_matrix
from bltm.noise.record import NoisyLabels, assemble, unchanged

DRAWS = ("bernoulli", "exact")


def symmetric_noise(
    x: Any,
    y: ArrayLike,
    rate: float | None,
    seed: int,
    n_classes: int | None = None,
    *,
    inclusive: bool = False,
    draws: str = "bernoulli",
) -> NoisyLabels:
    """Flip labels to all other classes alike; see `symmetric_matrix` and `matrix_noise`.

    Examples
    --------
    >>> noisy = symmetric_noise(None, np.arange(100) % 4, 0.2, seed=0, draws="exact")
    >>> noisy.meta["realised_rate"]
    0.2
    """
    labels, count = _labels(x, y, n_classes)
    nominal = check_rate(rate, 1.0)
    T = symmetric_matrix(count, nominal, inclusive)
    return _draw("symmetric", labels, T, nominal, seed, draws, {"inclusive": inclusive})


def pair_noise(
    x: Any,
    y: ArrayLike,
    rate: float | None,
    seed: int,
    n_classes: int | None = None,
    *,
    draws: str = "bernoulli",
) -> NoisyLabels:
    """Flip each class to the next one; see `pair_matrix` and `matrix_noise`.

    Examples
    --------
    >>> noisy = pair_noise(None, [0, 1, 2] * 10, 0.4, seed=0, draws="exact")
    >>> noisy.meta["realised_rate"]
    0.4
    """
    labels, count = _labels(x, y, n_classes)
    nominal = check_rate(rate, 0.5, open_end=True)
    return _draw("pair", labels, pair_matrix(count, nominal), nominal, seed, draws, {})


def asymmetric_noise(
    x: Any,
    y: ArrayLike,
    rate: float | None,
    seed: int,
    n_classes: int | None = None,
    *,
    mapping: str | Mapping[int, int],
    draws: str = "bernoulli",
) -> NoisyLabels:
    """Flip some classes to the one they are mistaken for.

    The map is applied through a matrix to the clean labels. (Relabelling class after class in
    place moves some labels there and back: for 3 <-> 5 at rate 0.4 the row of class 3 would be
    0.76/0.24 instead of 0.6/0.4.)

    Parameters
    ----------
    x
        Not used; may be None.
    y
        Clean labels, shape (n,).
    rate
        Probability that a label of a mapped class flips. The rate over all labels is smaller when
        the map leaves classes out and depends on how frequent the mapped ones are;
        ``meta["expected_rate"]`` has it.
    seed
        Seed of the stream of labels.
    n_classes
        Number of classes C; by default the largest label plus one.
    mapping
        A key of `bltm.noise.ASYMMETRIC_MAPS`, or a dict from class to class.
    draws
        See `matrix_noise`.

    Examples
    --------
    >>> noisy = asymmetric_noise(None, np.arange(100) % 10, 0.4, seed=0, mapping="cifar10")
    >>> round(noisy.meta["expected_rate"], 3)
    0.2
    """
    labels, count = _labels(x, y, n_classes)
    nominal = check_rate(rate, 1.0)
    targets = map_targets(mapping, count)
    options = {
        "mapping": mapping if isinstance(mapping, str) else None,
        "targets": {str(source): target for source, target in targets.items()},
    }
    T = map_matrix(count, nominal, targets)
    return _draw("asymmetric", labels, T, nominal, seed, draws, options)


def matrix_noise(
    x: Any,
    y: ArrayLike,
    rate: float | None,
    seed: int,
    n_classes: int | None = None,
    *,
    T: ArrayLike,
    draws: str = "bernoulli",
) -> NoisyLabels:
    """Draw noisy labels from a matrix of the caller's.

    Parameters
    ----------
    x
        Not used; may be None.
    y
        Clean labels, shape (n,).
    rate
        None: the matrix says it.
    seed
        Seed of the stream of labels.
    n_classes
        Number of classes; by default the size of ``T``.
    T
        Shape (C, C), ``T[i, j] = P(noisy=j | clean=i)``.
    draws
        ``bernoulli`` draws each label on its own. ``exact`` gives each class the rounded number
        of each noisy label (largest remainder) and draws which examples get them; ``row`` then
        holds these shares, which differ from ``T`` by less than one example.

    Examples
    --------
    >>> T = [[0.7, 0.3], [0.0, 1.0]]
    >>> noisy = matrix_noise(None, [0] * 10 + [1] * 10, None, seed=0, T=T, draws="exact")
    >>> np.bincount(noisy.y_noisy).tolist()
    [7, 13]
    """
    if rate is not None:
        raise InputError("rate", f"must be None with a matrix, got {rate!r}", "T gives the rates.")
    matrix = check_transition(T)
    if matrix.ndim != 2:
        raise InputError("T", f"needs shape (C, C), got {matrix.shape}")
    labels, count = _labels(x, y, len(matrix) if n_classes is None else n_classes)
    if len(matrix) != count:
        raise InputError("T", f"is {matrix.shape} but n_classes is {count}")
    # check_transition tolerates sums that are off by 1e-6; labels are drawn from exact rows.
    matrix = np.maximum(matrix, 0.0)
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    nominal = float((1.0 - np.diag(matrix))[labels].mean())
    return _draw("matrix", labels, matrix, nominal, seed, draws, {})


def exact_counts(T: FloatArray, class_sizes: IntArray) -> IntArray:
    """Round ``class_sizes[i] * T[i]`` to whole numbers that keep the sum of each row.

    Examples
    --------
    >>> exact_counts(np.array([[0.6, 0.4], [0.5, 0.5]]), np.array([10, 3])).tolist()
    [[6, 4], [2, 1]]
    """
    wanted = T * class_sizes[:, None]
    counts = np.floor(wanted).astype(np.int64)
    missing = class_sizes - counts.sum(axis=1)
    order = np.argsort(counts - wanted, axis=1, kind="stable")
    place = np.argsort(order, axis=1, kind="stable")
    return np.asarray(counts + (place < missing[:, None]), dtype=np.int64)


def _labels(x: Any, y: ArrayLike, n_classes: int | None) -> tuple[IntArray, int]:
    labels, count = check_labels(y, n_classes)
    if x is not None:
        check_length(x, len(labels))
    return labels, count


def _draw(
    model: str,
    y: IntArray,
    T: FloatArray,
    rate: float,
    seed: int,
    draws: str,
    options: Mapping[str, Any],
) -> NoisyLabels:
    options = {**options, "draws": check_choice("draws", draws, DRAWS)}
    if rate == 0.0:
        return unchanged(model=model, seed=seed, y=y, n_classes=len(T), options=options)
    rng = stream(seed, "noise", "labels")
    if draws == "exact":
        y_noisy, row = _exact(y, T, rng)
    else:
        row = T[y]
        y_noisy = sample_rows(row, rng)
    return assemble(
        model=model,
        rate=rate,
        seed=seed,
        y=y,
        y_noisy=y_noisy,
        row=row,
        T=T,
        flip_rate_bound=float((1.0 - np.diag(T)).max()),
        options=options,
        transition_of=lambda index: np.repeat(T[None], len(index), axis=0),
    )


def _exact(y: IntArray, T: FloatArray, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    sizes = np.bincount(y, minlength=len(T))
    counts = exact_counts(T, sizes)
    # Random order within each class, then the labels of class 0, of class 1, ... side by side.
    shuffled = rng.permutation(len(y))
    grouped = shuffled[np.argsort(y[shuffled], kind="stable")]
    labels = np.tile(np.arange(len(T)), len(T))
    y_noisy = np.empty_like(y)
    y_noisy[grouped] = np.repeat(labels, counts.ravel())
    shares = counts / np.maximum(sizes, 1)[:, None]
    return y_noisy, shares[y]
