"""The demonstration, cut short."""

import json
from pathlib import Path

import pytest

import bltm
from bltm.core.errors import InputError
from bltm.runs.demo import DemoResult, describe, run_demo


def test_demo__writes_results_data_and_a_run(tmp_path: Path) -> None:
    said: list[str] = []
    out = tmp_path / "demo"
    text = run_demo(out, 0.4, 1, said.append, epochs=1)
    assert "each seed" in text
    assert len(said) == 1 + 3
    assert {path.name for path in out.iterdir()} == {
        "results.json",
        "noisy.npz",
        "noisy.manifest.json",
        "run",
    }
    values = json.loads((out / "results.json").read_text())
    assert values["demo"]["rate"] == 0.4
    assert sorted(result["name"] for result in values["results"]) == [
        "bltm-v",
        "cross-entropy",
        "cross-entropy, right labels",
    ]
    assert bltm.load(out / "run", device="cpu").classes_.tolist() == list(range(10))
    with pytest.raises(InputError, match="exists already"):
        run_demo(out, 0.4, 1, said.append)


def test_demo__directory_of_the_user__is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(InputError, match="not a demonstration"):
        run_demo(tmp_path, 0.4, 1, lambda message: None, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_description__counts_seeds_won_and_the_share_of_the_gap() -> None:
    figures = {
        "bltm-v": (0.8, 0.9),
        "cross-entropy": (0.7, 0.9),
        "cross-entropy, right labels": (1.0, 1.0),
    }
    results = [
        DemoResult(name, seed, accuracy, 0.4, 1.0)
        for name, values in figures.items()
        for seed, accuracy in enumerate(values)
    ]
    text = describe(results, 61.0, Path("demo"))
    assert "bltm-v is ahead of cross-entropy with 1 of 2 seeds and level with 1" in text
    assert "recovers 25 % of what the wrong labels cost" in text
    assert "Took 61 s" in text
