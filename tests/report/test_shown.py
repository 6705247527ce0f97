"""Training examples as pictures and rows."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from bltm.data import as_source, open_source
from bltm.report.shown import Shown


def pixels(png: bytes | None) -> np.ndarray:
    assert png is not None
    return np.asarray(Image.open(io.BytesIO(png)))


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        (np.array([0, 255], np.uint8), [0, 255]),
        (np.array([0, 200], np.uint8), [0, 200]),
        # Scans that use 16 of 256 levels are not all black.
        (np.array([0, 16], np.uint8), [0, 255]),
        (np.array([-1.0, 1.0]), [0, 255]),
        (np.array([0.0, 0.0]), [0, 0]),
    ],
)
def test_brightness(images: np.ndarray, expected: list[int]) -> None:
    arrays = np.broadcast_to(images[:, None, None, None], (2, 4, 4, 1)).copy()
    shown = Shown(as_source(arrays), [0, 1])
    assert shown.are_pictures
    assert [int(pixels(png).max()) for png in shown.pictures([0, 1])] == expected


def test_colours_and_further_channels() -> None:
    images = np.zeros((2, 5, 6, 3), np.uint8)
    images[1, :, :, 0] = 255
    found = pixels(Shown(as_source(images), [0, 1]).pictures([1])[0])
    assert found.shape == (5, 6, 3)
    assert found[0, 0].tolist() == [255, 0, 0]


def test_examples_are_found_by_their_ids_and_missing_ones_left_out(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / name / "1.png")
    source = open_source(tmp_path)
    shown = Shown(source, ["b/1.png", "gone.png", "a/1.png"])
    first, gone, last = shown.pictures([0, 1, 2])
    assert first == (tmp_path / "b" / "1.png").read_bytes()
    assert gone is None
    assert last is not None
    (tmp_path / "a" / "1.png").unlink()
    assert shown.pictures([2]) == [None]


def test_rows_of_tables_and_numbers() -> None:
    frame = pd.DataFrame({"length": [1.5, 2.0], "colour": ["red", "<b>"]})
    shown = Shown(as_source(frame), [0, 1])
    assert shown.are_rows
    assert shown.table_rows([1]) == [{"length": "2.0", "colour": "<b>"}]
    numbers = Shown(as_source(np.array([[1.0, 0.25]])), [0])
    assert numbers.table_rows([0]) == [{"x0": "1", "x1": "0.25"}]
