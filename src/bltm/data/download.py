"""Files of data sets: found in a cache, or downloaded with a checksum."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import sys
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bltm.core.errors import InputError
from bltm.core.files import write_atomically

# Called with the name of a file, the bytes received, and the bytes expected if that is known.
Progress = Callable[[str, int, int | None], None]
_TIMEOUT = 30.0
_CHUNK = 1 << 18


@dataclass(frozen=True)
class RemoteFile:
    """A gzip file of a data set; ``md5`` is that of its decompressed content.

    Compressed copies differ in their bytes from one distributor to the next, the content does not.
    """

    name: str
    md5: str


def cache_directory(cache: str | Path | None = None) -> Path:
    """Return where data sets are kept: the argument, ``$BLTM_CACHE``, or the user's cache.

    Examples
    --------
    >>> cache_directory("somewhere").name
    'somewhere'
    """
    if cache is not None:
        return Path(cache)
    if os.environ.get("BLTM_CACHE"):
        return Path(os.environ["BLTM_CACHE"])
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "bltm"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "bltm"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bltm"


def obtain(
    files: Sequence[RemoteFile],
    folders: Sequence[Path],
    address: str,
    *,
    download: bool = True,
    progress: Progress | None = None,
) -> list[bytes]:
    """Return the decompressed content of files, checked.

    Parameters
    ----------
    files
        What is wanted.
    folders
        Where to look, with or without ``.gz``; what is downloaded goes into the first.
    address
        Web address of the folder that has the files.
    download
        Whether missing files may be downloaded.
    progress
        Told how far a download is; by default a bar is shown on a terminal.
    """
    missing = [file for file in files if _find(file, folders) is None]
    if missing and not download:
        raise _absent(missing, folders[0], address, "they are not there, and download=False")
    with _bar(progress) if missing else _silent() as report:
        for file in missing:
            try:
                content = _fetch(address.rstrip("/") + "/" + file.name, file.name, report)
                _check(gzip.decompress(content), file, address)
            except (OSError, EOFError, http.client.HTTPException, zlib.error) as error:
                if isinstance(error, urllib.error.HTTPError):
                    error.close()
                reason = getattr(error, "reason", None) or error
                raise _absent(missing, folders[0], address, str(reason)) from error
            write_atomically(folders[0] / file.name, _writer(content))
    return [_read(file, folders) for file in files]


def _find(file: RemoteFile, folders: Sequence[Path]) -> Path | None:
    names = (file.name, file.name.removesuffix(".gz"))
    paths = (folder / name for folder in folders for name in names)
    return next((path for path in paths if path.is_file()), None)


def _read(file: RemoteFile, folders: Sequence[Path]) -> bytes:
    path = _find(file, folders)
    if path is None:
        raise InputError(file.name, "has gone from the cache", "Try again.")
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(
                str(path), f"is damaged ({error})", "Delete it; it will be fetched again."
            ) from error
    _check(content, file, str(path))
    return content


def _check(content: bytes, file: RemoteFile, where: str) -> None:
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != file.md5:
        raise InputError(
            file.name,
            f"from {where} is not the original: its checksum is {found} instead of {file.md5}",
            "Delete the file if it is in the cache, and fetch it from the original address.",
        )


def _fetch(url: str, name: str, report: Progress) -> bytes:
    with urllib.request.urlopen(url, timeout=_TIMEOUT) as response:
        length = response.headers.get("Content-Length")
        total = int(length) if length else None
        parts: list[bytes] = []
        done = 0
        while part := response.read(_CHUNK):
            parts.append(part)
            done += len(part)
            report(name, done, total)
    if total is not None and done < total:
        raise ConnectionError(f"the connection was cut after {done} of {total} bytes of {name}")
    return b"".join(parts)


def _absent(files: Sequence[RemoteFile], folder: Path, address: str, reason: str) -> InputError:
    names = ", ".join(file.name for file in files)
    return InputError(
        "data set",
        f"{len(files)} files could not be obtained from {address} ({reason})",
        f"Put {names} into {folder}, or try again with a network.",
    )


def _writer(content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(content)

    return write


@contextmanager
def _silent() -> Iterator[Progress]:
    yield lambda name, done, total: None


@contextmanager
def _bar(progress: Progress | None) -> Iterator[Progress]:
    if progress is not None or not sys.stderr.isatty():
        yield progress or (lambda name, done, total: None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    tasks = {}
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Bars(*columns, console=Console(stderr=True)) as bars:

        def report(name: str, done: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done)

        yield report
