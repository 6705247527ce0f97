import gzip
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bltm.core.errors import InputError
from bltm.data.download import RemoteFile, cache_directory, obtain

CONTENT = bytes(range(256)) * 4000
GOOD = RemoteFile("good.gz", hashlib.md5(CONTENT).hexdigest())


class Handler(BaseHTTPRequestHandler):
    requests: list[str] = []

    def do_GET(self) -> None:
        self.requests.append(self.path)
        body = gzip.compress(CONTENT)
        if self.path.endswith("/missing.gz"):
            self.send_error(404)
            return
        if self.path.endswith("/page.gz"):
            body = b"<html>please log in</html>"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if self.path.endswith("/cut.gz") else body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    Handler.requests.clear()
    yield f"http://127.0.0.1:{server.server_port}/data"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_file_is_downloaded_once_checked_and_reported(tmp_path: Path, address: str) -> None:
    reports: list[tuple[str, int, int | None]] = []
    for _ in range(2):
        contents = obtain(
            [GOOD], [tmp_path / "set"], address, progress=lambda *report: reports.append(report)
        )
        assert contents == [CONTENT]
    assert Handler.requests == ["/data/good.gz"]
    size = (tmp_path / "set/good.gz").stat().st_size
    assert reports[-1] == ("good.gz", size, size)
    assert [path.name for path in (tmp_path / "set").iterdir()] == ["good.gz"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cut.gz", "cut after|IncompleteRead"),
        ("missing.gz", "Not Found"),
        ("page.gz", "Not a gzipped file"),
    ],
)
def test_a_failed_download_leaves_nothing_and_says_what_to_do(
    tmp_path: Path, address: str, name: str, message: str
) -> None:
    with pytest.raises(InputError, match=message) as error:
        obtain([RemoteFile(name, GOOD.md5)], [tmp_path], address)
    assert f"Put {name} into {tmp_path}" in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_another_checksum_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(InputError, match="is not the original: its checksum is"):
        obtain([RemoteFile("good.gz", "0" * 32)], [tmp_path], address)
    assert list(tmp_path.iterdir()) == []


def test_files_are_found_in_any_folder_compressed_anew_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b/good.gz").write_bytes(gzip.compress(CONTENT, compresslevel=1))
    folders = [tmp_path / "a", tmp_path / "b"]
    assert obtain([GOOD], folders, "http://nowhere.invalid", download=False) == [CONTENT]
    (tmp_path / "b/good.gz").unlink()
    (tmp_path / "b/good").write_bytes(CONTENT)
    assert obtain([GOOD], folders, "http://nowhere.invalid", download=False) == [CONTENT]


def test_a_damaged_file_in_the_cache_is_named(tmp_path: Path) -> None:
    (tmp_path / "good.gz").write_bytes(gzip.compress(CONTENT)[:-100])
    with pytest.raises(InputError, match=r"good\.gz: is damaged"):
        obtain([GOOD], [tmp_path], "http://nowhere.invalid")
    (tmp_path / "good.gz").write_bytes(gzip.compress(CONTENT[:-1]))
    with pytest.raises(InputError, match="is not the original"):
        obtain([GOOD], [tmp_path], "http://nowhere.invalid")


def test_without_a_network_or_leave_to_use_it_the_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="download=False.*Put good.gz into"):
        obtain([GOOD], [tmp_path], "http://127.0.0.1:9", download=False)
    with pytest.raises(InputError, match=r"http://127\.0\.0\.1:9 .*Put good.gz into"):
        obtain([GOOD], [tmp_path], "http://127.0.0.1:9")


def test_the_bar_on_a_terminal_shows_the_file(tmp_path, address, monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert obtain([GOOD], [tmp_path], address) == [CONTENT]
    assert "good.gz" in capsys.readouterr().err


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
