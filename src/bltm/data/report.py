"""What can be said about a registered data set: what it is, where it is, whether it is right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bltm.core.errors import InputError
from bltm.data.datasets import DatasetBundle, DatasetInfo
from bltm.data.download import check_file
from bltm.data.read_images import require_files
from bltm.data.registry import dataset_info
from bltm.data.releases import FileSet, Found, Places, find, find_archive, obtain
from bltm.data.source import Source

# More classes than this are counted and not named.
_NAMED_CLASSES = 20


def describe(name: str, places: Places) -> list[str]:
    """Return lines about a data set and about where its files are."""
    info = dataset_info(name)
    classes = f"{info.n_classes}"
    if 0 < len(info.classes) <= _NAMED_CLASSES:
        classes += f": {', '.join(info.classes)}"
    rows = [
        ("training", f"{info.n_train:,}"),
        ("test", f"{info.n_test:,}"),
        ("classes", classes),
        ("terms of use", info.license),
        ("about it", info.address),
    ]
    for files in info.files:
        rows += _where(files, places)
    if not info.files:
        rows.append(("files", "none are needed"))
    width = max(len(title) for title, _ in rows)
    return [f"{info.name}: {info.description}"] + [f"  {t.ljust(width)}  {v}" for t, v in rows]


def fetch(name: str, places: Places) -> list[str]:
    """Find or download the files of a data set; return lines that say where they are."""
    info = dataset_info(name)
    return [f"{files.name}: {_placed(obtain(files, places))}" for files in info.files] or [
        f"{name}: no files are needed"
    ]


def verify(name: str, places: Places) -> list[str]:
    """Read a data set that is there and check all that can be checked; return lines about it."""
    info = dataset_info(name)
    there = replace(places, download=False, check=True)
    lines = []
    for files in info.files:
        found = obtain(files, there)
        lines.append(f"{files.name}: {_placed(found)}")
        for file, path in zip(found.release.files, found.paths, strict=True):
            note = check_file(file, path)
            size = f"{path.stat().st_size:,} bytes"
            state = f"{file.algorithm} {file.checksum}" if file.checksum else size
            lines.append(f"  {path.name}: {note or state}")
    parts = info.load(there)
    bundle = DatasetBundle(parts.train, parts.test, info, parts.label_sets)
    return [*lines, *_contents(bundle)]


def _contents(bundle: DatasetBundle) -> list[str]:
    info, train, test = bundle.info, bundle.train, bundle.test
    counted = {"training": (len(train), info.n_train)}
    if test is not None:
        counted["test"] = (len(test), info.n_test)
    for part, (count, expected) in counted.items():
        if count != expected:
            raise InputError(
                info.name, f"has {count:,} {part} examples instead of {expected:,}", "Complete it."
            )
    _check_part(info, train)
    if test is not None:
        _check_part(info, test)
    lines = [f"{len(train):,} training examples of {info.n_classes} classes, as published"]
    if test is not None:
        lines.append(f"{len(test):,} test examples, as published")
    if "clean" in bundle.label_sets:
        rate = float(np.mean(train.labels != bundle.label_sets["clean"]))
        lines.append(f"{100 * rate:.2f} % of the training labels differ from the clean ones")
    return lines


def _check_part(info: DatasetInfo, source: Source) -> None:
    found = len(np.unique(np.asarray(source.labels).astype(str)))
    if found != info.n_classes:
        raise InputError(info.name, f"has {found} classes instead of {info.n_classes}", "")
    if source.kind == "files":
        require_files(source)


def _where(files: FileSet, places: Places) -> list[tuple[str, str]]:
    found = find(files, places)
    archive = find_archive(files, places)
    offered = next((release.address for release in files.releases if release.address), "")
    if found is not None:
        state = _placed(found)
    elif archive is not None:
        state = f"{archive[1]}, which is unpacked when it is needed"
    elif offered:
        state = f"not yet; 'bltm data get' downloads it from {offered}"
    else:
        state = f"not yet. {files.remedy}"
    return [
        ("files", " or ".join(release.contents for release in files.releases)),
        ("looked for in", ", ".join(str(folder) for folder in places.folders(files))),
        ("found", state),
    ]


def _placed(found: Found) -> str:
    folders = dict.fromkeys(str(path.parent) for path in found.paths)
    return f"{found.release.title} in {', '.join(folders)}"
