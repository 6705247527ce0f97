"""The pickles of CIFAR's Python release, read without running anything that is in them.

A pickle is a program. The one that reads it here knows three names, those that the files of the
release use, and puts inert stand-ins for what they mean; any other name ends the reading. So a file
can make dictionaries, lists, texts, numbers and arrays of bytes, and nothing else.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.core.errors import InputError


class _Bytes:
    """Stands for ``numpy.dtype``: the type of unsigned bytes, and no other."""

    def __init__(self, code: bytes | str, *flags: object) -> None:
        if code not in (b"u1", "u1"):
            raise pickle.UnpicklingError(f"arrays of {code!r} are not expected")

    def __setstate__(self, state: object) -> None:
        """Byte order and the like say nothing about bytes."""


class _Array:
    """Stands for ``numpy.ndarray``: keeps the shape and the bytes."""

    values: NDArray[np.uint8]

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, by_column, content = state
        if type(kind) is not _Bytes or not isinstance(content, bytes):
            raise pickle.UnpicklingError("an array does not hold bytes")
        flat = np.frombuffer(content, dtype=np.uint8)
        self.values = flat.reshape(shape, order="F" if by_column else "C")


def _reconstruct(kind: object, shape: object, code: object) -> _Array:
    """Stand for NumPy's function of that name, which makes the empty array that is then filled."""
    if kind is not _Array:
        raise pickle.UnpicklingError("arrays of a class of their own are not expected")
    return _Array()


def _encode(text: str, encoding: str) -> bytes:
    """Stand for the way in which Python 3 writes bytes for Python 2."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes written as {encoding!r} are not expected")
    return text.encode("latin1")


_KNOWN: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Bytes,
    ("_codecs", "encode"): _encode,
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _KNOWN:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return _KNOWN[module, name]


def read_batch(path: Path) -> dict[str, Any]:
    """Return what a file of the Python release holds: arrays of bytes, lists and texts by name."""
    try:
        with path.open("rb") as file:
            content = _Reader(file, encoding="bytes").load()
    except OSError:
        raise
    # What is raised for nonsense is not limited to any list.
    except Exception as error:
        raise InputError(
            str(path),
            f"is no file of the Python release ({error or type(error).__name__})",
            "Fetch it again from the original address.",
        ) from error
    if not isinstance(content, dict):
        raise InputError(str(path), f"holds {type(content).__name__}, no batch", "Fetch it again.")
    return {_text(key): _plain(value) for key, value in content.items()}


def _text(value: object) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


def _plain(value: Any) -> Any:
    return getattr(value, "values", None) if isinstance(value, _Array) else value
