import os
from pathlib import Path

import numpy as np
import pytest

from bltm.core.errors import DataQualityWarning, InputError
from bltm.data import encode_labels, fit_encoder, open_source

from .pictures import folder_of_classes


def test_a_folder_per_class_gives_labels_and_relative_paths(tmp_path: Path) -> None:
    source = open_source(folder_of_classes(tmp_path, 2))
    assert source.kind == "files"
    assert source.ids.tolist() == ["cat/0.png", "cat/1.png", "dog/0.png", "dog/1.png"]
    assert source.labels.tolist() == ["cat", "cat", "dog", "dog"]
    assert source.notes == ("2 class folders: cat (2), dog (2).",)


def test_nested_folders_count_and_hidden_and_other_files_do_not(tmp_path: Path) -> None:
    folder_of_classes(tmp_path, 1)
    image = (tmp_path / "cat/0.png").read_bytes()
    for name in ("cat/deep/er/x.PNG", "cat/.hidden.png", ".git/x.png", "loose.png", "dog/._0.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(image)
    (tmp_path / "dog/notes.txt").write_text("no image")
    (tmp_path / "empty").mkdir()
    source = open_source(tmp_path)
    assert source.ids.tolist() == ["cat/0.png", "cat/deep/er/x.PNG", "dog/0.png"]
    assert "Left out 1 files that are no images by name." in source.notes
    assert "Left out 1 images that are in no class folder." in source.notes
    assert any("Folders without images: empty" in note for note in source.notes)
    codes, classes = encode_labels(source.labels, ["cat", "dog", "empty"], warn=False)
    assert classes[codes].tolist() == ["cat", "cat", "dog"]


def test_links_to_folders_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    folder_of_classes(tmp_path / "real", 1)
    data = tmp_path / "data"
    data.mkdir()
    os.symlink(tmp_path / "real/cat", data / "cat")
    os.symlink(tmp_path / "real/dog", data / "dog")
    os.symlink(data, tmp_path / "real/dog/up")
    os.symlink(tmp_path / "real/dog", tmp_path / "real/dog/again")
    assert open_source(tmp_path / "real").labels.tolist()[:2] == ["cat", "dog"]
    assert "cat/0.png" in open_source(data).ids


def test_for_prediction_images_may_lie_anywhere(tmp_path: Path) -> None:
    folder_of_classes(tmp_path, 1)
    (tmp_path / "dog/0.png").rename(tmp_path / "loose.png")
    source = open_source(tmp_path, for_prediction=True)
    assert source.ids.tolist() == ["cat/0.png", "loose.png"]
    assert source.labels is None


def test_a_folder_without_class_folders_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no images in class folders"):
        open_source(tmp_path)


def test_all_unreadable_images_are_reported_at_once_or_skipped(tmp_path: Path) -> None:
    folder_of_classes(tmp_path, 8)
    whole = (tmp_path / "cat/0.png").read_bytes()
    (tmp_path / "cat/0.png").write_bytes(b"no image at all")
    (tmp_path / "dog/1.png").write_bytes(whole[:60])
    (tmp_path / "dog/2.png").write_bytes(b"")
    source = open_source(tmp_path)
    with pytest.raises(
        InputError, match=r"3 of 16 cannot be read: cat/0\.png.*dog/2\.png"
    ) as error:
        fit_encoder(source).encode(source)
    assert 'unreadable="skip"' in str(error.value)
    with pytest.warns(DataQualityWarning, match=r"Left out 3 of 16 .*dog/1\.png"):
        kept = open_source(tmp_path, unreadable="skip")
    assert len(kept) == 13
    assert "cat/0.png" not in kept.ids
    assert "cannot be read" in kept.notes[-1]
    assert len(fit_encoder(kept).encode(kept)) == 13


def test_nothing_readable_is_an_error(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.png").write_bytes(b"no")
    with pytest.raises(InputError, match="none can be read"):
        open_source(tmp_path, unreadable="skip")
    with pytest.raises(InputError, match="2 of 2 cannot be read"):
        fit_encoder(open_source(tmp_path))


def test_the_fingerprint_of_a_folder_does_not_depend_on_where_it_is(tmp_path: Path) -> None:
    first, second = (open_source(folder_of_classes(tmp_path / name)) for name in "ab")
    assert first.fingerprint == second.fingerprint
    os.utime(tmp_path / "a/cat/0.png", (0, 0))
    assert open_source(tmp_path / "a").fingerprint == first.fingerprint
    (tmp_path / "a/cat/0.png").unlink()
    assert open_source(tmp_path / "a").fingerprint != first.fingerprint
    assert np.array_equal(open_source(tmp_path / "b").ids, second.ids)
