"""Clothing1M: a million photos of clothes from web shops, labelled by the text around them.

Xiao et al., *Learning from Massive Noisy Labeled Data for Image Classification*, CVPR 2015.
Training labels are noisy; of the labels that people gave, those of the test part are read and no
others.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bltm.core.errors import InputError
from bltm.data.datasets import Parts
from bltm.data.download import RemoteFile, damaged
from bltm.data.releases import FileSet, Places, Release, obtain
from bltm.data.source import Frame, ImageFiles, Source

CLASSES = (
    "T-Shirt", "Shirt", "Knitwear", "Chiffon", "Sweater", "Hoodie", "Windbreaker",
    "Jacket", "Downcoat", "Suit", "Shawl", "Dress", "Vest", "Underwear",
)  # fmt: skip
PREFIX = "images/"
# What networks that were trained on ImageNet are given.
FRAME = Frame(side=224, short_side=256)
# This many keys are tried to find out where the images are.
TRIED = 100
CLOTHING1M = FileSet(
    "clothing1m",
    (
        Release(
            "key lists and labels",
            (
                RemoteFile("noisy_train_key_list.txt"),
                RemoteFile("noisy_label_kv.txt"),
                RemoteFile("clean_test_key_list.txt"),
                RemoteFile("clean_label_kv.txt"),
            ),
            folder="annotations",
        ),
    ),
    remedy=(
        "Its authors give it for research on request (https://github.com/Cysu/noisy_label). The "
        "images go beside the text files, in the folders images/0 to images/9."
    ),
)


def load_clothing1m(places: Places) -> Parts:
    """Load the key lists and labels; images are decoded when they are needed.

    The images may be in ``images/0`` to ``images/9`` or in ``0`` to ``9``, and the text files
    beside them or in ``annotations``.
    """
    found = obtain(CLOTHING1M, places)
    train_keys, test_keys = (_read_keys(found.paths[number]) for number in (0, 2))
    root = _image_folder(places, found.paths[0].parent, [*test_keys[:TRIED], *train_keys[:TRIED]])
    overlap = set(train_keys) & set(test_keys)
    kept = [key for key in train_keys if key not in overlap]
    notes = (
        [f"Left out {len(overlap)} training images that are test images too."] if overlap else []
    )
    return Parts(
        train=_source(root, kept, _read_labels(found.paths[1], kept), *notes),
        test=_source(root, test_keys, _read_labels(found.paths[3], test_keys)),
    )


def _source(root: Path, keys: Sequence[str], labels: NDArray[np.int64], *notes: str) -> Source:
    names = np.array([key.removeprefix(PREFIX) for key in keys], dtype=object)
    return Source(
        kind="files",
        inputs=ImageFiles(root, names, FRAME),
        labels=np.array(CLASSES, dtype=object)[labels],
        ids=np.array(keys, dtype=object),
        id_name="file",
        notes=tuple(notes),
    )


def _read_keys(path: Path) -> list[str]:
    keys = path.read_text(encoding="utf-8").split()
    if not keys:
        raise damaged(path, "it is empty")
    for key in keys:
        if key.startswith("/") or ".." in key.split("/"):
            raise damaged(path, f"the key {key} leads out of the folder of images")
    return keys


def _read_labels(path: Path, keys: Sequence[str]) -> NDArray[np.int64]:
    """Return the class of each key; each line of the file has a key and a class."""
    words = path.read_text(encoding="utf-8").split()
    table = dict(zip(words[::2], words[1::2], strict=False))
    numbers = {str(number): number for number in range(len(CLASSES))}
    missing = [key for key in keys if table.get(key) not in numbers]
    if len(words) % 2 or missing:
        raise damaged(
            path,
            f"{len(missing)} of {len(keys)} keys have no class from 0 to {len(CLASSES) - 1}"
            + (f", the first being {missing[0]}" if missing else ""),
        )
    return np.array([numbers[table[key]] for key in keys], dtype=np.int64)


def _image_folder(places: Places, beside: Path, keys: Sequence[str]) -> Path:
    """Return the folder that the keys are relative to, without their prefix."""
    names = [key.removeprefix(PREFIX) for key in keys]
    bases = [beside, beside.parent, *places.folders(CLOTHING1M)]
    for folder in (inner for base in bases for inner in (base / PREFIX, base)):
        if any((folder / name).is_file() for name in names):
            return folder
    raise InputError(
        "data set 'clothing1m'",
        f"of the first {len(keys)} images none is there, such as {keys[0]}",
        f"Put the folders 0 to 9 into {beside} or {beside / PREFIX}.",
    )
