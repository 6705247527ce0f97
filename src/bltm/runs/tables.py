"""Result files: refused when they exist, written as a whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from bltm.core.errors import InputError
from bltm.core.files import write_atomically

_WRITERS: dict[str, Callable[[pd.DataFrame, Path], None]] = {
    ".csv": lambda frame, path: frame.to_csv(path, index=False),
    ".tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    ".parquet": lambda frame, path: frame.to_parquet(path, index=False),
}


def check_output(path: Path, suffixes: tuple[str, ...], overwrite: bool) -> None:
    """Refuse a result file that exists or is of a kind that is not written."""
    if path.suffix.lower() not in suffixes:
        raise InputError(
            "out", f"'{path}' does not end in {' or '.join(suffixes)}", "The ending says the kind."
        )
    if path.is_dir():
        raise InputError("out", f"'{path}' is a directory", "Give the name of a file.")
    if path.exists() and not overwrite:
        raise InputError(
            "out", f"'{path}' exists already", "Choose another name or give --overwrite."
        )


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table in the format that the name's ending says."""
    write_atomically(path, lambda temporary: _WRITERS[path.suffix.lower()](frame, temporary))


TABLE_SUFFIXES = tuple(_WRITERS)
