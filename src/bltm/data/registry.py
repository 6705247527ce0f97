"""Data sets that go by a name, in one literal table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.core.errors import InputError
from bltm.core.random import stream
from bltm.data.download import Progress, RemoteFile, cache_directory, obtain
from bltm.data.idx import parse_idx
from bltm.data.source import Source
from bltm.data.toy import ToyProblem

DIGITS_TEST = 500
TOY_SIZE = 2_000
FASHION_ADDRESS = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
FASHION_DEBIAN = Path("/usr/share/datasets/fashion-mnist")
FASHION_FILES = (
    RemoteFile("train-images-idx3-ubyte.gz", "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
    RemoteFile("train-labels-idx1-ubyte.gz", "9018921c3c673c538a1fc5bad174d6f9"),
    RemoteFile("t10k-images-idx3-ubyte.gz", "8181f5470baa50b63fa0f6fddb340f0a"),
    RemoteFile("t10k-labels-idx1-ubyte.gz", "15d484375f8d13e6eb1aabb0c3f46965"),
)


@dataclass(frozen=True)
class DatasetInfo:
    """A row of the table: what a data set is, and how it is loaded."""

    name: str
    description: str
    n_train: int
    n_test: int
    n_classes: int
    license: str
    address: str
    load: Callable[[Path, bool, Progress | None], DatasetBundle]


@dataclass(frozen=True, eq=False)
class DatasetBundle:
    """A loaded data set.

    Attributes
    ----------
    train
        Examples with the labels that a method may see.
    test
        Examples to judge it by; None where there are none.
    info
        The row of the table.
    label_sets
        Further labels of the training examples by name, for evaluation only: clean labels, or the
        answers of several annotators.
    """

    train: Source
    test: Source | None
    info: DatasetInfo
    label_sets: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def load_dataset(
    name: str,
    *,
    cache: str | Path | None = None,
    download: bool = True,
    progress: Progress | None = None,
) -> DatasetBundle:
    """Load a registered data set.

    Parameters
    ----------
    name
        One of ``DATASETS``.
    cache
        Folder for downloaded files; by default ``$BLTM_CACHE`` or the user's cache directory.
    download
        Whether missing files may be downloaded.
    progress
        Called with file name, bytes received and bytes expected; by default a bar is shown on
        a terminal.

    Examples
    --------
    >>> digits = load_dataset("digits")
    >>> len(digits.train), len(digits.test), digits.train.inputs.shape[1:]
    (1297, 500, (8, 8, 1))
    """
    if name not in DATASETS:
        raise InputError(
            "data", f"there is no data set '{name}'", f"Registered are {', '.join(DATASETS)}."
        )
    return DATASETS[name].load(cache_directory(cache), download, progress)


def load_test(
    name: str,
    *,
    cache: str | Path | None = None,
    download: bool = True,
    progress: Progress | None = None,
) -> Source:
    """Return the test part of a registered data set."""
    test = load_dataset(name, cache=cache, download=download, progress=progress).test
    if test is None:
        raise InputError("data", f"'{name}' has no test part", "")
    return test


def open_registered(name: str) -> Source:
    """Return the training part of ``name``, or the test part of ``name:test``."""
    base, _, part = name.partition(":")
    if part not in ("", "train", "test"):
        raise InputError("data", f"'{name}' asks for the part '{part}'", "Use train or test.")
    return load_test(base) if part == "test" else load_dataset(base).train


def dataset_rows() -> list[dict[str, Any]]:
    """Return one row per registered data set, for a listing.

    Examples
    --------
    >>> [row["name"] for row in dataset_rows()]
    ['digits', 'toy', 'fashion-mnist']
    """
    shown = ("name", "description", "n_train", "n_test", "n_classes", "license", "address")
    return [{key: getattr(info, key) for key in shown} for info in DATASETS.values()]


def load_fashion_mnist(
    cache: Path,
    download: bool = True,
    progress: Progress | None = None,
    *,
    address: str = FASHION_ADDRESS,
    folders: tuple[Path, ...] = (FASHION_DEBIAN,),
) -> DatasetBundle:
    """Load Fashion-MNIST from the cache, from ``folders``, or from ``address``."""
    places = (cache / "fashion-mnist", *folders)
    contents = obtain(FASHION_FILES, places, address, download=download, progress=progress)
    arrays = [
        parse_idx(content, file.name, 3 if "idx3" in file.name else 1)
        for file, content in zip(FASHION_FILES, contents, strict=True)
    ]
    return DatasetBundle(
        train=_images(arrays[0], arrays[1]),
        test=_images(arrays[2], arrays[3]),
        info=DATASETS["fashion-mnist"],
    )


def _load_digits(cache: Path, download: bool, progress: Progress | None) -> DatasetBundle:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images, labels = bunch.images.astype(np.uint8), bunch.target.astype(np.int64)
    # Every n-th image of a list that goes class by class in a random order fixed for good.
    order = np.lexsort((stream(0, "digits").random(len(labels)), labels))
    is_test = np.zeros(len(labels), dtype=bool)
    is_test[order] = np.diff(np.arange(len(labels) + 1) * DIGITS_TEST // len(labels)) > 0
    everything = _images(images, labels)
    return DatasetBundle(
        train=everything.take(~is_test), test=everything.take(is_test), info=DATASETS["digits"]
    )


def _load_toy(cache: Path, download: bool, progress: Progress | None) -> DatasetBundle:
    train, test = (ToyProblem().sample(TOY_SIZE, seed) for seed in (0, 1))
    return DatasetBundle(
        train=_numbered("array", train.x, train.y_noisy),
        test=_numbered("array", test.x, test.y_clean),
        info=DATASETS["toy"],
        label_sets={"clean": train.y_clean, "bayes": train.y_bayes},
    )


def _images(images: NDArray[np.uint8], labels: NDArray[Any]) -> Source:
    return _numbered("images", images[..., None], labels.astype(np.int64))


def _numbered(kind: Any, inputs: NDArray[Any], labels: NDArray[Any]) -> Source:
    return Source(kind=kind, inputs=inputs, labels=labels, ids=np.arange(len(inputs)))


DATASETS: dict[str, DatasetInfo] = {
    info.name: info
    for info in (
        DatasetInfo(
            name="digits",
            description="scans of handwritten digits, 8x8, grey",
            n_train=1_297,
            n_test=500,
            n_classes=10,
            license="CC BY 4.0",
            address="https://archive.ics.uci.edu/dataset/80",
            load=_load_digits,
        ),
        DatasetInfo(
            name="toy",
            description="points in the plane, noisy labels, everything about them known",
            n_train=TOY_SIZE,
            n_test=TOY_SIZE,
            n_classes=3,
            license="Apache-2.0",
            address="generated",
            load=_load_toy,
        ),
        DatasetInfo(
            name="fashion-mnist",
            description="articles of clothing, 28x28, grey",
            n_train=60_000,
            n_test=10_000,
            n_classes=10,
            license="MIT",
            address=FASHION_ADDRESS,
            load=load_fashion_mnist,
        ),
    )
}
