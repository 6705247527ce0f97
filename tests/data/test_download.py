import gzip
import hashlib
from pathlib import Path

import pytest

from bltm.core.errors import InputError
from bltm.data.download import (
    RemoteFile,
    cache_directory,
    check_file,
    download,
    file_checksum,
    progress_bar,
    read_content,
)

from .web import served

CONTENT = bytes(range(256)) * 4000
MD5 = hashlib.md5(CONTENT).hexdigest()
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def quiet(name: str, done: int, total: int | None) -> None:
    pass


@pytest.mark.parametrize(
    ("file", "body"),
    [
        (RemoteFile("good.gz", MD5), gzip.compress(CONTENT)),
        (RemoteFile("good.bin", MD5), CONTENT),
        (RemoteFile("good.pt", SHA256), CONTENT),
        (RemoteFile("good.tar.gz", MD5), CONTENT),
        (RemoteFile("unknown.bin"), CONTENT),
    ],
)
def test_a_download_is_checked_and_reported(tmp_path: Path, file: RemoteFile, body: bytes) -> None:
    reports: list[tuple[str, int, int | None]] = []
    with served({file.name: body}) as web:
        download(file, web.address + "/", tmp_path, lambda *report: reports.append(report))
    assert (tmp_path / file.name).read_bytes() == body
    assert reports[-1] == (file.name, len(body), len(body))
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize("strict", [True, False])
def test_a_download_with_another_checksum_is_not_kept(tmp_path: Path, strict: bool) -> None:
    file = RemoteFile("good.gz", "0" * 32, strict)
    with (
        served({"good.gz": gzip.compress(CONTENT)}) as web,
        pytest.raises(InputError, match="is not the original: its checksum is"),
    ):
        download(file, web.address, tmp_path, quiet)
    assert list(tmp_path.iterdir()) == []


def test_content_is_read_compressed_anew_or_not_at_all(tmp_path: Path) -> None:
    file = RemoteFile("good.gz", MD5)
    (tmp_path / "good.gz").write_bytes(gzip.compress(CONTENT, compresslevel=1))
    (tmp_path / "good").write_bytes(CONTENT)
    assert file.names == ("good.gz", "good")
    for name in file.names:
        assert read_content(file, tmp_path / name) == CONTENT
        assert file_checksum(file, tmp_path / name) == MD5
        assert check_file(file, tmp_path / name) is None


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    file, path = RemoteFile("good.gz", MD5), tmp_path / "good.gz"
    for content in (gzip.compress(CONTENT)[:-100], b"<html>please log in</html>"):
        path.write_bytes(content)
        for look in (read_content, check_file):
            with pytest.raises(InputError, match=r"good\.gz: is damaged"):
                look(file, path)


def test_another_checksum_is_an_error_or_a_note(tmp_path: Path) -> None:
    path = tmp_path / "labels.pt"
    path.write_bytes(CONTENT[:-1])
    strict, lenient = RemoteFile("labels.pt", SHA256), RemoteFile("labels.pt", SHA256, strict=False)
    with pytest.raises(InputError, match="is not the original"):
        check_file(strict, path)
    with pytest.raises(InputError, match="is not the original"):
        read_content(strict, path)
    assert read_content(strict, path, check=False) == read_content(lenient, path) == CONTENT[:-1]
    note = check_file(lenient, path)
    assert note is not None
    assert f"instead of {SHA256}" in note
    assert check_file(RemoteFile("labels.pt"), path) is None


def test_the_bar_on_a_terminal_shows_the_file(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with served({"good.bin": CONTENT}) as web, progress_bar(None) as report:
        download(RemoteFile("good.bin", MD5), web.address, tmp_path, report)
    assert "good.bin" in capsys.readouterr().err


def test_the_cache_directory_follows_argument_variable_and_platform(monkeypatch) -> None:
    monkeypatch.setenv("BLTM_CACHE", "/var/somewhere")
    assert cache_directory() == Path("/var/somewhere")
    assert cache_directory("here") == Path("here")
    monkeypatch.delenv("BLTM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/user")
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_directory() == Path("/var/cache/user/bltm")
    monkeypatch.setattr("sys.platform", "darwin")
    assert cache_directory().parts[-3:] == ("Library", "Caches", "bltm")
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert cache_directory() == Path("/local/bltm")
