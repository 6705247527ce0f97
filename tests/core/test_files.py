"""A write leaves the old file or the new one, and nothing else."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from bltm.core.files import array_hash, read_json, write_atomically, write_json, write_text


def test_file_appears_with_its_directories(tmp_path: Path):
    path = tmp_path / "a" / "b" / "note.txt"
    write_text(path, "ä\n")
    assert path.read_bytes() == "ä\n".encode()
    assert list(path.parent.iterdir()) == [path]


def test_new_content_replaces_the_old(tmp_path: Path):
    path = tmp_path / "note.txt"
    write_text(path, "old and long")
    write_text(path, "new")
    assert path.read_text() == "new"


def test_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path):
    path = tmp_path / "note.txt"
    write_text(path, "old")

    def break_down(temporary: Path) -> None:
        temporary.write_text("half")
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        write_atomically(path, break_down)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_value_that_json_cannot_hold_leaves_the_old_file(tmp_path: Path):
    path = tmp_path / "value.json"
    write_json(path, {"rate": 0.3})
    with pytest.raises(ValueError):
        write_json(path, {"rate": float("nan")})
    assert read_json(path) == {"rate": 0.3}
    assert list(tmp_path.iterdir()) == [path]


def test_temporary_file_is_beside_the_target_with_its_suffix(tmp_path: Path):
    seen: list[Path] = []

    def write(temporary: Path) -> None:
        seen.append(temporary)
        np.save(temporary, np.arange(3))

    write_atomically(tmp_path / "array.npy", write)
    assert seen[0].parent == tmp_path
    assert seen[0].suffix == ".npy"
    np.testing.assert_array_equal(np.load(tmp_path / "array.npy"), np.arange(3))
    assert [p.name for p in tmp_path.iterdir()] == ["array.npy"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_mode_follows_the_umask_and_the_umask_is_kept(tmp_path: Path, umask: int, mode: int):
    before = os.umask(umask)
    try:
        write_text(tmp_path / "note.txt", "text")
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "note.txt").stat().st_mode) == mode


def test_json_keeps_letters_and_refuses_lists(tmp_path: Path):
    path = tmp_path / "value.json"
    write_json(path, {"class": "Käse", "n": 3})
    assert "Käse" in path.read_text(encoding="utf-8")
    assert read_json(path) == {"class": "Käse", "n": 3}
    path.write_text("[1]")
    with pytest.raises(ValueError, match="list"):
        read_json(path)


def test_hash_depends_on_values_shape_and_type_but_not_on_layout():
    a = np.arange(6, dtype=np.int64)
    distinct = [
        array_hash(a),
        array_hash(a.reshape(2, 3)),
        array_hash(a.astype(np.int32)),
        array_hash(a[::-1]),
        array_hash(a, a),
        array_hash(a[:3], a[3:]),
        array_hash(np.array(["a", "b"], dtype=object)),
        array_hash(np.array(["ab", ""], dtype=object)),
    ]
    assert len(set(distinct)) == len(distinct)
    assert all(len(h) == 64 for h in distinct)
    transposed = np.asfortranarray(a.reshape(2, 3))
    assert array_hash(transposed) == array_hash(a.reshape(2, 3))
