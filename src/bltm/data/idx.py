"""The idx format of MNIST and its successors."""

from __future__ import annotations

import math
import struct

import numpy as np
from numpy.typing import NDArray

from bltm.core.errors import InputError

_UNSIGNED_BYTE = 0x08


def parse_idx(content: bytes, name: str, dimensions: int) -> NDArray[np.uint8]:
    """Return the array of unsigned bytes in an idx file.

    Parameters
    ----------
    content
        The file.
    name
        What to call it in an error.
    dimensions
        How many dimensions it must have.

    Examples
    --------
    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]), "two numbers", 1).tolist()
    [7, 9]
    """
    head = 4 + 4 * dimensions
    if content[:4] != bytes([0, 0, _UNSIGNED_BYTE, dimensions]):
        raise InputError(
            name,
            f"is no idx file of bytes in {dimensions} dimensions: it begins with "
            f"{content[:4].hex() or 'nothing'}",
            "Fetch it again from the original address.",
        )
    if len(content) < head:
        raise InputError(name, "ends within its head", "Fetch it again.")
    shape = struct.unpack(f">{dimensions}I", content[4:head])
    if len(content) - head != math.prod(shape):
        raise InputError(
            name,
            f"announces {math.prod(shape)} bytes of data and has {len(content) - head}",
            "Fetch it again from the original address.",
        )
    # A copy, because an array over bytes may not be written to and torch warns about that.
    return np.frombuffer(content, dtype=np.uint8, offset=head).reshape(shape).copy()
