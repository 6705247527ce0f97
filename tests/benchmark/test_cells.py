"""Noisy data sets: made once, the same for all methods, right labels kept apart."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bltm.benchmark import cells
from bltm.benchmark.cells import open_cell
from bltm.benchmark.spec import Cell
from bltm.core.errors import InputError
from bltm.data.registry import load_dataset

CELL = Cell("digits", 300, "instance", 0.3, seed=1)


def test_noise_is_made_once_and_read_by_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_cell(CELL, tmp_path)
    calls = []
    monkeypatch.setattr(cells, "make_noise", lambda *a, **k: calls.append(1))
    second = open_cell(CELL, tmp_path)
    assert not calls
    assert first.train.labels is not None
    assert second.train.labels is not None
    assert (first.train.labels == second.train.labels).all()


def test_examples_and_noise_follow_the_seed(tmp_path: Path) -> None:
    one, same, other = (
        open_cell(replace(CELL, seed=seed), tmp_path / str(number))
        for number, seed in enumerate((1, 1, 2))
    )
    assert (one.train.ids == same.train.ids).all()
    assert (one.train.labels == same.train.labels).all()  # type: ignore[union-attr]
    assert (one.train.ids != other.train.ids).any()


def test_what_methods_are_judged_by(tmp_path: Path) -> None:
    cell = open_cell(CELL, tmp_path)
    judge = cell.evaluate()
    whole = load_dataset("digits").train
    assert whole.labels is not None
    right = whole.labels[np.searchsorted(whole.ids, cell.train.ids)]
    assert judge.clean is not None
    assert (judge.clean == right).all()
    assert judge.wrong is not None
    assert (judge.wrong == (cell.train.labels != right)).all()
    assert judge.noise["realised_rate"] == pytest.approx(judge.wrong.mean())
    assert 0.2 < judge.wrong.mean() < 0.4
    assert judge.row is not None
    assert judge.row.shape == (300, 10)
    truth = cell.truth()
    assert (truth.clean == right).all()
    assert (truth.known_noise.row == judge.row).all()


def test_the_clean_labels_cannot_be_reached_from_the_examples(tmp_path: Path) -> None:
    cell = open_cell(CELL, tmp_path)
    judge = cell.evaluate()
    assert not cell.train.cache
    assert (cell.train.labels != judge.clean).any()


def test_data_that_is_noisy_by_itself(tmp_path: Path) -> None:
    cell = open_cell(Cell("toy", None, "none", None, seed=0), tmp_path)
    judge = cell.evaluate()
    assert judge.wrong is not None
    assert judge.noise["realised_rate"] == pytest.approx(judge.wrong.mean())
    assert judge.row is None
    some = open_cell(Cell("toy", 50, "none", None, seed=0), tmp_path).evaluate()
    assert some.clean is not None
    assert len(some.clean) == 50


def test_more_examples_than_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="asks for 5,000"):
        open_cell(replace(CELL, images=5000), tmp_path)


def test_noise_of_other_data_is_not_taken(tmp_path: Path) -> None:
    open_cell(CELL, tmp_path)
    (kept,) = tmp_path.glob("*.npz")
    open_cell(replace(CELL, seed=2), tmp_path)
    (other,) = set(tmp_path.glob("*.npz")) - {kept}
    other.write_bytes(kept.read_bytes())
    with pytest.raises(InputError, match="made from other data"):
        open_cell(replace(CELL, seed=2), tmp_path)


def test_a_class_that_the_examples_lack_is_still_a_class(tmp_path: Path) -> None:
    cell = open_cell(replace(CELL, images=12), tmp_path)
    assert len(cell.classes) == 10
    assert len(np.unique(cell.train.labels)) < 10
