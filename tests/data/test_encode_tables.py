import datetime
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bltm.core.errors import InputError
from bltm.data import as_source, encoder_from_json, fit_encoder, open_source


def fit(frame: pd.DataFrame, **options):
    return fit_encoder(as_source(frame), **options)


def encoded(frame: pd.DataFrame, new: pd.DataFrame | None = None) -> np.ndarray:
    return fit(frame).encode(as_source(frame if new is None else new)).values.numpy()


def kinds(frame: pd.DataFrame) -> dict[str, str]:
    return {column.name: column.kind for column in fit(frame).columns}


def mixed(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "whole": rng.integers(0, 9, n),
            "truth": rng.random(n) < 0.5,
            "maybe": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "nullable": pd.array([None, *rng.integers(0, 9, n - 1)], dtype="Int64"),
            "text_number": [f" {v:.2f}" for v in rng.normal(size=n)],
            "colour": rng.choice(["red", "blue", "green"], n),
            "cat": pd.Categorical(rng.choice([1.0, 2.0], n)),
            "stamp": pd.date_range("2024-01-01", periods=n, tz="Europe/Berlin"),
            "day": [f"2024-03-{i % 28 + 1:02d}" for i in range(n)],
            "period": pd.period_range("2020-01", periods=n, freq="M"),
            "object_day": [datetime.date(2024, 1, i % 28 + 1) for i in range(n)],
            "length": pd.to_timedelta(rng.integers(0, 9, n), unit="D"),
            "object_truth": np.array([True, None] * (n // 2), dtype=object),
            "same": ["x"] * n,
            "nothing": [None] * n,
        }
    )


def test_columns_are_recognised_and_all_treatment_is_said() -> None:
    frame = mixed()
    assert kinds(frame) == {
        "number": "number", "whole": "number", "truth": "boolean", "maybe": "boolean",
        "nullable": "number", "text_number": "number", "colour": "category", "cat": "category",
        "stamp": "date", "day": "date", "period": "date", "object_day": "date",
        "length": "number", "object_truth": "boolean",
    }  # fmt: skip
    notes = " ".join(fit(frame).notes)
    for name in frame.columns:
        assert f"'{name}'" in notes
    assert "'same' (constant)" in notes
    assert "'nothing' (empty)" in notes
    values = encoded(frame)
    assert np.isfinite(values).all()
    assert values.shape[1:] == fit(frame).shape


def test_numbers_are_standardised_and_missing_ones_marked() -> None:
    frame = pd.DataFrame({"a": [1.0, 3.0, np.nan]})
    assert encoded(frame).tolist() == [[-1, 0], [1, 0], [0, 1]]
    assert "'a' (1 missing)" in fit(frame).notes[0]
    assert encoded(frame.dropna(), frame).tolist() == [[-1], [1], [0]]


def test_a_few_words_among_numbers_count_as_missing_and_are_said() -> None:
    frame = pd.DataFrame({"a": [*map(str, range(39)), "?"]})
    encoder = fit(frame)
    assert encoder.columns[0].kind == "number"
    assert "1 missing, of them 1 that are no numbers" in encoder.notes[0]


def test_infinity_is_an_error_that_names_the_column() -> None:
    with pytest.raises(InputError, match="column 'b': contains infinity"):
        fit(pd.DataFrame({"a": [1, 2], "b": [1.0, np.inf]}))


def test_categories_get_an_input_each_and_missing_ones_their_own() -> None:
    frame = pd.DataFrame({"c": ["b", "a", "b", None, "a", "b"]})
    assert encoded(frame).tolist() == [
        [1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0],
    ]  # fmt: skip
    assert encoded(frame, pd.DataFrame({"c": ["zebra"]})).tolist() == [[0, 0, 0]]


def test_rare_and_unseen_categories_share_an_input() -> None:
    frame = pd.DataFrame({"c": ["a"] * 10 + ["b"] * 10 + ["once", "twice?"]})
    encoder = fit(frame)
    assert encoder.columns[0].levels == ("a", "b")
    new = as_source(pd.DataFrame({"c": ["a", "once", "new", None]}))
    assert encoder.encode(new).values.tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]]
    assert "2 rare ones together" in encoder.notes[0]


def test_many_categories_are_cut_at_fifty_by_frequency() -> None:
    values = [f"level {i}" for i in range(80) for _ in range(2 + (i < 50))]
    column = fit(pd.DataFrame({"c": values})).columns[0]
    assert set(column.levels) == {f"level {i}" for i in range(50)}
    assert column.other


def test_free_text_is_dropped_and_said() -> None:
    frame = pd.DataFrame({"a": range(80), "remark": [f"remark number {i}" for i in range(80)]})
    assert "Not learned from: 'remark' (text, 80 different values)." in fit(frame).notes


def test_ids_are_never_learned_from() -> None:
    frame = pd.DataFrame(
        {"id": range(9), "order_id": range(9), "a": np.arange(9) % 3, "b": np.arange(9) % 2}
    )
    source = as_source(frame)
    assert source.id_name == "id"
    encoder = fit_encoder(source)
    assert [column.name for column in encoder.columns] == ["a", "b"]
    assert "Not learned from: 'order_id' (an id)." in encoder.notes
    one = as_source(pd.DataFrame({"a": [1], "b": [0]}))
    assert encoder.encode(one).shape == (2,)


def test_an_input_that_looks_like_an_id_only_at_prediction_is_still_used() -> None:
    train = pd.DataFrame({"id": [1, 1, 2, 2], "b": [0, 1, 0, 1]})
    encoder = fit(train)
    assert encoder.encode(as_source(pd.DataFrame({"b": [1, 1], "id": [2, 1]}))).values.tolist() == [
        [1, 1], [-1, 1],
    ]  # fmt: skip


def test_dates_become_days_and_cycles() -> None:
    frame = pd.DataFrame({"d": ["2024-01-01", "2024-07-01T12:00:00Z", None]})
    values = encoded(frame)
    assert values.shape == (3, 6)
    np.testing.assert_allclose(values[0, :4], [0, 1, 0, 1], atol=1e-6)
    np.testing.assert_allclose(values[1, :2], [0, -1], atol=1e-6)
    np.testing.assert_allclose(values[:, 4], [-1, 1, 0], atol=1e-6)
    assert values[:, 5].tolist() == [0, 0, 1]
    assert values[2, :4].tolist() == [0, 0, 0, 0]


def test_dates_mean_the_same_in_every_form() -> None:
    texts = ["2024-01-05", "2024-02-10", "2024-11-30"]
    expected = encoded(pd.DataFrame({"d": texts}))
    for other in (
        [text.replace("-", "/") for text in texts],
        pd.to_datetime(texts),
        pd.to_datetime(texts).as_unit("s"),
        pd.to_datetime(texts, utc=True),
        [datetime.date.fromisoformat(text) for text in texts],
        [datetime.datetime.fromisoformat(text) for text in texts],
    ):
        np.testing.assert_allclose(encoded(pd.DataFrame({"d": other})), expected, atol=1e-6)


def test_columns_are_matched_by_name_and_extra_ones_noted() -> None:
    frame = mixed()
    encoder = fit(frame)
    shuffled = frame[list(frame.columns[::-1])].assign(surplus=1)
    examples = encoder.encode(as_source(shuffled))
    np.testing.assert_array_equal(examples.values, encoder.encode(as_source(frame)).values)
    assert examples.notes == ("Ignored columns that training did not have: surplus.",)
    unused = frame.drop(columns=["same", "nothing"])
    np.testing.assert_array_equal(encoder.encode(as_source(unused)).values, examples.values)
    with pytest.raises(InputError, match="lacks the columns 'whole', 'colour'"):
        encoder.encode(as_source(frame.drop(columns=["whole", "colour"])))


def test_arrays_are_matched_by_position() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [3.0, 5.0]})
    encoder = fit(frame)
    examples = encoder.encode(as_source(frame.to_numpy()))
    np.testing.assert_array_equal(examples.values, encoder.encode(as_source(frame)).values)
    assert "no column names" in examples.notes[0]
    with pytest.raises(InputError, match="trained on a table"):
        encoder.encode(as_source(np.eye(3)))


def test_a_table_with_nothing_to_learn_from_is_an_error() -> None:
    with pytest.raises(InputError, match=r"no column to learn from: 'a' \(constant\)"):
        fit(pd.DataFrame({"a": [1, 1]}))
    with pytest.raises(InputError, match="none at all"):
        fit(pd.DataFrame(index=[0, 1]))


def test_values_of_another_type_at_prediction_are_read_as_in_training() -> None:
    frame = pd.DataFrame({"n": [1, 2, 3, 4], "c": ["1", "x", "1", "x"]})
    encoder = fit(frame)
    text = pd.DataFrame({"n": ["1", "word"], "c": [1, 1.0]})
    assert encoder.encode(as_source(text)).values[:, 1:].tolist() == [[1, 0], [1, 0]]
    assert encoder.encode(as_source(text)).values[1, 0] == 0.0


@given(
    st.lists(
        st.tuples(
            st.none() | st.floats(-1e6, 1e6),
            st.none() | st.sampled_from(["a", "b", "ü", ""]),
            st.none() | st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)),
            st.booleans(),
        ),
        min_size=2,
        max_size=30,
    ),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60, deadline=None)
def test_json_and_order_leave_encoders_as_they_are(rows: list, random) -> None:
    frame = pd.DataFrame(rows, columns=["n", "c", "d", "b"]).assign(vary=np.arange(len(rows)) % 2)
    encoder = fit(frame)
    again = encoder_from_json(json.loads(json.dumps(encoder.to_json(), allow_nan=False)))
    assert again == encoder
    order = list(range(len(rows)))
    random.shuffle(order)
    place = np.argsort(order)
    other = fit_encoder(as_source(frame.iloc[order]), rows=place)
    assert other == encoder
    values = encoder.encode(as_source(frame)).values.numpy()
    assert np.isfinite(values).all()
    np.testing.assert_array_equal(other.encode(as_source(frame.iloc[order])).values, values[order])


def test_a_csv_file_and_its_frame_are_encoded_alike(tmp_path: Path) -> None:
    frame = mixed()[["number", "whole", "colour", "day", "truth", "nullable"]]
    frame.assign(label=0).to_csv(tmp_path / "t.csv", index=False)
    source = open_source(tmp_path / "t.csv", label="label")
    np.testing.assert_allclose(fit_encoder(source).encode(source).values, encoded(frame), atol=1e-5)


def test_only_the_given_rows_are_learned_from() -> None:
    frame = pd.DataFrame({"a": [1.0, 3.0, 99.0], "c": ["x", "y", "z"]})
    encoder = fit(frame, rows=[0, 1], weights=[3.0, 1.0])
    assert encoder.columns[0].mean == 1.5
    assert encoder.columns[1].levels == ("x", "y")
