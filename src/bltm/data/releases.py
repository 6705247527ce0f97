"""Where the files of a data set are looked for, and how they come there.

A data set is published in one or several releases, each a list of files that may come packed in an
archive. ``obtain`` finds one of them in the user's folders or in the cache, unpacks its archive, or
downloads it.
"""

from __future__ import annotations

import http.client
import os
import shutil
import tarfile
import tempfile
import urllib.error
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bltm.core.errors import InputError
from bltm.core.files import write_atomically
from bltm.data.download import (
    Progress,
    RemoteFile,
    cache_directory,
    check_file,
    damaged,
    download,
    progress_bar,
)

# Set to a folder of data sets, it is searched before the cache.
ROOT_VARIABLE = "BLTM_DATA"
CHECK_VARIABLE = "BLTM_CHECK"
_TROUBLES = (OSError, EOFError, http.client.HTTPException, zlib.error)


@dataclass(frozen=True)
class Release:
    """One form in which a data set is published.

    Attributes
    ----------
    title
        What to call it.
    files
        All files that are read.
    address
        Web address of the folder that has the files, or the archive; empty where nothing can be
        downloaded.
    archive
        The ``.tar.gz`` file that holds the files.
    folder
        Where the archive, or another program that brings the data set, puts the files.
    """

    title: str
    files: tuple[RemoteFile, ...]
    address: str = ""
    archive: RemoteFile | None = None
    folder: str = ""

    @property
    def contents(self) -> str:
        """Return what has to be there, in words: the archive, or else the files."""
        if self.archive is not None:
            return self.archive.name
        return ", ".join(file.name for file in self.files)


@dataclass(frozen=True)
class FileSet:
    """The releases of which one is needed, and where they are looked for.

    Attributes
    ----------
    name
        Of the folder in the cache, and in the folder that the user gives.
    releases
        In the order in which they are looked for; the first one with an address is downloaded.
    packaged
        Folders in which packages of operating systems put the files.
    remedy
        What to do where nothing can be downloaded.
    """

    name: str
    releases: tuple[Release, ...]
    packaged: tuple[Path, ...] = ()
    remedy: str = ""


@dataclass(frozen=True)
class Places:
    """Where data sets may be, and what may be done to get them.

    Attributes
    ----------
    cache
        Folder for downloads, with a folder for each data set.
    roots
        Folders of the user's that are searched first: in each the folder named after the data
        set, and the folder itself.
    download
        Whether missing files may be downloaded.
    check
        Whether files must have the published checksums.
    progress
        Told how far a download is; by default a bar is shown on a terminal.
    """

    cache: Path
    roots: tuple[Path, ...] = ()
    download: bool = True
    check: bool = True
    progress: Progress | None = None

    @classmethod
    def chosen(
        cls,
        root: str | Path | None = None,
        cache: str | Path | None = None,
        *,
        download: bool = True,
        check: bool = True,
        progress: Progress | None = None,
    ) -> Places:
        """Return the places that arguments and environment variables name."""
        roots = []
        for name, folder in (("root", root), (ROOT_VARIABLE, os.environ.get(ROOT_VARIABLE))):
            if folder and not Path(folder).is_dir():
                raise InputError(name, f"there is no folder '{folder}'", "Give one that exists.")
            if folder:
                roots.append(Path(folder))
        check = check and os.environ.get(CHECK_VARIABLE) != "0"
        return cls(cache_directory(cache), tuple(roots), download, check, progress)

    def folders(self, files: FileSet) -> list[Path]:
        """Return the folders in which files are looked for, in that order."""
        given = [folder for root in self.roots for folder in (root / files.name, root)]
        return [*given, self.cache / files.name, *files.packaged]


@dataclass(frozen=True)
class Found:
    """A release that is there: the path of each of its files, and what is odd about them."""

    release: Release
    paths: tuple[Path, ...]
    notes: tuple[str, ...] = ()


def find(files: FileSet, places: Places) -> Found | None:
    """Return the first release whose files are all there, unpacked."""
    folders = places.folders(files)
    for release in files.releases:
        paths = [_find(file, release, folders) for file in release.files]
        there = tuple(path for path in paths if path is not None)
        if len(there) == len(paths):
            return Found(release, there)
    return None


def find_archive(files: FileSet, places: Places) -> tuple[Release, Path] | None:
    """Return the first release whose archive is there, and where."""
    folders = places.folders(files)
    for release in files.releases:
        path = _find(release.archive, release, folders) if release.archive else None
        if path is not None:
            return release, path
    return None


def obtain(files: FileSet, places: Places) -> Found:
    """Find a release, or unpack it, or download it. Files are not checked unless they are new."""
    found = find(files, places)
    if found is not None:
        return found
    packed = find_archive(files, places)
    offered = next((release for release in files.releases if release.address), None)
    if packed is not None:
        release, path = packed
        unpack(path, release, places.cache / files.name, check=places.check)
    elif offered is None or not places.download:
        raise absent(files, places, "it is not there, and download=False" if offered else "")
    else:
        _download(files, offered, places)
    found = find(files, places)
    if found is None:
        raise absent(files, places, "files have gone from the cache")
    return found


def checked(found: Found, places: Places) -> Found:
    """Return the release after a look at the checksums of its files."""
    if not places.check:
        return found
    pairs = zip(found.release.files, found.paths, strict=True)
    notes = [check_file(file, path) for file, path in pairs]
    return Found(found.release, found.paths, tuple(note for note in notes if note))


def unpack(archive: Path, release: Release, target: Path, *, check: bool = True) -> None:
    """Unpack the files of a release, and nothing else, into its folder below ``target``.

    Members are chosen by name and must be plain files; what they are called on disk is what the
    release says and not what the archive says, so nothing can be written anywhere else.
    """
    wanted = {f"{release.folder}/{file.name}": file for file in release.files}
    try:
        with tarfile.open(archive, "r:gz") as members:
            for member in members:
                file = wanted.get(member.name.removeprefix("./"))
                if file is None:
                    continue
                content = members.extractfile(member) if member.isreg() else None
                if content is None:
                    raise InputError(
                        str(archive), f"its member {member.name} is no plain file", "Replace it."
                    )
                _write_member(content, file, target / release.folder / file.name, check)
                del wanted[f"{release.folder}/{file.name}"]
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise damaged(archive, error) from error
    if wanted:
        raise InputError(str(archive), f"has no member {next(iter(wanted))}", "Replace it.")


def absent(files: FileSet, places: Places, reason: str) -> InputError:
    """Return the error that says which files to put where."""
    choices = " or ".join(release.contents for release in files.releases)
    offered = next((release.address for release in files.releases if release.address), "")
    problem = f"could not be obtained from {offered}" if offered else "cannot be downloaded"
    where = f"Put {choices} into {places.cache / files.name}, or name a folder that has them"
    return InputError(
        f"data set '{files.name}'",
        f"{problem} ({reason})" if reason else problem,
        f"{files.remedy} {where} with root= (--root) or ${ROOT_VARIABLE}.".strip(),
    )


def _find(file: RemoteFile, release: Release, folders: Sequence[Path]) -> Path | None:
    places = [folder / inner for folder in folders for inner in ("", release.folder)]
    paths = (place / name for place in places for name in file.names)
    return next((path for path in paths if path.is_file()), None)


def _download(files: FileSet, release: Release, places: Places) -> None:
    folders, target = places.folders(files), places.cache / files.name
    missing = [file for file in release.files if _find(file, release, folders) is None]
    try:
        with progress_bar(places.progress) as report:
            if release.archive is None:
                for file in missing:
                    download(file, release.address, target, report)
                return
            places.cache.mkdir(parents=True, exist_ok=True)
            # Files are unpacked one by one into their place; the archive is never seen there.
            with tempfile.TemporaryDirectory(dir=places.cache, prefix=".download.") as folder:
                download(release.archive, release.address, Path(folder), report)
                unpack(Path(folder) / release.archive.name, release, target, check=places.check)
    except _TROUBLES as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise absent(files, places, str(getattr(error, "reason", None) or error)) from error


def _write_member(content: IO[bytes], file: RemoteFile, path: Path, check: bool) -> None:
    def write(temporary: Path) -> None:
        with temporary.open("wb") as out:
            shutil.copyfileobj(content, out, 1 << 20)
        if check:
            check_file(file, temporary)

    write_atomically(path, write)
