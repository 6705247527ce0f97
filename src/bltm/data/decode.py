"""Image files to pixels: orientation, transparency, depth and size made alike."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError
from torch.utils.data import Dataset

from bltm.core.errors import InputError
from bltm.data.source import ImageFiles

Pixels = NDArray[np.uint8]
GREY_MODES = frozenset({"1", "L", "LA", "La", "I", "F", "I;16", "I;16B", "I;16L", "I;16N"})
# What Pillow raises for files that are no images, are cut off, or claim absurd sizes.
UNREADABLE = (
    OSError, SyntaxError, ValueError, EOFError, UnidentifiedImageError, Image.DecompressionBombError
)  # fmt: skip
_ORIENTATION = 0x0112
_THREADS = 4


def flatten(image: Image.Image, channels: int) -> Pixels:
    """Return the pixels of an image, shape (H, W, channels), with 1 or 3 channels.

    Transparent parts are put on white. Of 16 bits the upper 8 are kept.

    Examples
    --------
    >>> flatten(Image.new("RGBA", (2, 1), (255, 0, 0, 0)), 3).tolist()
    [[[255, 255, 255], [255, 255, 255]]]
    """
    image = _eight_bits(image)
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = Image.alpha_composite(white, image)
    plain = np.asarray(image.convert("L" if channels == 1 else "RGB"), dtype=np.uint8)
    return plain.reshape(image.height, image.width, channels)


def decode(
    path: Path, size: tuple[int, int], channels: int, short_side: int | None = None
) -> Pixels:
    """Return the pixels of a file at ``size`` (height, width), upright.

    With ``short_side`` the image is scaled until its short side has that many pixels, and the
    centre is cut out; otherwise all of it is brought to ``size``, whatever its proportions.
    """
    height, width = size
    with Image.open(path) as opened:
        # JPEG can be decoded at a fraction of its size; twice the target keeps the quality.
        target = 2 * (short_side or max(size))
        opened.draft("RGB", (target, target))
        image = Image.fromarray(_squeezed(flatten(ImageOps.exif_transpose(opened), channels)))
    if short_side is not None or image.size != (width, height):
        box = None if short_side is None else centre(image.height, image.width, size, short_side)
        image = image.resize((width, height), Image.Resampling.BILINEAR, box=box)
    return np.asarray(image, dtype=np.uint8).reshape(height, width, channels)


def centre(
    height: int, width: int, size: tuple[int, int], short_side: int
) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of what becomes ``size`` if the short side is scaled.

    Examples
    --------
    >>> centre(512, 1024, (224, 224), 256)
    (288.0, 32.0, 736.0, 480.0)
    """
    scale = min(height, width) / short_side
    top, left = (height - size[0] * scale) / 2, (width - size[1] * scale) / 2
    return left, top, width - left, height - top


def measure(path: Path) -> tuple[int, int, bool]:
    """Return height, width and whether the image is grey, from the head of the file."""
    with Image.open(path) as image:
        width, height = image.size
        if image.getexif().get(_ORIENTATION, 1) >= 5:
            width, height = height, width
        return height, width, image.mode in GREY_MODES


def decode_all(
    files: ImageFiles, size: tuple[int, int], channels: int, short_side: int | None = None
) -> Pixels:
    """Return the pixels of all files, shape (N, H, W, channels).

    All files that cannot be decoded are reported in one error.
    """
    pixels = np.empty((len(files), *size, channels), dtype=np.uint8)

    def fill(row: int) -> None:
        pixels[row] = decode(files.path(row), size, channels, short_side)

    raise_unreadable(files, attempt(fill, len(files)))
    return pixels


def attempt(work: Callable[[int], Any], count: int) -> dict[int, str]:
    """Do ``work`` for each row in threads; return the rows whose image is unreadable, and why."""

    def guarded(row: int) -> str | None:
        try:
            work(row)
        except UNREADABLE as error:
            return str(error) or type(error).__name__
        return None

    # Pillow decodes without the interpreter's lock, so threads do and no processes are needed.
    with ThreadPoolExecutor(_THREADS) as pool:
        problems = list(pool.map(guarded, range(count)))
    return {row: problem for row, problem in enumerate(problems) if problem is not None}


def raise_unreadable(files: ImageFiles, problems: dict[int, str]) -> None:
    """Raise one error that names the first unreadable files, if there are any."""
    if not problems:
        return
    shown = "; ".join(f"{files.names[row]} ({problems[row]})" for row in list(problems)[:5])
    more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
    raise InputError(
        "images",
        f"{len(problems)} of {len(files)} cannot be read: {shown}{more}",
        'Repair or remove them, or leave them out with unreadable="skip".',
    )


class FileItems(Dataset[torch.Tensor]):
    """Image files as raw tensors of shape (H, W, channels), decoded one by one."""

    def __init__(
        self,
        files: ImageFiles,
        size: tuple[int, int],
        channels: int,
        short_side: int | None = None,
    ) -> None:
        self._files, self._size = files, size
        self._channels, self._short_side = channels, short_side

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, row: int) -> torch.Tensor:
        try:
            path = self._files.path(row)
            pixels = decode(path, self._size, self._channels, self._short_side)
            return torch.from_numpy(pixels.copy())
        except UNREADABLE as error:
            raise InputError(
                str(self._files.names[row]),
                f"cannot be read ({error})",
                'Repair or remove it, or leave it out with unreadable="skip".',
            ) from error


def _eight_bits(image: Image.Image) -> Image.Image:
    if image.mode == "I" or image.mode.startswith("I;16"):
        deep = np.clip(np.asarray(image).astype(np.int64), 0, 65535)
        return Image.fromarray((deep >> 8).astype(np.uint8))
    if image.mode == "F":
        values = np.nan_to_num(np.asarray(image, dtype=np.float64))
        values = values * 255.0 if values.max(initial=0.0) <= 1.0 else values
        return Image.fromarray(np.clip(np.rint(values), 0, 255).astype(np.uint8))
    return image


def _squeezed(pixels: Pixels) -> Pixels:
    return pixels[..., 0] if pixels.shape[2] == 1 else pixels
