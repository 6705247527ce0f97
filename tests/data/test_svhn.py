from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from bltm.core.errors import InputError
from bltm.data import DatasetBundle, load_dataset
from bltm.data.svhn import read_mat

from .real import is_missing, load_real


def write(path: Path, labels: list[int], seed: int = 0, **options: object) -> np.ndarray:
    """Write a MATLAB file as it is published; return its images."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (len(labels), 32, 32, 3), dtype=np.uint8)
    content = {"X": images.transpose(1, 2, 3, 0), "y": np.array(labels, np.uint8)[:, None]}
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, {**content, **options}, do_compression=True)
    return images


def load(name: str, root: Path, *, check: bool = False) -> DatasetBundle:
    return load_dataset(name, root=root, cache=root / "cache", download=False, check=check)


def test_images_and_digits_are_read_and_ten_is_zero(tmp_path: Path) -> None:
    train = write(tmp_path / "train_32x32.mat", [1, 10, 9, 3], seed=1)
    test = write(tmp_path / "test_32x32.mat", [10, 2], seed=2)
    bundle = load("svhn", tmp_path)
    np.testing.assert_array_equal(bundle.train.inputs, train)
    np.testing.assert_array_equal(bundle.test.inputs, test)
    assert bundle.train.labels.tolist() == [1, 0, 9, 3]
    assert bundle.test.labels.tolist() == [0, 2]
    assert bundle.train.labels.dtype == np.int64
    assert bundle.train.inputs.flags.c_contiguous


def test_the_extra_images_follow_the_training_images(tmp_path: Path) -> None:
    train = write(tmp_path / "svhn/train_32x32.mat", [1, 2], seed=1)
    write(tmp_path / "svhn/test_32x32.mat", [10], seed=2)
    with pytest.raises(InputError, match="extra_32x32.mat"):
        load("svhn-extra", tmp_path)
    extra = write(tmp_path / "svhn/extra_32x32.mat", [10, 7, 8], seed=3)
    bundle = load("svhn-extra", tmp_path)
    np.testing.assert_array_equal(bundle.train.inputs, np.concatenate([train, extra]))
    assert bundle.train.labels.tolist() == [1, 2, 0, 7, 8]
    assert len(load("svhn", tmp_path).train) == 2


def test_a_single_image_has_lost_its_last_axis(tmp_path: Path) -> None:
    images = np.arange(3072, dtype=np.uint8).reshape(32, 32, 3)
    savemat(tmp_path / "one.mat", {"X": images, "y": np.array([[4]], np.uint8)})
    found, labels = read_mat(tmp_path / "one.mat")
    np.testing.assert_array_equal(found[0], images)
    assert labels.tolist() == [4]


def test_other_files_are_refused_by_their_checksum(tmp_path: Path) -> None:
    for name in ("train", "test"):
        write(tmp_path / f"{name}_32x32.mat", [1])
    with pytest.raises(InputError, match="train_32x32.mat: from .* is not the original"):
        load("svhn", tmp_path, check=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": np.array([[1], [0]], np.uint8)}, "2 numbers from 1 to 10"),
        ({"y": np.array([[1], [11]], np.uint8)}, "2 numbers from 1 to 10"),
        ({"y": np.array([[1]], np.uint8)}, "2 numbers from 1 to 10"),
        ({"X": np.zeros((32, 32, 3, 2))}, "X holds float64"),
        ({"X": np.zeros((2, 32, 32, 3), np.uint8)}, "X holds uint8 of shape"),
    ],
)
def test_content_of_another_form_is_an_error(tmp_path: Path, options, message: str) -> None:
    write(tmp_path / "x.mat", [1, 2], **options)
    with pytest.raises(InputError, match=message):
        read_mat(tmp_path / "x.mat")


def test_damaged_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.mat"
    write(path, [1, 2])
    content = path.read_bytes()
    cases = (b"", b"no such thing", b"x" * 200, content[: len(content) // 2], content[:140])
    for damaged in cases:
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="x.mat: is damaged"):
            read_mat(path)
    savemat(path, {"Z": np.zeros(3)})
    with pytest.raises(InputError, match="it has no variable X"):
        read_mat(path)


@pytest.mark.skipif(is_missing("svhn"), reason="SVHN is not there")
def test_svhn_itself_is_complete() -> None:
    bundle = load_real("svhn")
    assert bundle.train.inputs.shape == (73_257, 32, 32, 3)
    assert bundle.test.inputs.shape == (26_032, 32, 32, 3)
    assert np.bincount(bundle.train.labels)[:3].tolist() == [4_948, 13_861, 10_585]
