"""A row is there as a whole or not at all."""

import json
import multiprocessing
from pathlib import Path

import pytest

from bltm.benchmark.rows import append_row, read_rows
from bltm.core.errors import InputError


def row(name: str, **more: object) -> dict[str, object]:
    return {"id": name, "status": "done", **more}


def test_rows_come_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "rows.jsonl"
    for name in "abc":
        append_row(path, row(name, text="Zeile\nzwei"))
    assert [found["id"] for found in read_rows(path)] == ["a", "b", "c"]
    assert read_rows(path)[0]["text"] == "Zeile\nzwei"


def test_no_file_no_rows(tmp_path: Path) -> None:
    assert read_rows(tmp_path / "none.jsonl") == []


def test_the_last_row_of_a_run_counts(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for number, name in enumerate("aba"):
        append_row(path, row(name, number=number))
    assert [(found["id"], found["number"]) for found in read_rows(path)] == [("b", 1), ("a", 2)]


@pytest.mark.parametrize("cut", range(1, 20, 3))
def test_a_line_that_was_cut_off_is_left_out_and_not_continued(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "rows.jsonl"
    append_row(path, row("a"))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:cut])
    assert [found["id"] for found in read_rows(path)] == ["a"]
    append_row(path, row("b"))
    assert [found["id"] for found in read_rows(path)] == ["a", "b"]


def test_what_is_no_row_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"accuracy": 1}) + "\n")
    with pytest.raises(InputError, match="no result of 'bltm bench'"):
        read_rows(path)


def test_values_that_json_has_not_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        append_row(tmp_path / "rows.jsonl", row("a", accuracy=float("nan")))
    assert read_rows(tmp_path / "rows.jsonl") == []


def _append_many(path: Path, name: str) -> None:
    for number in range(50):
        append_row(path, row(f"{name}{number}", text="x" * 5000))


def test_processes_that_append_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_append_many, args=(path, name)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(read_rows(path)) == 100
    assert all(json.loads(line) for line in path.read_text().splitlines())
