"""Image files of every sort for the tests."""

from pathlib import Path

import numpy as np
from PIL import Image


def save(path: Path, image: Image.Image, **options) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, **options)
    return path


def gradient(height: int, width: int) -> np.ndarray:
    """Dark at the top left, bright at the bottom right, red growing downward."""
    y, x = np.mgrid[0:height, 0:width]
    red, green = 255 * y / max(1, height - 1), 255 * x / max(1, width - 1)
    return np.stack([red, green, np.full_like(red, 40.0)], axis=2).astype(np.uint8)


def folder_of_classes(root: Path, n: int = 4, size: tuple[int, int] = (8, 10)) -> Path:
    """Two classes of n grey images each, all different."""
    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        for i in range(n):
            pixels = rng.integers(0, 256, size, dtype=np.uint8)
            save(root / name / f"{i}.png", Image.fromarray(pixels))
    return root
