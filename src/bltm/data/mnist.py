"""MNIST and Fashion-MNIST: 60,000 + 10,000 grey images of 28x28 pixels, in the idx format."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bltm.data.datasets import Parts, numbered
from bltm.data.download import RemoteFile, read_content
from bltm.data.idx import parse_idx
from bltm.data.releases import FileSet, Places, Release, obtain

NAMES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
MNIST_MD5 = (
    "6bbc9ace898e44ae57da46a324031adb",
    "a25bea736e30d166cdddb491f175f624",
    "2646ac647ad5339dbf082846283269ea",
    "27ae3e4e09519cfbb04c329615203637",
)
FASHION_MD5 = (
    "f4a8712d7a061bf5bd6d2ca38dc4d50a",
    "9018921c3c673c538a1fc5bad174d6f9",
    "8181f5470baa50b63fa0f6fddb340f0a",
    "15d484375f8d13e6eb1aabb0c3f46965",
)
FASHION_CLASSES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
# The authors' own address answers no more; this copy is the one that torchvision uses.
MNIST_ADDRESS = "https://ossci-datasets.s3.amazonaws.com/mnist/"
FASHION_ADDRESS = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
FASHION_DEBIAN = Path("/usr/share/datasets/fashion-mnist")


def _idx_files(name: str, checksums: tuple[str, ...], address: str, folder: str) -> Release:
    files = tuple(RemoteFile(*pair) for pair in zip(NAMES, checksums, strict=True))
    return Release(f"idx files of {name}", files, address, folder=folder)


MNIST = FileSet("mnist", (_idx_files("MNIST", MNIST_MD5, MNIST_ADDRESS, "MNIST/raw"),))
FASHION_MNIST = FileSet(
    "fashion-mnist",
    (_idx_files("Fashion-MNIST", FASHION_MD5, FASHION_ADDRESS, "FashionMNIST/raw"),),
    packaged=(FASHION_DEBIAN,),
)


def load_mnist(places: Places) -> Parts:
    """Load MNIST."""
    return load_idx(MNIST, places)


def load_fashion_mnist(places: Places) -> Parts:
    """Load Fashion-MNIST."""
    return load_idx(FASHION_MNIST, places)


def load_idx(files: FileSet, places: Places) -> Parts:
    """Load the images and labels of training and test part from four idx files."""
    found = obtain(files, places)
    arrays = [
        parse_idx(read_content(file, path, check=places.check), str(path), dimensions)
        for file, path, dimensions in zip(
            found.release.files, found.paths, (3, 1, 3, 1), strict=True
        )
    ]
    train, test = (
        numbered("images", images[..., None], labels.astype(np.int64))
        for images, labels in (arrays[:2], arrays[2:])
    )
    return Parts(train, test)
