"""The files of an audit, and corrections that come back."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.audit.problems import instance_dependent
from tests.audit.test_evidence import evidence_of

from bltm.audit import apply_corrections, audit, read_corrections, write_audit
from bltm.audit.cells import Lookup, cell
from bltm.audit.corrections import Corrections
from bltm.core.errors import InputError

PROBLEM = instance_dependent(120, 3, 0.3)
HOSTILE = [
    "=1+1",
    "+1",
    "-1",
    "@x",
    "\tx",
    "\rx",
    "'=1+1",
    "''=1+1",
    'a "quoted" name',
    "a,b;c",
    "two\nlines",
    "nul\x00l",
    "<script>",
    "\u202eright to left",
    "x" * 300,
    "",
    " ",
    "'plain'",
    "\udcff is no text",
    "＝1",
    "NA",
    "1.0",
]


def audited(ids: Any = None, classes: list[Any] | None = None) -> Any:
    names = classes or ["a", "b", "c"]
    labels = np.array(names, dtype=object)[PROBLEM.labels]
    return audit(labels, PROBLEM.f, PROBLEM.T, classes=names, ids=ids, id_name="name")


def test_csv_and_parquet_have_one_row_for_each_example(tmp_path: Path) -> None:
    found = audited(ids=[f"file {k}.png" for k in range(120)])
    paths = write_audit(found, tmp_path / "new")
    assert [path.name for path in paths] == ["audit.csv", "audit.parquet", "audit.json"]
    text, table = pd.read_csv(paths[0]), pd.read_parquet(paths[1])
    expected = ["name", "given_label", "suggested_label", "p_wrong", "verdict"]
    expected += [f"{what}_{k}" for k in (1, 2, 3) for what in ("label", "probability")]
    expected += ["t_row", "collected", "support_1", "support_2", "support_3", "split"]
    assert list(text.columns) == list(table.columns) == expected
    for frame in (text, table):
        assert frame["name"].tolist() == found.ids.tolist()
        assert frame["p_wrong"].to_numpy() == pytest.approx(found.p_wrong, abs=1e-6)
        given_names = [found.classes[code] for code in found.labels]
        assert frame["given_label"].tolist() == given_names
        assert frame["label_1"].tolist() == frame["suggested_label"].tolist()
        assert set(frame["verdict"]) <= {"keep", "relabel", "review", "drop"}
    rows = np.stack(table["t_row"].tolist())
    assert rows == pytest.approx(np.asarray(found.t_row), abs=1e-6)
    name, value = text["t_row"][0].split("; ")[0].split(":")
    assert float(value) == pytest.approx(rows[0].max(), abs=1e-3)
    assert name == "abc"[rows[0].argmax()]
    assert set(text["split"]) == {"used"}


def test_a_fit_has_splits_and_supporting_ids(tmp_path: Path) -> None:
    found = audit(evidence_of(instance_dependent(120, 3, 0.1, seed=1)))
    write_audit(found, tmp_path)
    frame = pd.read_csv(tmp_path / "audit.csv")
    assert frame["split"].value_counts().to_dict() == {"train": 90, "validation": 30}
    assert set(frame["support_1"]) == {"row 0"}
    assert frame["support_3"].isna().all()
    assert set(frame["collected"]) == {"no", "given", "other"}


def test_json_is_the_summary(tmp_path: Path) -> None:
    found = audited()
    write_audit(found, tmp_path)
    values = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert values["schema"] == 1
    assert values["noise_rate"]["value"] == pytest.approx(found.summary.noise_rate.value)
    assert values["words"] == found.summary.words
    assert values["thresholds"] == {"relabel": 0.9, "review": 0.5, "drop": 0.95}
    assert len(values["average_transition"]) == 3


def test_no_cell_is_a_formula_and_every_id_finds_its_way_back(tmp_path: Path) -> None:
    ids = [HOSTILE[k] if k < len(HOSTILE) else f"row {k}" for k in range(120)]
    classes = ["=cmd|' /C calc'!A0", "-5", "@sum"]
    found = audited(ids, classes)
    write_audit(found, tmp_path)
    with (tmp_path / "audit.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    frame = pd.read_parquet(tmp_path / "audit.parquet")
    for texts in ([c for row in rows for c in row.values()], frame["name"], frame["given_label"]):
        assert not any(str(text).startswith(tuple("=+-@\t\r\n＝")) for text in texts)
    assert len(rows) == 120
    for suffix in ("csv", "parquet"):
        path = tmp_path / f"corrected.{suffix}"
        chosen = pd.DataFrame(
            {
                "label": [row["suggested_label"] for row in rows],
                "name": [row["name"] for row in rows] if suffix == "csv" else frame["name"],
            }
        ).iloc[::-1]
        # Unquoted, a carriage return in a name would end the row.
        if suffix == "csv":
            chosen.to_csv(path, index=False, quoting=csv.QUOTE_ALL)
        else:
            chosen.to_parquet(path)
        corrections = read_corrections(path, "name")
        given_labels = np.array(classes, dtype=object)[found.labels]
        new = apply_corrections(found.ids, given_labels, classes, corrections)
        assert new.tolist() == [classes[code] for code in found.suggested]


def test_whole_numbers_stay_numbers(tmp_path: Path) -> None:
    found = audited(classes=[-1, 0, 1])
    write_audit(found, tmp_path)
    for frame in (pd.read_csv(tmp_path / "audit.csv"), pd.read_parquet(tmp_path / "audit.parquet")):
        assert frame["name"].dtype == np.int64
        assert frame["given_label"].tolist() == [[-1, 0, 1][code] for code in found.labels]


def test_blocks_do_not_show_in_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = audited()
    write_audit(found, tmp_path / "whole")
    monkeypatch.setattr("bltm.audit.files.BLOCK_ROWS", 7)
    write_audit(found, tmp_path / "parts")
    whole, parts = (tmp_path / name for name in ("whole", "parts"))
    assert (whole / "audit.csv").read_bytes() == (parts / "audit.csv").read_bytes()
    pd.testing.assert_frame_equal(
        pd.read_parquet(whole / "audit.parquet"), pd.read_parquet(parts / "audit.parquet")
    )


def test_many_classes_have_the_largest_entries_only(tmp_path: Path) -> None:
    probs = np.full((30, 150), 0.1 / 149)
    probs[np.arange(30), np.arange(30)] = 0.9
    found = audit(np.arange(30), probs)
    write_audit(found, tmp_path)
    frame = pd.read_parquet(tmp_path / "audit.parquet")
    assert frame["t_row"][3].startswith("3:")
    values = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert values["average_transition"] is None
    assert values["average_transition_largest"]


def test_an_id_column_called_like_another_gets_a_name_of_its_own(tmp_path: Path) -> None:
    found = audit(PROBLEM.labels, PROBLEM.f, PROBLEM.T, id_name="verdict")
    write_audit(found, tmp_path)
    assert pd.read_csv(tmp_path / "audit.csv").columns[0] == "verdict_"


@given(st.lists(st.text(), unique=True))
def test_different_names_are_written_differently_unless_it_is_said(names: list[str]) -> None:
    try:
        lookup = Lookup(names, "ids")
    except InputError:
        assert len({name.replace("\x00", "␀") for name in names}) < len(names)
        return
    for position, name in enumerate(names):
        assert lookup.find(cell(name)) == position
        assert not cell(name).startswith(("=", "+", "-", "@", "\t", "\r"))


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_corrections_of_a_spreadsheet_are_read(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "corrected.csv"
    rows = [["id", "given_label", "label"], ["1", "a", "b"], ["2", "a", ""], ["3.0", "b", "a"]]
    path.write_text("\n".join(separator.join(row) for row in rows), encoding="utf-8-sig")
    corrections = read_corrections(path)
    assert len(corrections) == 2
    new = apply_corrections(np.array([1, 2, 3]), ["a", "a", "b"], ["a", "b"], corrections)
    assert new.tolist() == ["b", "a", "a"]


def test_corrected_label_comes_before_label(tmp_path: Path) -> None:
    path = tmp_path / "corrected.csv"
    path.write_text("id,label,corrected_label\nx,a,b\n", encoding="utf-8")
    assert read_corrections(path, "id").labels == ["b"]


def test_labels_keep_their_type() -> None:
    new = apply_corrections([0, 1], np.array([3, 4]), [3, 4], Corrections(["1"], ["3"]))
    assert new.dtype == np.int64
    assert new.tolist() == [3, 3]


@pytest.mark.parametrize(
    ("corrections", "message"),
    [
        (Corrections(["z"], ["a"]), "does not have: 'z'"),
        (Corrections(["x", "x"], ["a", "b"]), "'x' twice"),
        (Corrections(["x"], ["fox"]), "no class: 'fox'"),
    ],
)
def test_bad_corrections_are_named(corrections: Corrections, message: str) -> None:
    with pytest.raises(InputError, match=message):
        apply_corrections(["x", "y"], ["a", "b"], ["a", "b"], corrections)


def test_ids_that_are_not_different_are_refused() -> None:
    with pytest.raises(InputError, match="twice"):
        apply_corrections(["x", "x"], ["a", "b"], ["a", "b"], Corrections(["x"], ["a"]))


def test_new_classes_have_to_be_allowed() -> None:
    corrections = Corrections(["x"], ["fox"])
    new = apply_corrections(["x"], ["a"], ["a", "b"], corrections, new_classes=True)
    assert new.tolist() == ["fox"]


@pytest.mark.parametrize(
    ("name", "content"),
    [("none.csv", None), ("a.csv", "id,verdict\n1,keep\n"), ("a.csv", "label\nx\n"), ("a.csv", "")],
)
def test_files_without_corrections_are_refused(
    tmp_path: Path, name: str, content: str | None
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_corrections(tmp_path / name)
    assert caught.value.argument == "corrections"


def test_a_broken_parquet_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"no table")
    with pytest.raises(InputError, match="no readable Parquet"):
        read_corrections(tmp_path / "a.parquet")
