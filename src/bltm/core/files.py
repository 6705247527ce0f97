"""Files that are either the old one or the new one, never half of one."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a temporary file beside ``path``, sync it, and rename it into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write ``text`` atomically as UTF-8."""
    write_atomically(path, lambda temporary: _write_bytes(temporary, text.encode("utf-8")))


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a mapping atomically as readable JSON."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    value = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise ValueError(f"{path} holds {type(value).__name__}, not an object")
    return value


def array_hash(*arrays: NDArray[Any]) -> str:
    """Return the SHA-256 of arrays: shapes, types and bytes.

    Examples
    --------
    >>> array_hash(np.zeros(2)) == array_hash(np.zeros(3))
    False
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        if array.dtype == object:
            digest.update("\x1f".join(map(repr, array.ravel().tolist())).encode())
        else:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _write_bytes(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _sync_directory(directory: Path) -> None:
    # Windows cannot open directories; there the rename alone has to do.
    if os.name == "nt":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
