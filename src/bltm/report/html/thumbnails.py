"""Pictures made small enough for a report."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bltm.report.html.content import Limits, Pictures

if TYPE_CHECKING:
    from PIL.Image import Image

SIZES = (256, 192, 128, 96, 64, 48, 32)
QUALITY = 78
SAMPLE = 24
CHUNK = 256


@dataclass(frozen=True)
class Thumbnails:
    """Thumbnails of the first examples asked for, and how they came out.

    Attributes
    ----------
    encoded
        WebP in base64 for each example, None where there is no picture or no room.
    pixels
        The longest side that they may have.
    left_out
        Number of examples for which there was no room.
    unreadable
        Number of pictures that could not be read.
    """

    encoded: list[str | None]
    pixels: int
    left_out: int = 0
    unreadable: int = 0


def thumbnail(picture: bytes, pixels: int) -> bytes | None:
    """Return a picture as WebP whose longer side has at most so many pixels; None if unreadable.

    Small pictures are not made larger, and are kept without loss.
    """
    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # A picture that claims to be huge is refused before it is decoded.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(picture)) as opened:
                opened.draft("RGB", (pixels, pixels))
                small = _in_colour(ImageOps.exif_transpose(opened))
                small.thumbnail((pixels, pixels), reducing_gap=2.0)
    except (
        OSError,
        ValueError,
        SyntaxError,
        Image.DecompressionBombError,
        Image.DecompressionBombWarning,
    ):
        return None
    file = io.BytesIO()
    small.save(file, "WEBP", quality=QUALITY, method=3, lossless=max(small.size) <= 32)
    return file.getvalue()


def _in_colour(image: Image) -> Image:
    """Return an image with 8 bits for each colour; deeper ones are scaled to their own range."""
    from PIL import Image as images

    if image.mode in ("I", "F") or image.mode.startswith("I;"):
        values = np.asarray(image, dtype=np.float64)
        low, high = float(values.min()), float(values.max())
        image = images.fromarray((255 * (values - low) / ((high - low) or 1.0)).astype(np.uint8))
    transparent = "A" in image.getbands() or "transparency" in image.info
    return image.convert("RGBA" if transparent else "RGB")


def fitting(
    pictures: Pictures, needed: Sequence[int], wished: Sequence[int], room: int, limits: Limits
) -> Thumbnails:
    """Make thumbnails as large as the room allows.

    Parameters
    ----------
    pictures
        Gives the pictures.
    needed
        Indices of the pictures that matter most.
    wished
        Indices of others, which are left out first.
    room
        The most characters that all of them may take.
    limits
        Bounds of their size in pixels.

    Returns
    -------
    Thumbnails
        Of ``needed`` and ``wished``, in this order.
    """
    order = [*needed, *wished]
    # Where there is no picture, it says "null".
    room -= 5 * len(order)
    pixels = _pixels(pictures, len(needed), order, room, limits)
    encoded: list[str | None] = []
    unreadable = 0
    for picture in _in_chunks(pictures, order):
        small = None if picture is None else thumbnail(picture, pixels)
        if small is None:
            unreadable += 1
            encoded.append(None)
            continue
        text = base64.b64encode(small).decode()
        room -= len(text) + 3
        if room < 0:
            # What comes first matters most: once one has no room, no later one has.
            break
        encoded.append(text)
    left_out = len(order) - len(encoded)
    return Thumbnails([*encoded, *[None] * left_out], pixels, left_out, unreadable)


def _pixels(
    pictures: Pictures, needed: int, order: Sequence[int], room: int, limits: Limits
) -> int:
    """Return the largest size at which a sample says that the pictures fit."""
    sizes = [limits.pixels, *(size for size in SIZES if size < limits.pixels)]
    step = max(1, len(order) // SAMPLE)
    sample = [picture for picture in pictures(order[::step][:SAMPLE]) if picture is not None]
    if not sample:
        return limits.pixels
    for size in sizes:
        small = [thumbnail(picture, size) for picture in sample]
        mean = sum(4 * len(each) / 3 + 6 for each in small if each is not None) / len(sample)
        wanted = len(order) if size > limits.least_pixels else needed
        # The sample may be off by a little.
        if 1.1 * mean * wanted <= room:
            return size
    return sizes[-1]


def _in_chunks(pictures: Pictures, order: Sequence[int]) -> Iterator[bytes | None]:
    for start in range(0, len(order), CHUNK):
        yield from pictures(order[start : start + CHUNK])
