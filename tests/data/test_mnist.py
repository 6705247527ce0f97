import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from bltm.core.errors import InputError
from bltm.data import load_dataset, load_test, mnist
from bltm.data.mnist import FASHION_ADDRESS, FASHION_DEBIAN, MNIST_MD5

from .real import is_missing, load_real
from .small_sets import idx

NAMES = ("mnist", "fashion-mnist")


def write(folder: Path, *, compress: bool = True) -> Path:
    rng = np.random.default_rng(0)
    arrays = (
        rng.integers(0, 256, (6, 28, 28), dtype=np.uint8),
        np.arange(6, dtype=np.uint8),
        rng.integers(0, 256, (3, 28, 28), dtype=np.uint8),
        np.arange(3, dtype=np.uint8),
    )
    folder.mkdir(parents=True)
    for name, array in zip(mnist.NAMES, arrays, strict=True):
        if compress:
            (folder / name).write_bytes(gzip.compress(idx(array)))
        else:
            (folder / name.removesuffix(".gz")).write_bytes(idx(array))
    return folder


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["cache/{}", "root", "root/{}", "root/{}/raw"])
def test_files_are_found_in_every_place(tmp_path: Path, name: str, place: str) -> None:
    inner = {"mnist": "MNIST", "fashion-mnist": "FashionMNIST"}[name]
    folder = write(
        tmp_path / place.format(inner if "raw" in place else name), compress="raw" in place
    )
    root = tmp_path / "root" if place.startswith("root") else None
    bundle = load_dataset(name, root=root, cache=tmp_path / "cache", download=False, check=False)
    assert bundle.train.inputs.shape == (6, 28, 28, 1)
    assert bundle.train.labels.tolist() == [0, 1, 2, 3, 4, 5]
    assert bundle.train.labels.dtype == np.int64
    assert len(bundle.test) == 3
    assert bundle.info.name == name
    assert folder.is_dir()
    assert not [path for path in tmp_path.rglob("*") if path.parent != folder and path.is_file()]


@pytest.mark.parametrize("name", NAMES)
def test_other_files_are_refused_by_their_checksum(tmp_path: Path, name: str) -> None:
    write(tmp_path / name)
    refusal = r"train-images-idx3-ubyte.gz: .* is not the original"
    with pytest.raises(InputError, match=refusal) as error:
        load_dataset(name, cache=tmp_path, download=False)
    # MNIST and Fashion-MNIST call their files the same.
    assert "give each data set a folder of its own" in str(error.value)


def test_the_variable_names_a_folder(tmp_path: Path, monkeypatch) -> None:
    write(tmp_path / "all/mnist")
    monkeypatch.setenv("BLTM_DATA", str(tmp_path / "all"))
    assert len(load_test("mnist", cache=tmp_path, download=False, check=False)) == 3


def test_without_files_it_says_which_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="train-images-idx3-ubyte.gz.*into") as error:
        load_dataset("mnist", cache=tmp_path, download=False)
    assert str(tmp_path / "mnist") in str(error.value)
    assert mnist.MNIST_ADDRESS in str(error.value)
    assert FASHION_ADDRESS not in str(error.value)


@pytest.mark.skipif(not FASHION_DEBIAN.is_dir(), reason="dataset-fashion-mnist is not installed")
def test_the_packaged_fashion_mnist_has_the_official_checksums(tmp_path: Path) -> None:
    bundle = load_dataset("fashion-mnist", cache=tmp_path, download=False)
    assert bundle.train.inputs.shape == (60_000, 28, 28, 1)
    assert np.bincount(bundle.train.labels).tolist() == [6_000] * 10
    assert len(bundle.test) == 10_000


@pytest.mark.skipif(is_missing("mnist"), reason="MNIST is not there")
def test_mnist_itself_has_the_official_checksums() -> None:
    bundle = load_real("mnist")
    assert np.bincount(bundle.train.labels)[:3].tolist() == [5_923, 6_742, 5_958]
    for source, images, labels in ((bundle.train, *MNIST_MD5[:2]), (bundle.test, *MNIST_MD5[2:])):
        assert hashlib.md5(idx(source.inputs[..., 0])).hexdigest() == images
        assert hashlib.md5(idx(source.labels.astype(np.uint8))).hexdigest() == labels
