import gzip
import hashlib
import struct
from pathlib import Path

import numpy as np
import pytest

from bltm.core.errors import InputError
from bltm.data import DATASETS, dataset_rows, load_dataset, load_test, registry
from bltm.data.download import RemoteFile
from bltm.data.idx import parse_idx
from bltm.data.registry import FASHION_DEBIAN, load_fashion_mnist

DIGITS_TEST_MD5 = "1555f053ed43466f9da128b1b28c688f"


def idx(array: np.ndarray) -> bytes:
    return (
        bytes([0, 0, 8, array.ndim])
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.tobytes()
    )


def test_every_row_of_the_table_is_complete() -> None:
    assert [row["name"] for row in dataset_rows()] == list(DATASETS)
    for row in dataset_rows():
        assert all(row.values())


@pytest.mark.parametrize("name", ["digits", "toy"])
def test_sets_that_need_no_file_are_as_announced(name: str) -> None:
    bundle, again = load_dataset(name), load_dataset(name)
    info = DATASETS[name]
    assert bundle.info is info
    assert (len(bundle.train), len(bundle.test)) == (info.n_train, info.n_test)
    assert len(np.unique(bundle.train.labels)) == info.n_classes
    assert bundle.train.fingerprint == again.train.fingerprint
    assert load_test(name).fingerprint == bundle.test.fingerprint


def test_the_digits_are_split_by_class_once_and_for_all() -> None:
    bundle = load_dataset("digits")
    assert sorted([*bundle.train.ids, *bundle.test.ids]) == list(range(1797))
    assert bundle.train.inputs.dtype == np.uint8
    counts = np.bincount(bundle.test.labels)
    assert counts.min() >= 48
    assert counts.max() <= 51
    assert hashlib.md5(np.sort(bundle.test.ids).tobytes()).hexdigest() == DIGITS_TEST_MD5


def test_the_toy_set_brings_noisy_labels_and_keeps_the_truth_apart() -> None:
    bundle = load_dataset("toy")
    wrong = (bundle.train.labels != bundle.label_sets["clean"]).mean()
    assert 0.1 < wrong < 0.4
    assert len(bundle.label_sets["bayes"]) == len(bundle.train)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="Registered are digits, toy, fashion-mnist"):
        load_dataset("mnist")


def small_fashion(folder: Path, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    parts = {
        "train-images-idx3-ubyte.gz": rng.integers(0, 256, (6, 28, 28), dtype=np.uint8),
        "train-labels-idx1-ubyte.gz": np.arange(6, dtype=np.uint8),
        "t10k-images-idx3-ubyte.gz": rng.integers(0, 256, (3, 28, 28), dtype=np.uint8),
        "t10k-labels-idx1-ubyte.gz": np.arange(3, dtype=np.uint8),
    }
    folder.mkdir(parents=True)
    files = []
    for name, array in parts.items():
        (folder / name).write_bytes(gzip.compress(idx(array)))
        files.append(RemoteFile(name, hashlib.md5(idx(array)).hexdigest()))
    monkeypatch.setattr(registry, "FASHION_FILES", tuple(files))


def test_fashion_mnist_is_taken_from_the_cache(tmp_path: Path, monkeypatch) -> None:
    small_fashion(tmp_path / "fashion-mnist", monkeypatch)
    bundle = load_dataset("fashion-mnist", cache=tmp_path, download=False)
    assert bundle.train.inputs.shape == (6, 28, 28, 1)
    assert bundle.train.labels.tolist() == [0, 1, 2, 3, 4, 5]
    assert len(bundle.test) == 3


def test_fashion_mnist_is_taken_from_another_folder(tmp_path: Path, monkeypatch) -> None:
    small_fashion(tmp_path / "elsewhere", monkeypatch)
    bundle = load_fashion_mnist(tmp_path / "cache", False, folders=(tmp_path / "elsewhere",))
    assert len(bundle.train) == 6
    assert not (tmp_path / "cache").exists()


def test_without_files_fashion_mnist_says_which_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="train-images-idx3-ubyte.gz.*into") as error:
        load_fashion_mnist(tmp_path, download=False, folders=())
    assert str(tmp_path / "fashion-mnist") in str(error.value)
    assert registry.FASHION_ADDRESS in str(error.value)


@pytest.mark.skipif(not FASHION_DEBIAN.is_dir(), reason="dataset-fashion-mnist is not installed")
def test_the_packaged_fashion_mnist_has_the_official_checksums(tmp_path: Path) -> None:
    bundle = load_dataset("fashion-mnist", cache=tmp_path, download=False)
    assert bundle.train.inputs.shape == (60_000, 28, 28, 1)
    assert np.bincount(bundle.train.labels).tolist() == [6_000] * 10
    assert len(bundle.test) == 10_000


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), (0,)])
def test_idx_files_are_read(shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    found = parse_idx(idx(array), "x", array.ndim)
    assert found.flags.writeable
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with nothing"),
        (b"\x00\x00\x0d\x01\x00\x00\x00\x00", "begins with 00000d01"),
        (b"\x00\x00\x08\x02\x00\x00\x00\x00", "no idx file of bytes in 1 dimensions"),
        (b"\x00\x00\x08\x01\x00\x00", "ends within its head"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x05abc", "announces 5 bytes of data and has 3"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x02abc", "announces 2 bytes of data and has 3"),
    ],
)
def test_idx_files_that_are_wrong_are_errors(content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_idx(content, "x", 1)
