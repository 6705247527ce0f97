"""Folders of images, one folder for each class."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image

from bltm.core.errors import DataQualityWarning, InputError
from bltm.data.source import ImageFiles, Source

SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm"}
)


def read_folder(root: Path, *, for_prediction: bool = False) -> Source:
    """Read a folder with a folder of images for each class; ids are relative paths.

    Images may lie in folders within a class folder. Hidden files and files that are no images by
    name are left out. For prediction the images may lie anywhere.
    """
    names, others = _walk(root)
    inside = [name for name in names if "/" in name]
    used = names if for_prediction else inside
    notes = []
    if others:
        notes.append(f"Left out {others} files that are no images by name.")
    if len(used) < len(names):
        notes.append(f"Left out {len(names) - len(used)} images that are in no class folder.")
    if not used:
        raise InputError(
            "data",
            f"'{root}' has no images" + ("" if for_prediction else " in class folders"),
            f"Put the images of each class into a folder of its own ({_suffixes()}).",
        )
    labels = None
    if not for_prediction:
        classes = [name.partition("/")[0] for name in used]
        labels = np.array(classes, dtype=object)
        notes.insert(0, _said(Counter(classes)))
        empty = sorted(
            entry.name
            for entry in root.iterdir()
            if entry.is_dir() and not entry.name.startswith(".") and entry.name not in set(classes)
        )
        if empty:
            notes.append(
                f"Folders without images: {', '.join(empty)}. Name them in classes= if they are "
                "classes."
            )
    ids = np.array(used, dtype=object)
    return Source(
        kind="files",
        inputs=ImageFiles(root, ids),
        labels=labels,
        ids=ids,
        id_name="file",
        label_name="folder",
        notes=tuple(notes),
    )


def require_files(source: Source) -> None:
    """Raise one error that names the first files that do not exist, if there are any."""
    absent = np.flatnonzero(source.inputs.sizes() < 0)
    if len(absent):
        shown = ", ".join(str(name) for name in source.inputs.names[absent[:5]])
        raise InputError(
            "images",
            f"{len(absent)} of {len(source)} do not exist, the first being {shown}",
            f"Paths are relative to {source.inputs.root}.",
        )


def without_unreadable(source: Source) -> Source:
    """Return the source without images that cannot be decoded, after a warning that names some."""
    from bltm.data.decode import attempt

    def load(row: int) -> None:
        with Image.open(source.inputs.path(row)) as image:
            image.load()

    problems = attempt(load, len(source))
    if not problems:
        return source
    shown = ", ".join(str(source.inputs.names[row]) for row in list(problems)[:5])
    note = f"Left out {len(problems)} of {len(source)} images that cannot be read: {shown}" + (
        ", ..." if len(problems) > 5 else ""
    )
    if len(problems) == len(source):
        raise InputError("images", f"none can be read: {shown}", "Check the files.")
    warnings.warn(note, DataQualityWarning, stacklevel=3)
    keep = np.ones(len(source), dtype=bool)
    keep[list(problems)] = False
    return source.take(keep).with_notes(note + ".")


def _walk(root: Path) -> tuple[list[str], int]:
    """Return the images below a folder as sorted relative paths, and how many other files."""
    names: list[str] = []
    others = 0
    for folder, inner, files in os.walk(root, followlinks=True):
        inner[:] = sorted(
            name for name in inner if not name.startswith(".") and not _leads_up(folder, name)
        )
        within = Path(folder).relative_to(root).as_posix()
        prefix = "" if within == "." else f"{within}/"
        for name in files:
            if name.startswith("."):
                continue
            if Path(name).suffix.lower() in SUFFIXES:
                names.append(prefix + name)
            else:
                others += 1
    return sorted(names), others


def _leads_up(folder: str, name: str) -> bool:
    """Return whether a link leads back to a folder that it is in."""
    target = os.path.realpath(os.path.join(folder, name))
    return os.path.commonpath([target, os.path.realpath(folder)]) == target


def _said(counts: Counter[str]) -> str:
    shown = ", ".join(f"{name} ({count})" for name, count in sorted(counts.items())[:20])
    return f"{len(counts)} class folders: {shown}{', ...' if len(counts) > 20 else ''}."


def _suffixes() -> str:
    return ", ".join(sorted(SUFFIXES))
