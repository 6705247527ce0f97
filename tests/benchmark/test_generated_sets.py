"""Grids of data sets that are not here, on generated files of their form."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import savemat

from bltm.benchmark import cells
from bltm.benchmark.execute import execute
from bltm.benchmark.grid import load_grid
from bltm.benchmark.spec import RunSpec
from bltm.data.cifar import BATCHES
from bltm.data.human_labels import KEYS_10

QUICK = {"epochs": 1}


@pytest.fixture(autouse=True)
def generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("BLTM_DATA", str(tmp_path))
    monkeypatch.setenv("BLTM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BLTM_CHECK", "0")
    # Data sets that were read elsewhere must not be taken for these, and the other way round.
    cells._bundle.cache_clear()
    yield
    cells._bundle.cache_clear()


def coloured(labels: np.ndarray, n_classes: int, side: int) -> np.ndarray:
    """Images whose brightness tells the class."""
    rng = np.random.default_rng(0)
    level = (40 + 180 * labels / n_classes).astype(int)[:, None, None, None]
    noise = rng.integers(0, 20, (len(labels), side, side, 3))
    return np.asarray(level + noise, dtype=np.uint8)


def write_svhn(root: Path) -> None:
    for part, n in (("train", 240), ("test", 60)):
        digits = np.arange(n) % 10
        images = coloured(digits, 10, 32).transpose(1, 2, 3, 0)
        labels = np.where(digits == 0, 10, digits).astype(np.uint8)[:, None]
        (root / "svhn").mkdir(exist_ok=True)
        savemat(root / "svhn" / f"{part}_32x32.mat", {"X": images, "y": labels})


def write_clothing(root: Path) -> None:
    folder = root / "clothing1m"
    parts = {"noisy_train": np.arange(210) % 14, "clean_test": np.arange(42) % 14}
    for part, labels in parts.items():
        keys = [f"images/{number % 10}/{number}/{part}.jpg" for number in range(len(labels))]
        for key, image in zip(keys, coloured(labels, 14, 48), strict=True):
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(folder / key)
        given = np.where(np.arange(len(labels)) % 5 == 0, (labels + 1) % 14, labels)
        given = given if part == "noisy_train" else labels
        lines = [f"{key} {label}\n" for key, label in zip(keys, given, strict=True)]
        (folder / f"{part}_key_list.txt").write_text("".join(f"{key}\n" for key in keys))
        (folder / f"{part.split('_')[0]}_label_kv.txt").write_text("".join(lines))


def write_cifar10n(root: Path) -> None:
    """Write CIFAR-10, and labels of which every fifth is wrong but for the clean ones."""
    (root / "cifar10").mkdir()
    labels = np.arange(40) % 10
    images = coloured(labels, 10, 32).transpose(0, 3, 1, 2).reshape(40, -1)
    content = np.concatenate([labels[:, None].astype(np.uint8), images], axis=1).tobytes()
    for name in (*BATCHES, "test_batch"):
        (root / "cifar10" / f"{name}.bin").write_bytes(content)
    clean = np.tile(labels, len(BATCHES)).astype(np.int64)
    given = np.where(np.arange(len(clean)) % 5 == 0, (clean + 1) % 10, clean)
    (root / "cifar10n").mkdir()
    sets = {key: clean if kind == "clean" else given for kind, key in KEYS_10.items()}
    torch.save(sets, root / "cifar10n" / "CIFAR-10_human.pt")


def small(name: str) -> list[RunSpec]:
    """Return the runs of a grid's quick form with one epoch and all examples."""
    return [
        replace(
            run,
            cell=replace(run.cell, images=None),
            parameters={**run.parameters, **QUICK},
        )
        for run in load_grid(name, quick=True).runs
    ]


def test_every_method_of_the_svhn_grid(tmp_path: Path) -> None:
    write_svhn(tmp_path)
    for run in small("paper-svhn-cpu"):
        row = execute(run, tmp_path / "work")
        assert row["status"] == "done", row["error"]["traceback"]
        assert 0.0 <= row["figures"]["accuracy"] <= 1.0
        assert row["noise"]["nominal_rate"] == 0.3


def test_every_method_of_the_clothing_grids(tmp_path: Path) -> None:
    write_clothing(tmp_path)
    for run in small("paper-clothing1m-cpu"):
        row = execute(run, tmp_path / "work")
        assert row["status"] == "done", row["error"]["traceback"]
        assert row["figures"]["row_error"] is None
        assert row["figures"]["average_precision"] is None
        assert row["noise"]["realised_rate"] is None


@pytest.mark.filterwarnings("ignore::bltm.core.errors.DataQualityWarning")
def test_every_method_of_the_grid_of_human_labels(tmp_path: Path) -> None:
    write_cifar10n(tmp_path)
    runs = [run for run in small("human-20000-cpu") if run.cell.data == "cifar10n-worse"]
    assert {"clean", "bltm-v", "bltm+", "oracle-class"} <= {run.method for run in runs}
    for run in runs:
        row = execute(run, tmp_path / "work")
        assert row["status"] == "done", row["error"]["traceback"]
        assert row["noise"]["realised_rate"] == pytest.approx(0.2)
        if run.method == "bltm-v":
            assert row["figures"]["average_precision"] is not None


def test_the_papers_schedule_on_clothing(tmp_path: Path) -> None:
    write_clothing(tmp_path)
    bltm = next(r for r in load_grid("paper-clothing1m").runs if r.method == "bltm-v")
    assert bltm.parameters == {"preset": "paper-clothing1m", "net": "resnet50"}
    smaller = {**bltm.parameters, "net": "compact", "epochs": 1, "image_size": 32}
    row = execute(replace(bltm, parameters=smaller), tmp_path / "work")
    assert row["status"] == "done", row["error"]["traceback"]
    # With so few images nothing may be collected, and then T(x) is not trained.
    assert set(row["cost"]["stages"]) - {"round-1/transition"} == {"warm_up", "round-1/revise"}
