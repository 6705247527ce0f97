"""Features as the instance-dependent model sees them.

The scores of Algorithm 2 are x W with standard normal W, so they have standard deviation ||x||.
The scale of the features alone decides whether an example has one flip target or several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.core.matrix import FloatArray
from bltm.core.records import IntArray
from bltm.noise.inputs import check_choice

BLOCK = 4096


@dataclass(frozen=True)
class Scaling:
    """``(x - shift) * factor``, optionally divided by its Euclidean norm."""

    shift: FloatArray
    factor: FloatArray
    unit_norm: bool = False

    def __call__(self, values: NDArray[Any]) -> FloatArray:
        """Return scaled float64 features; a vector of norm zero stays zero."""
        scaled = (values.astype(np.float64) - self.shift) * self.factor
        if self.unit_norm:
            length = np.linalg.norm(scaled, axis=1, keepdims=True)
            scaled /= np.where(length > 0, length, 1.0)
        return np.asarray(scaled, dtype=np.float64)


def blocks(index: IntArray) -> Iterator[IntArray]:
    """Yield the indices in blocks, so that float64 copies of the features stay small."""
    for start in range(0, len(index), BLOCK):
        yield index[start : start + BLOCK]


def scaling(x: NDArray[Any], mode: str) -> Scaling:
    """Return the scaling of a feature mode, with the statistics of the whole data set.

    Parameters
    ----------
    x
        Features of all examples, shape (n, d).
    mode
        One of ``FEATURE_MODES``.

        ``raw255``
            Values as they are; floats that all lie in [0, 1] are taken for scaled images and
            multiplied by 255, so that an image gives the same noise in either form. On the 0..255
            scale targets are hard; on the 0..16 scale of 8 x 8 digits still nearly so (the largest
            target has 0.98 of the flips on average), on a standardised table they are softer.
        ``unit``
            Values in [0, 1]: uint8 divided by 255, floats in [0, 1] as they are, anything else
            mapped by the smallest and largest value of the data.
        ``normalised``
            One mean and one standard deviation for all features together.
        ``standardised``
            A mean and a standard deviation for each feature; a constant feature becomes 0.
        ``normalised_unit``, ``std_unit``
            The two before, then each example divided by its Euclidean norm.

    Examples
    --------
    >>> images = np.array([[0, 255], [51, 102]], dtype=np.uint8)
    >>> bool(np.allclose(scaling(images, "raw255")(images), images))
    True
    >>> bool(np.allclose(scaling(images / 255, "raw255")(images / 255), images))
    True
    >>> scaling(images, "unit")(images).tolist()
    [[0.0, 1.0], [0.2, 0.4]]
    """
    return FEATURE_MODES[check_choice("feature_mode", mode, tuple(FEATURE_MODES))](x)


def _raw255(x: NDArray[Any]) -> Scaling:
    return _affine(0.0, 255.0 if _is_unit_float(x) else 1.0)


def _unit(x: NDArray[Any]) -> Scaling:
    if x.dtype == np.uint8:
        return _affine(0.0, 1.0 / 255.0)
    if _is_unit_float(x):
        return _affine(0.0, 1.0)
    low, high = float(x.min()), float(x.max())
    return _affine(low, 1.0 / (high - low) if high > low else 0.0)


def _normalised(x: NDArray[Any]) -> Scaling:
    mean, variance = _moments(x)
    centre = mean.mean()
    spread = np.sqrt((variance + (mean - centre) ** 2).mean())
    return Scaling(np.asarray(centre), _inverse(spread))


def _standardised(x: NDArray[Any]) -> Scaling:
    mean, variance = _moments(x)
    return Scaling(mean, _inverse(np.sqrt(variance)))


def _then_unit_norm(
    scaling_of: Callable[[NDArray[Any]], Scaling],
) -> Callable[[NDArray[Any]], Scaling]:
    def combined(x: NDArray[Any]) -> Scaling:
        before = scaling_of(x)
        return Scaling(before.shift, before.factor, unit_norm=True)

    return combined


def _affine(shift: float, factor: float) -> Scaling:
    return Scaling(np.asarray(shift), np.asarray(factor))


def _is_unit_float(x: NDArray[Any]) -> bool:
    return x.dtype.kind == "f" and bool(x.min() >= 0.0) and bool(x.max() <= 1.0)


def _inverse(spread: Any) -> FloatArray:
    positive = spread > 0
    return np.asarray(np.where(positive, 1.0 / np.where(positive, spread, 1.0), 0.0))


def _moments(x: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    # In two passes over blocks: numpy.var would hold a float64 copy of all images.
    everyone = np.arange(len(x))
    mean = x.mean(axis=0, dtype=np.float64)
    squares = np.zeros(x.shape[1])
    for block in blocks(everyone):
        squares += ((x[block] - mean) ** 2).sum(axis=0)
    # Rounding of the mean must not pass for variation.
    constant = x.min(axis=0) == x.max(axis=0)
    return mean, np.where(constant, 0.0, squares / len(x))


FEATURE_MODES: dict[str, Callable[[NDArray[Any]], Scaling]] = {
    "raw255": _raw255,
    "unit": _unit,
    "normalised": _normalised,
    "standardised": _standardised,
    "normalised_unit": _then_unit_norm(_normalised),
    "std_unit": _then_unit_norm(_standardised),
}
