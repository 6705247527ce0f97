"""Files of data sets: checked against published checksums, and downloaded where missing."""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bltm.core.errors import InputError
from bltm.core.files import write_atomically

# Called with the name of a file, the bytes received, and the bytes expected if that is known.
Progress = Callable[[str, int, int | None], None]
_TIMEOUT = 30.0
_CHUNK = 1 << 18
_ALGORITHMS = {32: "md5", 64: "sha256"}


@dataclass(frozen=True)
class RemoteFile:
    """A file of a data set.

    Attributes
    ----------
    name
        What it is called. A ``.gz`` file may also be there decompressed, without the ending.
    checksum
        Hexadecimal md5 or sha256; empty where none is known. Of a ``.gz`` file it is that of the
        decompressed content, for compressed copies differ from one distributor to the next.
    strict
        Whether a file with another checksum is refused where it is found. It is not where the
        publisher gives no checksum and the content is checked in another way. A download with
        another checksum is always refused.
    """

    name: str
    checksum: str = ""
    strict: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """Return what the file may be called on disk."""
        return (self.name, self.name.removesuffix(".gz")) if self._gzipped else (self.name,)

    @property
    def algorithm(self) -> str:
        """Return the kind of the checksum."""
        return _ALGORITHMS[len(self.checksum)]

    @property
    def _gzipped(self) -> bool:
        return self.name.endswith(".gz") and not self.name.endswith(".tar.gz")

    def compressed(self, path: Path) -> bool:
        """Return whether what lies at ``path`` has to be decompressed."""
        return self._gzipped and path.suffix == ".gz"


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


def download(file: RemoteFile, address: str, folder: Path, report: Progress) -> None:
    """Fetch a file from ``address`` into ``folder``; keep it if its checksum is right."""

    def write(temporary: Path) -> None:
        _fetch(f"{address.rstrip('/')}/{file.name}", file.name, temporary, report)
        if file.checksum and (found := file_checksum(file, temporary)) != file.checksum:
            raise wrong_checksum(file, address, found)

    write_atomically(folder / file.name, write)


def read_content(file: RemoteFile, path: Path, *, check: bool = True) -> bytes:
    """Return the content of a file, decompressed, after a look at its checksum."""
    content = path.read_bytes()
    if file.compressed(path):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise damaged(path, error) from error
    if check and file.checksum and file.strict:
        found = hashlib.new(file.algorithm, content, usedforsecurity=False).hexdigest()
        if found != file.checksum:
            raise wrong_checksum(file, str(path), found)
    return content


def file_checksum(file: RemoteFile, path: Path) -> str:
    """Return the checksum of a file's content, of the kind that is published for it."""
    with gzip.open(path) if file.compressed(path) else path.open("rb") as content:
        kind = file.algorithm
        digest = hashlib.file_digest(content, lambda: hashlib.new(kind, usedforsecurity=False))
    return digest.hexdigest()


def check_file(file: RemoteFile, path: Path) -> str | None:
    """Refuse a file with another checksum than the published one, or return a note about it."""
    if not file.checksum:
        return None
    try:
        found = file_checksum(file, path)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise damaged(path, error) from error
    if found == file.checksum:
        return None
    if file.strict:
        raise wrong_checksum(file, str(path), found)
    return (
        f"{path} is not byte for byte the file that is known (its {file.algorithm} is {found} "
        f"instead of {file.checksum}); its content was checked in another way."
    )


def wrong_checksum(file: RemoteFile, where: str, found: str) -> InputError:
    """Return the error for a file that is not the original."""
    return InputError(
        file.name,
        f"from {where} is not the original: its checksum is {found} instead of {file.checksum}",
        "Delete the file if it is in the cache, and fetch it from the original address. If it is "
        "another data set's that is called the same (MNIST, Fashion-MNIST), give each data set a "
        "folder of its own, named after it.",
    )


def damaged(path: Path, error: BaseException | str) -> InputError:
    """Return the error for a file that cannot be read."""
    return InputError(
        str(path), f"is damaged ({error})", "Delete it; it will be fetched again if it can be."
    )


def _fetch(url: str, name: str, path: Path, report: Progress) -> None:
    with urllib.request.urlopen(url, timeout=_TIMEOUT) as response, path.open("wb") as file:
        length = response.headers.get("Content-Length")
        total = int(length) if length else None
        done = 0
        while part := response.read(_CHUNK):
            file.write(part)
            done += len(part)
            report(name, done, total)
    if total is not None and done < total:
        raise ConnectionError(f"the connection was cut after {done} of {total} bytes of {name}")


@contextmanager
def progress_bar(progress: Progress | None) -> Iterator[Progress]:
    """Give ``progress`` itself, or else a bar on a terminal, or else something silent."""
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
