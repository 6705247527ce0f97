"""``bltm audit``, ``bltm report`` and what ``bltm fit`` leaves of them, as users start them."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from .processes import Shell, tiny

FIT = ("--method", "forward", "--epochs", "3", "--net", "mlp", "--quiet")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def run(shell: Shell, tiny_npz: Path, tmp_path: Path) -> Path:
    shell.succeed("fit", "tiny.npz", "--out", "run", *FIT)
    return tmp_path / "run"


def test_a_fit_ends_with_an_audit_and_a_report(
    shell: Shell, tiny_npz: Path, tmp_path: Path
) -> None:
    ended = shell.succeed("fit", "tiny.npz", "--out", "run", *FIT)
    assert "sure other suggestion (relabel)" in ended.stdout
    assert "open run/report.html" in ended.stdout
    found = rows(tmp_path / "run" / "audit.csv")
    assert len(found) == 120
    assert {"row", "given_label", "suggested_label", "p_wrong", "verdict"} <= set(found[0])
    summary = json.loads((tmp_path / "run" / "audit.json").read_text())
    assert "out of sample" in json.dumps(summary)
    assert (tmp_path / "run" / "audit.parquet").exists()
    assert "<html" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_a_fit_without_an_audit(shell: Shell, tiny_npz: Path, tmp_path: Path) -> None:
    shell.succeed("fit", "tiny.npz", "--out", "run", "--no-audit", "--audit-folds", "0", *FIT)
    assert not (tmp_path / "run" / "audit.csv").exists()
    ended = shell.succeed("audit", "run", "--no-report", "--out", "elsewhere")
    assert "in sample" in ended.stdout
    assert (tmp_path / "elsewhere" / "audit.csv").exists()
    assert not (tmp_path / "elsewhere" / "report.html").exists()


def test_audits_with_other_thresholds_and_replaced_runs(
    run: Path, shell: Shell, tmp_path: Path
) -> None:
    before = [row["verdict"] for row in rows(run / "audit.csv")]
    shell.succeed("audit", "run/", "--relabel", "0.99", "--review", "0.9", "--drop", "1")
    after = [row["verdict"] for row in rows(run / "audit.csv")]
    assert before.count("keep") < after.count("keep")
    shell.succeed("report", "run", "--out", "report.html")
    assert (tmp_path / "report.html").exists()
    shell.succeed("fit", "tiny.npz", "--out", "run", "--overwrite", "--no-audit", *FIT)
    assert not (run / "audit.csv").exists()


def test_corrected_labels_find_their_way_back(run: Path, shell: Shell, tmp_path: Path) -> None:
    found = rows(run / "audit.csv")
    suspects = sorted(found, key=lambda row: -float(row["p_wrong"]))[:5]
    lines = [f"{row['row']},{(int(row['given_label']) + 1) % 3}" for row in suspects]
    (tmp_path / "corrected.csv").write_text("row,label\n" + "\n".join(lines) + "\n")
    ended = shell.succeed("audit", "apply", "run/", "corrected.csv", "--out", "relabelled.csv")
    assert "120 labels, 5 of them changed" in ended.stdout
    labels = {row["row"]: int(row["label"]) for row in rows(tmp_path / "relabelled.csv")}
    changed = {row["row"] for row in suspects}
    for row in found:
        expected = (int(row["given_label"]) + (row["row"] in changed)) % 3
        assert labels[row["row"]] == expected
    shell.succeed("fit", "tiny.npz", "--labels", "corrected.csv", "--out", "again", *FIT)
    again = {row["row"]: int(row["given_label"]) for row in rows(tmp_path / "again" / "audit.csv")}
    assert again == labels
    assert "exists already" in shell.fail(
        "audit", "apply", "run", "corrected.csv", "--out", "relabelled.csv"
    )


def test_ready_posteriors_of_any_model(shell: Shell, tmp_path: Path) -> None:
    _, y = tiny()
    probs = np.full((len(y), 3), 0.05)
    probs[np.arange(len(y)), np.arange(len(y)) % 3] = 0.9
    np.save(tmp_path / "labels.npy", y)
    np.save(tmp_path / "probs.npy", probs)
    arguments = ("audit", "--labels", "labels.npy", "--probs", "probs.npy", "--out", "audit/")
    shell.succeed(*arguments)
    found = rows(tmp_path / "audit" / "audit.csv")
    wrong = y != np.arange(len(y)) % 3
    p_wrong = np.array([float(row["p_wrong"]) for row in found])
    assert p_wrong[wrong].min() > p_wrong[~wrong].max()
    np.save(tmp_path / "T.npy", np.eye(3) * 0.7 + 0.1)
    shell.succeed(*arguments, "--transition", "T.npy", "--classes", "0,1,2")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "'nowhere' is not a finished run"),
        (["--out", "x"], "needs RUN"),
        (["--labels", "a.npy", "--out", "x"], "needs --labels, --probs and --out"),
        (["--labels", "a.npy", "--probs", "b.npy", "--out", "x"], "there is no file 'a.npy'"),
        (["nowhere", "--review", "0.99"], "review: is 0.99, above relabel=0.9"),
        (["apply", "nowhere", "c.csv", "--out", "x.csv"], "'nowhere' is not a finished run"),
    ],
)
def test_mistakes(shell: Shell, arguments: list[str], message: str) -> None:
    assert message in shell.fail("audit", *arguments)


def test_a_report_of_nothing(shell: Shell) -> None:
    assert "not a finished run" in shell.fail("report", "nowhere", "--out", "r.html")


def test_data_that_has_gone_costs_the_pictures_only(
    run: Path, shell: Shell, tmp_path: Path
) -> None:
    (tmp_path / "tiny.npz").unlink()
    ended = shell.succeed("report", "run", "--out", "report.html")
    assert "shows no examples" in ended.stdout
    assert (tmp_path / "report.html").exists()
