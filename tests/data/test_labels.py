import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bltm.core.errors import DataQualityWarning, InputError
from bltm.data import encode_labels

TEXTS = st.lists(st.sampled_from(["cat", "dog", "NA", "None", "ä b"]), min_size=1)
WHOLE = st.lists(st.integers(-(2**62), 2**62), min_size=1)
TRUTH = st.lists(st.booleans(), min_size=1)


@given(st.one_of(TEXTS, WHOLE, TRUTH))
def test_codes_lead_back_to_the_labels(labels: list) -> None:
    codes, classes = encode_labels(labels, warn=False)
    assert classes[codes].tolist() == labels
    assert classes.tolist() == sorted(set(labels))
    assert codes.dtype == np.int64


@given(TEXTS, st.randoms(use_true_random=False))
def test_codes_do_not_depend_on_the_order_of_labels(labels: list, random) -> None:
    shuffled = list(labels)
    random.shuffle(shuffled)
    first, second = (encode_labels(v, warn=False) for v in (labels, shuffled))
    assert sorted(first[0]) == sorted(second[0])
    assert first[1].tolist() == second[1].tolist()


def test_objects_that_are_integers_and_whole_floats_become_integers() -> None:
    for labels in (
        np.array([3, -1, 3], dtype=object),
        np.array([3.0, -1.0, 3.0]),
        pd.Series([3, -1, 3], dtype="Int64"),
    ):
        codes, classes = encode_labels(labels, warn=False)
        assert codes.tolist() == [1, 0, 1]
        assert classes.dtype.kind == "i"


def test_classes_may_name_absent_ones() -> None:
    codes, classes = encode_labels([4, 4, 2, 2], classes=[2, 3, 4])
    assert codes.tolist() == [2, 2, 0, 0]
    assert classes.tolist() == [2, 3, 4]


def test_classes_given_as_text_name_integer_labels() -> None:
    assert encode_labels([1, 1, 0, 0], classes=["0", "1", "2"])[1].tolist() == [0, 1, 2]


def test_a_label_outside_classes_is_an_error_that_names_it() -> None:
    with pytest.raises(InputError, match="'fox'"):
        encode_labels(["cat", "fox"], classes=["cat", "dog"])


def test_a_class_named_twice_is_an_error() -> None:
    with pytest.raises(InputError, match="twice"):
        encode_labels(["cat"], classes=["cat", "cat"])


@pytest.mark.parametrize(
    "labels",
    [
        ["a", None, "a", ""],
        [1.0, np.nan, 1.0, np.nan],
        pd.Series([1, pd.NA, 1, None], dtype="Int64"),
    ],
)
def test_missing_labels_are_counted_and_named(labels: object) -> None:
    with pytest.raises(InputError, match="2 of 4 examples have no label: 'p', 'q'"):
        encode_labels(labels, ids=np.array(["o", "p", "r", "q"]))


def test_missing_labels_can_be_dropped_with_a_warning() -> None:
    with pytest.warns(DataQualityWarning, match="1 of 3"):
        codes, classes = encode_labels(["a", None, "a"], missing="drop")
    assert codes.tolist() == [0, -1, 0]
    assert classes.tolist() == ["a"]


def test_mixed_and_continuous_labels_are_errors() -> None:
    with pytest.raises(InputError, match="mixes labels of the types int, str"):
        encode_labels(np.array(["a", 1], dtype=object))
    with pytest.raises(InputError, match=r"continuous values such as 0\.5"):
        encode_labels([0.5, 1.0])
    with pytest.raises(InputError, match="one label for each example"):
        encode_labels(np.zeros((2, 2)))


def test_a_class_with_one_example_is_said() -> None:
    with pytest.warns(DataQualityWarning, match="One example only: 'b'"):
        encode_labels(["a", "a", "b"])


def test_fewer_examples_than_classes_is_said() -> None:
    with pytest.warns(DataQualityWarning, match="2 examples for 3 classes"):
        encode_labels(["a", "a"], classes=["a", "b", "c"])


def test_a_single_class_is_returned() -> None:
    assert encode_labels(["a", "a"])[1].tolist() == ["a"]
