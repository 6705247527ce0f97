"""Arithmetic on images in memory, shape (N, H, W, channels)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_CHUNK_NUMBERS = 1 << 16


def channel_moments(
    pixels: NDArray[Any], index: IntArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return mean and deviation of each channel over rows; a constant channel has deviation 1.

    Sums go over the rows in the given order in float64.
    """
    share = weight / weight.sum()
    area = pixels.shape[1] * pixels.shape[2]

    def average(of: Callable[[FloatArray], FloatArray]) -> FloatArray:
        total = np.zeros(pixels.shape[3])
        for values, part in _chunks(pixels, index, share):
            total += (part * of(values).sum(axis=1)).sum(axis=0)
        return np.asarray(total / area)

    mean = average(lambda values: values)
    variance = average(lambda values: np.square(values - mean))
    return mean, np.where(variance > 1e-24, np.sqrt(variance), 1.0)


def compact(pixels: NDArray[Any]) -> tuple[torch.Tensor, float]:
    """Return images as one tensor, and what its numbers must be multiplied with.

    Whole numbers from 0 to 255, and fractions that are such numbers over 255, are stored in a
    byte each; anything else as float32.

    Examples
    --------
    >>> values, unit = compact(np.array([[[[0.0], [0.2], [1.0]]]]))
    >>> values.flatten().tolist(), unit == 1 / 255
    ([0, 51, 255], True)
    """
    if pixels.dtype == np.uint8 or pixels.dtype == bool:
        return _tensor(pixels.astype(np.uint8, copy=False)), 1.0
    low, high = float(pixels.min(initial=0)), float(pixels.max(initial=0))
    unit = 1.0 / 255.0 if pixels.dtype.kind == "f" and high <= 1.0 else 1.0
    step = max(1, _CHUNK_NUMBERS // max(1, pixels[:1].size))
    if low >= 0.0 and high / unit <= 255.0:
        stored = np.empty(pixels.shape, dtype=np.uint8)
        for start in range(0, len(pixels), step):
            exact = pixels[start : start + step] / unit
            whole = np.rint(exact)
            if np.abs(exact - whole).max() > 1e-3:
                break
            stored[start : start + step] = whole
        else:
            return _tensor(stored), unit
    return _tensor(pixels.astype(np.float32)), 1.0


def resized(pixels: NDArray[Any], size: tuple[int, int]) -> NDArray[Any]:
    """Return the images at another (height, width), bilinear and antialiased."""
    result = np.empty((len(pixels), *size, pixels.shape[3]), dtype=np.float32)
    for start in range(0, len(pixels), 256):
        part = torch.from_numpy(pixels[start : start + 256].astype(np.float32))
        scaled = torch.nn.functional.interpolate(
            part.permute(0, 3, 1, 2), size=size, mode="bilinear", antialias=True
        )
        result[start : start + 256] = scaled.permute(0, 2, 3, 1).numpy()
    return np.rint(result).astype(np.uint8) if pixels.dtype == np.uint8 else result


def _chunks(
    pixels: NDArray[Any], index: IntArray, share: FloatArray
) -> Iterator[tuple[FloatArray, FloatArray]]:
    step = max(1, _CHUNK_NUMBERS // max(1, pixels[:1].size))
    for start in range(0, len(index), step):
        chosen = pixels[index[start : start + step]].astype(np.float64)
        part = share[start : start + step, None]
        yield chosen.reshape(len(chosen), -1, pixels.shape[3]), part


def _tensor(values: NDArray[Any]) -> torch.Tensor:
    values = np.ascontiguousarray(values)
    # torch warns about arrays that may not be written to; a copy is cheaper than an explanation.
    return torch.from_numpy(values if values.flags.writeable else values.copy())
