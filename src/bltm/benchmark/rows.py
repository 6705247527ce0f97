"""A file of results: one JSON object a line, which is there as a whole or not at all."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bltm.core.errors import InputError


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    """Add a row with one write and wait until it is on disk.

    Writers take turns: the end of a row that another one is just writing would look cut off. A
    line that a crash has cut off stays alone: the new one does not continue it.
    """
    line = json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        written = os.write(descriptor, line)
        if written != len(line):
            raise OSError(f"only {written} of {len(line)} bytes could be written to {path}")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file, the last one of each run, in the order they came.

    Lines that a crash has cut off are left out. A file that does not exist has no rows.
    """
    if not path.exists():
        return []
    rows: dict[str, dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if not isinstance(row, dict) or "id" not in row:
            raise InputError(
                "rows", f"{path} has a line that is no result of 'bltm bench': {line[:60]!r}"
            )
        rows.pop(row["id"], None)
        rows[row["id"]] = row
    return list(rows.values())
