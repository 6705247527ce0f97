"""Bad input ends with code 2 and one readable paragraph."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from .processes import Shell, tiny


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("fit", "missing.csv", "--out", "q"), "no file or folder 'missing.csv'"),
        (("fit", "tiny.npz"), "Missing option '--out'"),
        (("fit", "tiny.npz", "--out", "q", "--epochs", "-1"), "--epochs"),
        (("fit", "tiny.npz", "--out", "q", "--lr", "fast"), "--lr"),
        (("fit", "tiny.npz", "--out", "q", "--lr", "nan"), "--lr"),
        (("fit", "tiny.npz", "--out", "q", "--method", "magic"), "Use one of cross-entropy"),
        (("fit", "tiny.npz", "--out", "q", "--net", "magic"), "net: unknown: 'magic'"),
        (("fit", "tiny.npz", "--out", "q", "--net", "resnet18"), "for images"),
        (("fit", "tiny.npz", "--out", "q", "--preset", "magic"), "preset: unknown"),
        (("fit", "tiny.npz", "--out", "q", "--collector", "magic"), "collector: unknown"),
        (("fit", "tiny.npz", "--out", "q", "--device", "gpu"), "device: unknown"),
        (("fit", "tiny.npz", "--out", "q", "--precision", "7"), "precision: unknown"),
        (("fit", "tiny.npz", "--out", "q", "--precision", "64-true"), "Use one of 32-true, bf16-m"),
        (("fit", "tiny.npz", "--out", "q", "--rho-max", "1.5"), "must lie in [0, 1)"),
        (("fit", "tiny.npz", "--out", "q", "--weights", "no.pt"), "no file 'no.pt'"),
        (("fit", "tiny.npz", "--out", "q", "--classes", "0,1"), "does not name"),
        (
            ("fit", "tiny.npz", "--out", "q", "--method", "cross-entropy", "--rho-max", "0.2"),
            "not an option of the method 'cross-entropy'",
        ),
        (("fit", "tiny.npz", "--out", "q", "--resume", "--overwrite"), "contradicts"),
        (("predict", "nowhere", "tiny.npz", "--out", "p.csv"), "no directory 'nowhere'"),
        (("predict", ".", "tiny.npz", "--out", "p.csv"), "no finished model"),
        (("predict", ".", "tiny.npz", "--out", "p.docx"), "does not end in .csv"),
        (("noise", "tiny.npz", "--out", "n.npz", "--rate", "30"), "rate"),
        (("noise", "tiny.npz", "--out", "n.npz", "--model", "magic"), "Choose from"),
        (("noise", "tiny.npz", "--out", "n.npz", "--feature-mode", "magic"), "feature_mode"),
        (("noise", "tiny.npz", "--out", "n.csv"), "does not end in .npz"),
        (("magic",), "No such command 'magic'"),
    ],
)
def test_bad_input__one_paragraph_and_nothing_left_behind(
    shell: Shell, tiny_npz: Path, args: tuple[str, ...], says: str
) -> None:
    assert says in shell.fail(*args)
    assert {path.name for path in shell.cwd.iterdir()} == {tiny_npz.name}


def test_unusable_files__are_named(shell: Shell, table: pd.DataFrame) -> None:
    (shell.cwd / "broken.npz").write_bytes(b"not a zip file")
    assert "broken.npz: cannot be read" in shell.fail("fit", "broken.npz", "--out", "q")
    np.savez(shell.cwd / "empty.npz", Z=np.zeros(3))
    assert "needs the arrays X and y" in shell.fail("fit", "empty.npz", "--out", "q")
    X, _ = tiny()
    np.savez(shell.cwd / "one.npz", X=X, y=np.zeros(len(X), int))
    assert "one class only" in shell.fail("fit", "one.npz", "--out", "q")
    assert "kind" in shell.fail("fit", "table.csv", "--label", "kind", "--out", "q")
    assert "id" in shell.fail("fit", "table.csv", "--label", "species", "--id", "no", "--out", "q")
    (shell.cwd / "text.txt").write_text("hello")
    assert "cannot be read" in shell.fail("fit", "text.txt", "--out", "q")
    (shell.cwd / "nothing").mkdir()
    shell.fail("fit", "nothing", "--out", "q")
    assert "numbers" in shell.fail("noise", "table.csv", "--label", "species", "--out", "n.npz")
    assert not (shell.cwd / "q").exists()


def test_output_below_a_file__names_it(shell: Shell, tiny_npz: Path) -> None:
    assert "tiny.npz" in shell.fail("fit", tiny_npz.name, "--out", "tiny.npz/run")


def test_predict__other_kind_of_data__says_so(shell: Shell, tiny_npz: Path) -> None:
    shell.succeed(
        "fit", tiny_npz.name, "--out", "run", "--method", "cross-entropy", "--epochs", "1"
    )
    np.savez(shell.cwd / "wide.npz", X=np.zeros((4, 5)))
    shell.fail("predict", "run", "wide.npz", "--out", "p.csv")
    assert not (shell.cwd / "p.csv").exists()


def test_diverging_training__ends_with_code_one(shell: Shell, tiny_npz: Path) -> None:
    args = ("fit", tiny_npz.name, "--out", "run", "--method", "cross-entropy", "--lr", "1e38")
    ended = shell.run(*args, "--quiet")
    assert ended.code == 1
    assert ended.stderr.startswith("error: The loss of stage 'cross_entropy' is")
    assert "Traceback" not in ended.stderr
