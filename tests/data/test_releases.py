import gzip
import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from bltm.core.errors import InputError
from bltm.data.download import RemoteFile
from bltm.data.releases import FileSet, Places, Release, checked, find, obtain, unpack

from .web import served

ONE, TWO = b"one" * 1000, b"two" * 1000
NOWHERE = "http://127.0.0.1:9"


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


LOOSE = Release(
    "loose files", (RemoteFile("one.gz", md5(ONE)), RemoteFile("two.bin", md5(TWO))), NOWHERE
)
PACKED = Release(
    "packed files",
    (RemoteFile("one", md5(ONE)), RemoteFile("two", md5(TWO))),
    NOWHERE,
    RemoteFile("packed.tar.gz"),
    "inner",
)


def archive(*members: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def put(folder: Path, **contents: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name.replace("__", ".")).write_bytes(content)
    return folder


def test_files_are_looked_for_in_root_cache_and_package(tmp_path: Path) -> None:
    files = FileSet("some", (LOOSE,), packaged=(tmp_path / "package",))
    places = Places(tmp_path / "cache", roots=(tmp_path / "root",), download=False)
    assert find(files, places) is None
    for number, folder in enumerate(("package", "cache/some", "root", "root/some")):
        put(tmp_path / folder, one=ONE, two__bin=TWO)
        found = obtain(files, places)
        assert found.release is LOOSE
        assert {path.parent for path in found.paths} == {tmp_path / folder}, number
        assert checked(found, places).notes == ()


def test_files_may_lie_in_the_folder_that_the_archive_makes(tmp_path: Path) -> None:
    put(tmp_path / "root/inner", one=ONE, two=TWO)
    found = obtain(FileSet("some", (PACKED,)), Places(tmp_path, (tmp_path / "root",), False))
    assert [path.name for path in found.paths] == ["one", "two"]


def test_the_first_complete_release_is_taken(tmp_path: Path) -> None:
    files, places = FileSet("some", (LOOSE, PACKED)), Places(tmp_path, download=False)
    put(tmp_path / "some", one__gz=gzip.compress(ONE))
    put(tmp_path / "some/inner", one=ONE, two=TWO)
    assert obtain(files, places).release is PACKED
    put(tmp_path / "some", two__bin=TWO)
    assert obtain(files, places).release is LOOSE


def test_only_missing_files_are_downloaded_and_only_once(tmp_path: Path) -> None:
    put(tmp_path / "root", two__bin=TWO)
    with served({"one.gz": gzip.compress(ONE), "two.bin": TWO}) as web:
        files = FileSet("some", (replace(LOOSE, address=web.address),))
        for _ in range(2):
            found = obtain(files, Places(tmp_path / "cache", (tmp_path / "root",)))
        assert web.requests == ["/data/one.gz"]
    assert found.paths == (tmp_path / "cache/some/one.gz", tmp_path / "root/two.bin")


def test_an_archive_is_downloaded_unpacked_and_not_kept(tmp_path: Path) -> None:
    packed = archive(("inner/one", ONE), ("inner/readme", b"-"), ("./inner/two", TWO))
    release = replace(PACKED, archive=RemoteFile("packed.tar.gz", md5(packed)))
    with served({"packed.tar.gz": packed}) as web:
        files = FileSet("some", (replace(release, address=web.address),))
        found = obtain(files, Places(tmp_path))
        assert obtain(files, Places(tmp_path)) == found
        assert web.requests == ["/data/packed.tar.gz"]
        other = replace(release, archive=RemoteFile("packed.tar.gz", "0" * 32), address=web.address)
        with pytest.raises(InputError, match="is not the original"):
            obtain(FileSet("other", (other,)), Places(tmp_path))
    assert [path.read_bytes() for path in found.paths] == [ONE, TWO]
    assert {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()} == {
        "some/inner/one",
        "some/inner/two",
    }


def test_an_archive_of_the_users_is_unpacked_into_the_cache(tmp_path: Path) -> None:
    root = put(tmp_path / "root", packed__tar__gz=archive(("inner/one", ONE), ("inner/two", TWO)))
    found = obtain(FileSet("some", (PACKED,)), Places(tmp_path / "cache", (root,), download=False))
    assert {path.parent for path in found.paths} == {tmp_path / "cache/some/inner"}
    assert [path.name for path in root.iterdir()] == ["packed.tar.gz"]


def test_members_that_lead_elsewhere_are_not_unpacked(tmp_path: Path) -> None:
    put(
        tmp_path,
        packed=archive(
            ("../outside", b"x"),
            ("/tmp/bltm-outside", b"x"),
            ("inner/../../one", b"x"),
            ("inner/one", ONE),
            ("inner/two", TWO),
            ("inner/surplus", b"x"),
        ),
    )
    unpack(tmp_path / "packed", PACKED, tmp_path / "target")
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == {
        "packed",
        "target/inner/one",
        "target/inner/two",
    }
    assert not Path("/tmp/bltm-outside").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
def test_members_that_are_no_plain_files_are_refused(tmp_path: Path, kind: bytes) -> None:
    (tmp_path / "secret").write_bytes(ONE)
    with tarfile.open(tmp_path / "packed", mode="w:gz") as tar:
        entry = tarfile.TarInfo("inner/one")
        entry.type, entry.linkname = kind, str(tmp_path / "secret")
        tar.addfile(entry)
    with pytest.raises(InputError, match="its member inner/one is no plain file"):
        unpack(tmp_path / "packed", PACKED, tmp_path / "target")
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"nothing of the kind", "packed: is damaged"),
        (archive(("inner/one", ONE), ("inner/two", TWO))[:-60], "packed: is damaged"),
        (archive(("inner/one", ONE)), "has no member inner/two"),
        (archive(("inner/one", TWO), ("inner/two", TWO)), "one: from .* is not the original"),
    ],
)
def test_archives_that_are_wrong_are_errors(tmp_path: Path, content: bytes, message: str) -> None:
    put(tmp_path, packed=content)
    with pytest.raises(InputError, match=message):
        unpack(tmp_path / "packed", PACKED, tmp_path / "target")


def test_without_a_check_other_contents_are_taken(tmp_path: Path) -> None:
    put(tmp_path, packed=archive(("inner/one", b"1"), ("inner/two", b"2")))
    unpack(tmp_path / "packed", PACKED, tmp_path / "some", check=False)
    places = Places(tmp_path, check=False)
    assert checked(obtain(FileSet("some", (PACKED,)), places), places).notes == ()
    with pytest.raises(InputError, match="not the original"):
        checked(obtain(FileSet("some", (PACKED,)), places), replace(places, check=True))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cut.bin", "cut after|IncompleteRead"),
        ("missing.bin", "Not Found"),
        ("page.gz", "Not a gzipped file"),
    ],
)
def test_a_failed_download_leaves_nothing_and_says_what_to_do(
    tmp_path: Path, name: str, message: str
) -> None:
    with served({"cut.bin": ONE, "page.gz": b"<html>"}, cut=("cut.bin",)) as web:
        files = FileSet("some", (Release("x", (RemoteFile(name, "0" * 32),), web.address),))
        with pytest.raises(InputError, match=message) as error:
            obtain(files, Places(tmp_path))
    assert f"Put {name} into {tmp_path / 'some'}" in str(error.value)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_without_a_network_or_leave_to_use_it_the_files_are_named(tmp_path: Path) -> None:
    files = FileSet("some", (LOOSE, PACKED))
    with pytest.raises(InputError, match="download=False.*one.gz, two.bin or packed.tar.gz into"):
        obtain(files, Places(tmp_path, download=False))
    with pytest.raises(InputError, match=rf"{NOWHERE} .*root= \(--root\) or \$BLTM_DATA"):
        obtain(files, Places(tmp_path))
    with pytest.raises(InputError, match=r"cannot be downloaded\. Ask for it\. Put one.gz"):
        obtain(
            FileSet("some", (replace(LOOSE, address=""),), remedy="Ask for it."), Places(tmp_path)
        )


def test_places_come_from_arguments_and_variables(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("BLTM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BLTM_DATA", raising=False)
    assert Places.chosen() == Places(tmp_path / "cache")
    monkeypatch.setenv("BLTM_DATA", str(tmp_path))
    (tmp_path / "mine").mkdir()
    places = Places.chosen(tmp_path / "mine", "other", download=False, check=False)
    assert places == Places(Path("other"), (tmp_path / "mine", tmp_path), False, False)
    with pytest.raises(InputError, match="root: there is no folder"):
        Places.chosen(tmp_path / "none")
    monkeypatch.setenv("BLTM_DATA", str(tmp_path / "none"))
    with pytest.raises(InputError, match="BLTM_DATA: there is no folder"):
        Places.chosen()
