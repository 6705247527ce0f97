"""States of a run directory, and who may write it."""

from pathlib import Path

import pytest

from bltm.core.errors import InputError
from bltm.runs.config import RunConfig
from bltm.runs.directory import RunDirectory, State

CONFIG = RunConfig("x.csv", data_sha256="1")


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "run")


def begin(directory: RunDirectory, error: BaseException | None = None) -> None:
    with directory.claimed(resume=error is not None, overwrite=False):
        directory.begin(CONFIG, overwrite=False)
        if error is not None:
            raise error


def test_states__from_absent_to_finished(directory: RunDirectory) -> None:
    assert directory.state is State.ABSENT
    directory.path.mkdir()
    assert directory.state is State.EMPTY
    (directory.path / ".config.json.abc.json").touch()  # a killed process left it
    assert directory.state is State.EMPTY
    directory.begin(CONFIG, overwrite=False)
    assert directory.state is State.UNFINISHED
    assert [path.name for path in directory.path.iterdir()] == ["config.json"]
    (directory.path / "metadata.json").touch()
    assert directory.state is State.FINISHED
    assert directory.config() == CONFIG


@pytest.mark.parametrize("content", ["not json", "[]", '{"model_type": "other"}'])
def test_directory_of_another_program__is_foreign(directory: RunDirectory, content: str) -> None:
    directory.path.mkdir()
    (directory.path / "config.json").write_text(content)
    assert directory.state is State.FOREIGN
    directory.remove()
    with (
        pytest.raises(InputError, match="not a run of bltm"),
        directory.claimed(resume=False, overwrite=True),
    ):
        pass
    assert (directory.path / "config.json").read_text() == content


def test_claim__is_exclusive_and_ends(directory: RunDirectory) -> None:
    with directory.claimed(resume=True, overwrite=False):
        other = RunDirectory(directory.path)
        with (
            pytest.raises(InputError, match="another process"),
            other.claimed(resume=True, overwrite=False),
        ):
            pass
    with other.claimed(resume=True, overwrite=False):
        pass


def test_claim__unusable_input__leaves_nothing_new_behind(directory: RunDirectory) -> None:
    boom = InputError("x", "boom")
    with pytest.raises(InputError, match="boom"):
        begin(directory, boom)
    assert directory.state is State.ABSENT
    begin(directory)
    with pytest.raises(InputError, match="boom"):
        begin(directory, boom)
    assert directory.state is State.UNFINISHED


def test_claim__other_error__keeps_what_was_done(directory: RunDirectory) -> None:
    with pytest.raises(KeyboardInterrupt):
        begin(directory, KeyboardInterrupt())
    assert directory.state is State.UNFINISHED


def test_begin__unfinished_run_of_another_config__says_what_differs(
    directory: RunDirectory,
) -> None:
    begin(directory)
    directory.begin(CONFIG, overwrite=False)
    with pytest.raises(InputError, match="seed: 0, now 1"):
        directory.begin(RunConfig("x.csv", data_sha256="1", seed=1), overwrite=False)


def test_erase__removes_the_files_of_a_run_and_no_others(directory: RunDirectory) -> None:
    begin(directory)
    (directory.path / "checkpoint").mkdir()
    for name in ("checkpoint/a.safetensors", "model.safetensors", "metadata.json", "mine.txt"):
        (directory.path / name).touch()
    directory.remove()
    assert {path.name for path in directory.path.iterdir()} == {".lock", "mine.txt"}
