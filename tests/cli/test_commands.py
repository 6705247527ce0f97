"""Every command line that the documentation shows, on small data."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bltm
from bltm.runs.artifacts import read_evidence

from .processes import Shell

FILES = {
    ".lock",
    "config.json",
    "history.jsonl",
    "metadata.json",
    "model.safetensors",
    "posteriors.safetensors",
    "audit.csv",
    "audit.json",
    "audit.parquet",
    "report.html",
}
QUICK = ("--epochs", "1", "--device", "cpu")


def test_noise__digits__writes_arrays_and_manifest(shell: Shell) -> None:
    ended = shell.succeed("noise", "digits", "--rate", "0.3", "--seed", "1", "--out", "noisy.npz")
    assert "noisy.manifest.json" in ended.stdout
    with np.load(shell.cwd / "noisy.npz") as arrays:
        assert sorted(arrays.files) == ["X", "rows", "y", "y_true"]
        n = len(arrays["X"])
        assert arrays["rows"].shape == (n, 10)
        rate = float((arrays["y"] != arrays["y_true"]).mean())
    manifest = json.loads((shell.cwd / "noisy.manifest.json").read_text())
    assert manifest["realised_rate"] == pytest.approx(rate)
    assert manifest["nominal_rate"] == 0.3
    assert manifest["seed"] == 1
    assert 0.2 < rate < 0.4
    message = shell.fail("noise", "digits", "--out", "noisy.npz")
    assert "exists already" in message
    shell.succeed("noise", "digits", "--out", "noisy.npz", "--overwrite", "--model", "symmetric")


def test_noise__npz_with_text_labels_and_options__can_be_fitted(shell: Shell) -> None:
    rng = np.random.default_rng(0)
    y = np.array(["a", "b"])[np.arange(60) % 2]
    np.savez(shell.cwd / "clean.npz", X=rng.normal(size=(60, 3)), y=y)
    shell.succeed(
        *("noise", "clean.npz", "--rate", "0.2", "--rho-max", "0.5"),
        *("--feature-mode", "std_unit", "--out", "noisy.npz"),
    )
    with np.load(shell.cwd / "noisy.npz") as arrays:
        assert set(arrays["y"]) == {"a", "b"}
    shell.succeed("fit", "noisy.npz", "--out", "run", *QUICK)
    assert json.loads((shell.cwd / "run/metadata.json").read_text())["classes"] == ["a", "b"]


def test_fit__npz__writes_the_run_directory_and_says_what_it_found(
    shell: Shell, tiny_npz: Path
) -> None:
    with np.load(tiny_npz) as arrays:
        X, y = arrays["X"], arrays["y"]
    # y_true would give everything away; a method must not see it.
    np.savez(tiny_npz, X=X, y=y, y_true=np.zeros_like(y), rows=np.zeros((len(y), 3)))
    ended = shell.succeed("fit", "tiny.npz", "--out", "run/", *QUICK)
    run = shell.cwd / "run"
    assert {path.name for path in run.iterdir()} == FILES
    assert "Estimate: about" in ended.stderr
    assert "MB of memory" in ended.stderr
    assert "note: Not used: rows, y_true." in ended.stderr
    assert "warm_up/fold-1: epoch 1/1" in ended.stderr
    assert "of the labels seem to be wrong" in ended.stdout
    assert "Next: bltm predict run" in ended.stdout
    evidence = read_evidence(run / "posteriors.safetensors")
    assert evidence.ids == list(range(120))
    assert evidence.probs.shape == (120, 3)
    assert evidence.posterior is not None
    assert evidence.posterior.out_of_sample
    assert evidence.collected is not None
    config = json.loads((run / "config.json").read_text())
    assert config["data"] == str(tiny_npz)
    assert len(config["data_sha256"]) == 64
    np.testing.assert_allclose(
        bltm.load(run, device="cpu").predict_proba(X), evidence.probs, atol=1e-5
    )


def test_fit__cross_entropy_quietly__only_prints_the_summary(shell: Shell, tiny_npz: Path) -> None:
    ended = shell.succeed(
        *("fit", "tiny.npz", "--method", "cross-entropy", "--seed", "3", "--epochs", "5"),
        *("--device", "cpu", "--out", "ce/", "--quiet"),
    )
    assert ended.stderr == ""
    assert "cross-entropy learned from 120 examples of 3 classes" in ended.stdout
    assert "(seed 3)" in ended.stdout


def test_fit_and_predict__table__match_columns_by_name_and_keep_ids(
    shell: Shell, table: pd.DataFrame
) -> None:
    shell.succeed("fit", "table.csv", "--label", "species", "--out", "run2/", "--device", "cpu")
    shuffled = table.sample(frac=1.0, random_state=0)
    columns = ["width", "extra", "flower_id", "length", "colour"]
    shuffled.assign(extra=1.0)[columns].to_csv(shell.cwd / "new.csv", index=False)
    ended = shell.succeed("predict", "run2/", "new.csv", "--out", "predictions.csv")
    assert "120 examples" in ended.stdout
    found = pd.read_csv(shell.cwd / "predictions.csv")
    probabilities = ["probability_iris", "probability_rose", "probability_tulip"]
    assert list(found.columns) == ["flower_id", "label", *probabilities]
    assert found["flower_id"].tolist() == shuffled["flower_id"].tolist()
    np.testing.assert_allclose(found[probabilities].sum(axis=1), 1.0, atol=1e-6)
    right = np.array(["iris", "rose", "tulip"])[shuffled.index.to_numpy() % 3]
    assert (found["label"] == right).mean() > 0.9
    # One row cannot show that its id names the rows; the run knows.
    shuffled.iloc[:1].to_parquet(shell.cwd / "one.parquet")
    shell.succeed("predict", "run2", "one.parquet", "--out", "one-out.parquet")
    one = pd.read_parquet(shell.cwd / "one-out.parquet")
    pd.testing.assert_frame_equal(one, found.iloc[:1], check_dtype=False)
    assert "exists already" in shell.fail("predict", "run2", "new.csv", "--out", "predictions.csv")
    shell.succeed("predict", "run2", "new.csv", "--out", "predictions.csv", "--overwrite")


def test_fit__parquet_with_named_classes_and_ids__works(shell: Shell, table: pd.DataFrame) -> None:
    table.to_parquet(shell.cwd / "table.parquet")
    shell.succeed(
        *("fit", "table.parquet", "--label", "species", "--id", "flower_id", "--out", "run"),
        *("--classes", "iris,rose,tulip,lily", "--preset", "default", "--net", "mlp"),
        *("--batch-size", "32", "--lr", "0.01", "--rho-max", "0.2", "--collector", "covering"),
        *("--precision", "32-true", *QUICK),
    )
    classes = json.loads((shell.cwd / "run/metadata.json").read_text())["classes"]
    assert classes == ["iris", "lily", "rose", "tulip"]


def test_fit_and_predict__images__folder_and_table_of_paths(shell: Shell, photos: Path) -> None:
    assert photos.is_dir()
    shell.succeed("fit", "photos/", "--out", "run3/", "--image-size", "8", *QUICK)
    shell.succeed(
        *("fit", "labels.csv", "--image", "path", "--label", "label", "--out", "run4/"),
        *("--method", "cross-entropy", "--image-size", "8", *QUICK),
    )
    shell.succeed("predict", "run4", "labels.csv", "--out", "a.csv", "--device", "cpu")
    shell.succeed("predict", "run3", "photos", "--out", "b.csv", "--device", "cpu")
    for name in ("a.csv", "b.csv"):
        assert len(pd.read_csv(shell.cwd / name)) == 24


def test_listings__print_a_row_each(shell: Shell) -> None:
    lines = shell.succeed("data", "list").stdout.splitlines()
    names = [line.split()[0] for line in lines]
    assert names[:5] == ["name", "digits", "toy", "mnist", "fashion-mnist"]
    assert {"svhn", "cifar10", "cifar100", "cifar10n-worse", "cifar100n", "clothing1m"} < set(names)
    names = [line.split()[0] for line in shell.succeed("methods").stdout.splitlines()]
    assert {"cross-entropy", "bltm", "bltm-v"} <= set(names)
    assert shell.succeed("--version").stdout == f"bltm {bltm.__version__}\n"
