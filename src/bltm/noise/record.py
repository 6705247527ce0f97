"""What a noise model hands back: labels, the rows they were drawn from, and a manifest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bltm.core.errors import InputError
from bltm.core.files import array_hash
from bltm.core.matrix import FloatArray, check_rows, check_transition
from bltm.core.records import IntArray

TransitionOf = Callable[[IntArray], FloatArray]


@dataclass(frozen=True, eq=False)
class NoisyLabels:
    """Noisy labels together with the probabilities they were drawn from.

    Everything is indexed by the position of the example in the data given to the noise model.
    Make the noise on the full training set and split afterwards, by index.

    Attributes
    ----------
    y_noisy
        Noisy labels, shape (n,).
    row
        The probability row each label was drawn from, P(noisy | clean label, x), shape (n, C).
        With this row the error of an estimated T(x) can be measured.
    q
        Probability that the label of each example is wrong, ``1 - row[i, y[i]]``, shape (n,).
    T
        Shape (C, C): the matrix that was asked for if the noise depends on the class alone,
        otherwise the mean of ``row`` over each clean class (identity for a class without examples).
    meta
        Model, nominal, expected and realised rate, seed, options, bounds and SHA-256 hashes.
    transition_of
        Function from B indices to matrices of shape (B, C, C), or None; see ``transition``. That
        of instance-dependent noise keeps a reference to the features.
    """

    y_noisy: IntArray
    row: FloatArray
    q: FloatArray
    T: FloatArray
    meta: Mapping[str, Any]
    transition_of: TransitionOf | None = None

    def __len__(self) -> int:
        return len(self.y_noisy)

    @property
    def n_classes(self) -> int:
        """Return the number of classes C."""
        return len(self.T)

    def transition(self, index: ArrayLike) -> FloatArray:
        """Return the clean-label transition matrices of some examples, shape (B, C, C).

        They are computed on request, so that N x C x C numbers are never held; ask for a batch at
        a time. Row ``y[i]`` is the one the label was drawn from; the other rows say what the model
        would have done had the clean label been another one. An error measured on those is an
        extrapolation.

        Parameters
        ----------
        index
            Positions of the B examples, shape (B,).
        """
        if self.transition_of is None:
            raise InputError(
                "transition", f"is not defined for noise model {self.meta['model']!r}", "Use row."
            )
        positions = np.asarray(index)
        if positions.ndim != 1 or positions.dtype.kind not in "iu":
            raise InputError(
                "index", f"needs integers of shape (B,), got {positions.dtype} {positions.shape}"
            )
        if positions.size and (positions.min() < 0 or positions.max() >= len(self)):
            raise InputError(
                "index",
                f"must lie in 0..{len(self) - 1}, got {positions.min()}..{positions.max()}",
            )
        return self.transition_of(positions.astype(np.int64))

    def manifest(self) -> dict[str, Any]:
        """Return what identifies this noise, ready to be written as JSON."""
        return {**self.meta, "T": self.T.tolist()}


def class_average(row: FloatArray, y: IntArray) -> FloatArray:
    """Return the mean row of each clean class; identity where a class has no example.

    Examples
    --------
    >>> class_average(np.array([[0.5, 0.5], [0.7, 0.3]]), np.array([0, 0])).tolist()
    [[0.6, 0.4], [0.0, 1.0]]
    """
    n_classes = row.shape[1]
    counts = np.bincount(y, minlength=n_classes)
    sums = np.zeros((n_classes, n_classes))
    np.add.at(sums, y, row)
    sums[counts == 0] = np.eye(n_classes)[counts == 0]
    return sums / np.maximum(counts, 1)[:, None]


def assemble(
    *,
    model: str,
    rate: float,
    seed: int,
    y: IntArray,
    y_noisy: IntArray,
    row: FloatArray,
    q: FloatArray | None = None,
    T: FloatArray | None = None,
    x: NDArray[Any] | None = None,
    flip_rate_bound: float = 1.0,
    options: Mapping[str, Any],
    transition_of: TransitionOf | None,
) -> NoisyLabels:
    """Check a model's rows and put the record together, with its manifest.

    ``bounds`` in the manifest has two entries. ``flip_rate`` is the largest q the model can give.
    ``wrong_label`` is the largest off-diagonal entry among the rows drawn from: the largest
    P(noisy=j | Y=i, x), i != j, that occurred. ``x`` is hashed if the model used it.
    """
    check_rows(row, "row", atol=1e-12)
    T = class_average(row, y) if T is None else T
    check_transition(T)
    everyone = np.arange(len(y))
    q = 1.0 - row[everyone, y] if q is None else q
    wrong = row.copy()
    wrong[everyone, y] = 0.0
    inputs = {"y": array_hash(y)} if x is None else {"y": array_hash(y), "x": array_hash(x)}
    meta: dict[str, Any] = {
        "model": model,
        "nominal_rate": rate,
        "expected_rate": float(q.mean()),
        "realised_rate": float((y_noisy != y).mean()),
        "seed": int(seed),
        "n": len(y),
        "n_classes": row.shape[1],
        "absent_classes": np.setdiff1d(np.arange(row.shape[1]), y).tolist(),
        "feature_mode": options.get("feature_mode"),
        "options": dict(options),
        "bounds": {"flip_rate": flip_rate_bound, "wrong_label": float(wrong.max())},
        "sha256": {
            "inputs": inputs,
            "outputs": {"y_noisy": array_hash(y_noisy), "row": array_hash(row)},
        },
    }
    return NoisyLabels(y_noisy, row, q, T, meta, transition_of)


def unchanged(
    *, model: str, seed: int, y: IntArray, n_classes: int, options: Mapping[str, Any]
) -> NoisyLabels:
    """Return the record of noise at rate 0: the labels as they are."""
    identity = np.eye(n_classes)
    return assemble(
        model=model,
        rate=0.0,
        seed=seed,
        y=y,
        y_noisy=y.copy(),
        row=identity[y],
        T=identity,
        flip_rate_bound=0.0,
        options=options,
        transition_of=lambda index: np.repeat(identity[None], len(index), axis=0),
    )
