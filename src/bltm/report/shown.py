"""The training examples of a run as a report shows them: pictures, or rows of a table."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.data.source import ImageFiles, Source

SAMPLE = 1000
"""Images that are looked at to find out what is black and what is white."""


class Shown:
    """Pictures and rows of a source, by the position of an example in the evidence of a run.

    Parameters
    ----------
    source
        The data of the run, as it is now.
    ids
        The examples of the evidence; those that the data no longer has are left out.
    """

    def __init__(self, source: Source, ids: Sequence[Any]) -> None:
        self.source = source
        places: Mapping[str, int] = {str(name): row for row, name in enumerate(source.ids.tolist())}
        self._rows = [places.get(str(name)) for name in ids]

    @property
    def are_pictures(self) -> bool:
        """Return whether the examples are pictures."""
        return self.source.kind in ("images", "files")

    @property
    def are_rows(self) -> bool:
        """Return whether the examples are rows of a table."""
        return self.source.kind in ("table", "array")

    def pictures(self, index: Sequence[int]) -> list[bytes | None]:
        """Return the pictures of examples, encoded; None for one that cannot be read."""
        return [self._picture(self._rows[number]) for number in index]

    def table_rows(self, index: Sequence[int]) -> list[dict[str, str]]:
        """Return the columns of examples as text."""
        return [self._cells(self._rows[number]) for number in index]

    @cached_property
    def _range(self) -> tuple[float, float]:
        """Return what is black and what is white in images that are arrays."""
        some = np.asarray(self.source.inputs[:SAMPLE])
        low, high = float(some.min(initial=0)), float(some.max(initial=0))
        # Whole bytes are used as they are, unless hardly any of their range is.
        return (0.0, 255.0) if some.dtype == np.uint8 and high > 127 else (low, high)

    def _picture(self, row: int | None) -> bytes | None:
        if row is None:
            return None
        if isinstance(self.source.inputs, ImageFiles):
            try:
                return self.source.inputs.path(row).read_bytes()
            except OSError:
                return None
        return encoded(self.source.inputs[row], *self._range)

    def _cells(self, row: int | None) -> dict[str, str]:
        if row is None:
            return {}
        if self.source.kind == "table":
            values = self.source.inputs.iloc[row]
            return {str(name): str(value) for name, value in values.items()}
        numbers = self.source.inputs[row]
        return {f"x{column}": f"{value:g}" for column, value in enumerate(numbers.tolist())}


def encoded(image: NDArray[Any], low: float, high: float) -> bytes:
    """Return an image (height, width, channels) as PNG.

    Parameters
    ----------
    image
        Numbers of any kind.
    low, high
        What is black, and what is white.

    Examples
    --------
    >>> encoded(np.zeros((2, 2, 1)), 0.0, 1.0)[1:4]
    b'PNG'
    """
    from PIL import Image

    scaled = (np.asarray(image, dtype=np.float64) - low) / ((high - low) or 1.0)
    values = np.rint(255.0 * scaled.clip(0.0, 1.0)).astype(np.uint8)
    # Further channels have no colour of their own.
    picture = Image.fromarray(values[..., :3] if values.shape[-1] in (3, 4) else values[..., 0])
    with io.BytesIO() as file:
        picture.save(file, "PNG")
        return file.getvalue()
