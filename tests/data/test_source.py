from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from bltm.core.errors import InputError
from bltm.data import Source, as_source, open_source

LABELS = ["cat", "dog", "cat"]


def test_two_dimensional_arrays_are_numbers_with_row_numbers_for_ids() -> None:
    for X in (np.eye(3), np.eye(3).tolist(), torch.eye(3), torch.eye(3).bfloat16()):
        source = as_source(X, LABELS)
        assert source.kind == "array"
        assert source.ids.tolist() == [0, 1, 2]
        assert source.labels.tolist() == LABELS


def test_infinity_and_complex_numbers_are_errors_and_nan_is_not() -> None:
    assert len(as_source(np.array([[np.nan]]))) == 1
    with pytest.raises(InputError, match="infinity"):
        as_source(np.array([[np.inf]]))
    with pytest.raises(InputError, match="Complex data not supported"):
        as_source(np.array([[1j]]))


def test_arrays_of_numbers_as_text_are_numbers_and_of_words_a_table() -> None:
    assert as_source(np.array([["1", "2.5"]])).inputs.tolist() == [[1.0, 2.5]]
    assert as_source(np.array([["1", "b"]], dtype=object)).kind == "table"


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros((1, 1, 1, 1, 1)), np.array(3.0)])
def test_other_dimensions_are_errors(bad: np.ndarray) -> None:
    with pytest.raises(InputError, match="Reshape your data"):
        as_source(bad)


def test_sparse_matrices_are_refused() -> None:
    from scipy.sparse import csr_matrix

    with pytest.raises(InputError, match="sparse"):
        as_source(csr_matrix(np.eye(2)))


@pytest.mark.parametrize(
    ("X", "shape"),
    [
        (np.zeros((2, 5, 6), np.uint8), (2, 5, 6, 1)),
        (np.zeros((2, 5, 6, 3), np.uint8), (2, 5, 6, 3)),
        (np.zeros((2, 3, 5, 6), np.uint8), (2, 5, 6, 3)),
        (np.zeros((2, 3, 5, 3), np.uint8), (2, 3, 5, 3)),
        (torch.zeros((2, 3, 5, 3)), (2, 5, 3, 3)),
        (torch.zeros((2, 1, 5, 6)), (2, 5, 6, 1)),
        (np.zeros((2, 5, 6, 4), np.uint8), (2, 5, 6, 3)),
    ],
)
def test_the_channel_axis_of_images_is_found(X, shape: tuple[int, ...]) -> None:
    source = as_source(X)
    assert source.kind == "images"
    assert source.inputs.shape == shape
    assert source.notes


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_transparent_pixels_are_put_on_white(dtype) -> None:
    white = 255 if dtype == np.uint8 else 1
    image = np.zeros((1, 2, 2, 4), dtype)
    image[0, 0, 0, 3] = white
    pixels = as_source(image).inputs
    assert pixels[0, 0, 0].tolist() == [0, 0, 0]
    assert pixels[0, 1, 1].tolist() == [white] * 3
    assert pixels.dtype == dtype


def test_images_with_an_odd_number_of_channels_or_nan_are_errors() -> None:
    with pytest.raises(InputError, match="1, 3 or 4 channels"):
        as_source(np.zeros((2, 5, 6, 7)))
    with pytest.raises(InputError, match="NaN or infinite"):
        as_source(np.full((2, 5, 6), np.nan))
    with pytest.raises(InputError, match="images need numbers"):
        as_source(np.full((2, 5, 6), "a"))


def test_labels_of_another_length_are_an_error() -> None:
    with pytest.raises(InputError, match="has length 2 but there are 3"):
        as_source(np.eye(3), [0, 1])


def test_a_series_of_labels_keeps_its_name_and_a_source_passes_through() -> None:
    source = as_source(np.eye(3), pd.Series(LABELS, name="species"))
    assert source.label_name == "species"
    assert as_source(source) is source
    assert as_source(source, [1, 2, 3]).labels.tolist() == [1, 2, 3]


def test_taking_rows_keeps_ids_and_labels_with_their_inputs() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3]}, index=["x", "y", "z"])
    for X in (np.array([[1], [2], [3]]), frame):
        source = as_source(X, LABELS)
        taken = source.take([2, 0])
        assert np.asarray(taken.inputs).ravel().tolist() == [3, 1]
        assert taken.ids.tolist() == source.ids[[2, 0]].tolist()
        assert source.take(np.array([False, True, False])).labels.tolist() == ["dog"]


def test_fingerprints_tell_content_apart_and_survive_copies() -> None:
    X = np.arange(6.0).reshape(3, 2)
    frame = pd.DataFrame(X, columns=["a", "b"])
    prints = {
        as_source(X, LABELS).fingerprint,
        as_source(X.copy(), list(LABELS)).fingerprint,
        as_source(X, ["cat", "cat", "cat"]).fingerprint,
        as_source(X).fingerprint,
        as_source(X[::-1], LABELS[::-1]).fingerprint,
        as_source(frame).fingerprint,
        as_source(frame.rename(columns={"a": "c"})).fingerprint,
        as_source(torch.utils.data.TensorDataset(torch.from_numpy(X))).fingerprint,
    }
    assert len(prints) == 7


def test_npz_gives_x_and_y_and_never_the_truth(tmp_path: Path) -> None:
    path = tmp_path / "noisy.npz"
    np.savez(path, X=np.eye(3), y=np.array(LABELS), y_true=np.zeros(3), rows=np.zeros((3, 2)))
    source = open_source(path)
    assert source.labels.tolist() == LABELS
    assert source.notes == ("Not used: rows, y_true.",)
    assert open_source(path, for_prediction=True).labels is None


def test_npz_without_arrays_with_objects_or_damaged_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, images=np.eye(3))
    with pytest.raises(InputError, match="needs the arrays X and y, has images"):
        open_source(path)
    np.savez(path, X=np.eye(3), y=np.array(LABELS, dtype=object))
    with pytest.raises(InputError, match="Python objects are refused"):
        open_source(path)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match="cannot be read"):
        open_source(path)


def test_paths_that_do_not_exist_or_are_of_an_unknown_kind_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Registered are cifar10, .*digits, fashion-mnist"):
        open_source(tmp_path / "no.csv")
    (tmp_path / "data.xlsx").write_bytes(b"")
    with pytest.raises(InputError, match="cannot be read"):
        open_source(tmp_path / "data.xlsx")


def test_registered_names_open_and_a_path_of_that_name_goes_first(tmp_path, monkeypatch) -> None:
    assert len(open_source("digits")) == 1297
    test = open_source("digits:test", for_prediction=True)
    assert (len(test), test.labels) == (500, None)
    with pytest.raises(InputError, match="Use train or test"):
        open_source("digits:validation")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    with pytest.raises(InputError, match="no images"):
        open_source("digits")


def test_classes_are_checked_on_opening(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,label\n1,cat\n2,dog\n")
    assert isinstance(open_source(path, classes=["cat", "dog", "fox"]), Source)
    with pytest.raises(InputError, match="'dog'"):
        open_source(path, classes=["cat", "fox"])
