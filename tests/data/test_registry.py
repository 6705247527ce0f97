import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bltm.core.errors import InputError
from bltm.data import DATASETS, dataset_rows, load_dataset, load_test
from bltm.data.releases import Places, obtain

DIGITS_TEST_MD5 = "1555f053ed43466f9da128b1b28c688f"


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
    with pytest.raises(InputError, match="Registered are digits, toy, mnist, fashion-mnist"):
        load_dataset("imagenet")


def test_names_of_classes_are_as_many_as_classes() -> None:
    for info in DATASETS.values():
        assert len(info.classes) in (0, info.n_classes)
        assert len(set(info.classes)) == len(info.classes)


@pytest.mark.parametrize("name", [name for name, info in DATASETS.items() if info.files])
def test_what_is_missing_is_said_without_a_download(tmp_path: Path, name: str) -> None:
    for files in DATASETS[name].files:
        with pytest.raises(InputError) as error:
            obtain(replace(files, packaged=()), Places(tmp_path, download=False))
        assert str(tmp_path / files.name) in str(error.value)
        for release in files.releases:
            wanted = (release.archive,) if release.archive else release.files
            assert all(file.name in str(error.value) for file in wanted)


def test_checksums_have_a_known_length_and_files_a_name_of_their_own() -> None:
    releases = {
        release for info in DATASETS.values() for files in info.files for release in files.releases
    }
    for release in releases:
        assert len({file.name for file in release.files}) == len(release.files)
        for file in (*release.files, *filter(None, [release.archive])):
            assert len(file.checksum) in (0, 32, 64)
            assert set(file.checksum) <= set("0123456789abcdef")
