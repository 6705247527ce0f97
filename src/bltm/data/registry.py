"""Data sets that go by a name, in one literal table."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from bltm.core.errors import InputError
from bltm.data import (
    builtin,
    cifar,
    clothing1m,
    human_labels,
    mnist,
    svhn,
)
from bltm.data.datasets import DatasetBundle, DatasetInfo
from bltm.data.download import Progress
from bltm.data.releases import Places
from bltm.data.source import Source

_CIFAR_PAGE = "https://www.cs.toronto.edu/~kriz/cifar.html"
_CIFAR_N_PAGE = "http://www.noisylabels.com"
_HUMAN_LICENSE = "see the authors' page"


def load_dataset(
    name: str,
    *,
    root: str | Path | None = None,
    cache: str | Path | None = None,
    download: bool = True,
    check: bool = True,
    progress: Progress | None = None,
) -> DatasetBundle:
    """Load a registered data set.

    Parameters
    ----------
    name
        One of ``DATASETS``.
    root
        Folder that has the files, or a folder named after the data set with them; it is searched
        before ``$BLTM_DATA`` and the cache.
    cache
        Folder for downloaded files; by default ``$BLTM_CACHE`` or the user's cache directory.
    download
        Whether missing files may be downloaded.
    check
        Whether files must have the published checksums. Without it any file of the right form is
        taken, such as a part of a data set.
    progress
        Called with file name, bytes received and bytes expected; by default a bar is shown on
        a terminal.

    Examples
    --------
    >>> digits = load_dataset("digits")
    >>> len(digits.train), len(digits.test), digits.train.inputs.shape[1:]
    (1297, 500, (8, 8, 1))
    """
    info = dataset_info(name)
    places = Places.chosen(root, cache, download=download, check=check, progress=progress)
    parts = info.load(places)
    return DatasetBundle(parts.train, parts.test, info, parts.label_sets)


def load_test(
    name: str,
    *,
    root: str | Path | None = None,
    cache: str | Path | None = None,
    download: bool = True,
    check: bool = True,
    progress: Progress | None = None,
) -> Source:
    """Return the test part of a registered data set; see ``load_dataset``."""
    test = load_dataset(
        name, root=root, cache=cache, download=download, check=check, progress=progress
    ).test
    if test is None:
        raise InputError("data", f"'{name}' has no test part", "")
    return test


def dataset_info(name: str) -> DatasetInfo:
    """Return the row of a data set.

    Examples
    --------
    >>> dataset_info("svhn").n_train
    73257
    """
    if name not in DATASETS:
        raise InputError(
            "data", f"there is no data set '{name}'", f"Registered are {', '.join(DATASETS)}."
        )
    return DATASETS[name]


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
    >>> [row["name"] for row in dataset_rows()][:4]
    ['digits', 'toy', 'mnist', 'fashion-mnist']
    """
    shown = ("name", "description", "n_train", "n_test", "n_classes", "license", "address")
    return [{key: getattr(info, key) for key in shown} for info in DATASETS.values()]


def _cifar10n(labels: str, description: str) -> DatasetInfo:
    return DatasetInfo(
        name=f"cifar10n-{labels}",
        description=f"CIFAR-10 as people labelled it: {description}",
        n_train=50_000,
        n_test=10_000,
        n_classes=10,
        license=_HUMAN_LICENSE,
        address=_CIFAR_N_PAGE,
        load=partial(human_labels.load_cifar10n, labels=labels),
        files=(cifar.CIFAR10, human_labels.CIFAR10N),
        classes=cifar.CIFAR10_CLASSES,
    )


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
            load=builtin.load_digits,
        ),
        DatasetInfo(
            name="toy",
            description="points in the plane, noisy labels, everything about them known",
            n_train=builtin.TOY_SIZE,
            n_test=builtin.TOY_SIZE,
            n_classes=3,
            license="Apache-2.0",
            address="generated",
            load=builtin.load_toy,
        ),
        DatasetInfo(
            name="mnist",
            description="scans of handwritten digits, 28x28, grey",
            n_train=60_000,
            n_test=10_000,
            n_classes=10,
            license="CC BY-SA 3.0",
            address="http://yann.lecun.com/exdb/mnist/",
            load=mnist.load_mnist,
            files=(mnist.MNIST,),
        ),
        DatasetInfo(
            name="fashion-mnist",
            description="articles of clothing, 28x28, grey",
            n_train=60_000,
            n_test=10_000,
            n_classes=10,
            license="MIT",
            address="https://github.com/zalandoresearch/fashion-mnist",
            load=mnist.load_fashion_mnist,
            files=(mnist.FASHION_MNIST,),
            classes=mnist.FASHION_CLASSES,
        ),
        DatasetInfo(
            name="svhn",
            description="digits of house numbers, 32x32, colour",
            n_train=73_257,
            n_test=26_032,
            n_classes=10,
            license="non-commercial use",
            address=svhn.ADDRESS,
            load=svhn.load_svhn,
            files=(svhn.SVHN,),
        ),
        DatasetInfo(
            name="svhn-extra",
            description="SVHN with 531,131 more training images",
            n_train=604_388,
            n_test=26_032,
            n_classes=10,
            license="non-commercial use",
            address=svhn.ADDRESS,
            load=svhn.load_svhn_extra,
            files=(svhn.SVHN_EXTRA,),
        ),
        DatasetInfo(
            name="cifar10",
            description="things and animals, 32x32, colour",
            n_train=50_000,
            n_test=10_000,
            n_classes=10,
            license="none stated",
            address=_CIFAR_PAGE,
            load=cifar.load_cifar10,
            files=(cifar.CIFAR10,),
            classes=cifar.CIFAR10_CLASSES,
        ),
        DatasetInfo(
            name="cifar100",
            description="things and animals, 32x32, colour",
            n_train=50_000,
            n_test=10_000,
            n_classes=100,
            license="none stated",
            address=_CIFAR_PAGE,
            load=cifar.load_cifar100,
            files=(cifar.CIFAR100,),
            classes=cifar.CIFAR100_CLASSES,
        ),
        _cifar10n("aggre", "majority of three"),
        _cifar10n("random1", "first annotator"),
        _cifar10n("random2", "second annotator"),
        _cifar10n("random3", "third annotator"),
        _cifar10n("worse", "a wrong label if any of three gave one"),
        DatasetInfo(
            name="cifar100n",
            description="CIFAR-100 as people labelled it",
            n_train=50_000,
            n_test=10_000,
            n_classes=100,
            license=_HUMAN_LICENSE,
            address=_CIFAR_N_PAGE,
            load=human_labels.load_cifar100n,
            files=(cifar.CIFAR100, human_labels.CIFAR100N),
            classes=cifar.CIFAR100_CLASSES,
        ),
        DatasetInfo(
            name="clothing1m",
            description="photos of clothes from web shops, noisy labels, test labels right",
            n_train=1_000_000,
            n_test=10_526,
            n_classes=14,
            license="research only, on request",
            address="https://github.com/Cysu/noisy_label",
            load=clothing1m.load_clothing1m,
            files=(clothing1m.CLOTHING1M,),
            classes=clothing1m.CLASSES,
        ),
    )
}
