import json
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bltm.core.errors import InputError
from bltm.data import as_source, encoder_from_json, fit_encoder
from bltm.data.encode_arrays import LARGEST

NUMBERS = st.floats(-1e9, 1e9) | st.just(float("nan"))


def encoded(X, rows=None, weights=None, new=None) -> np.ndarray:
    source = as_source(X)
    encoder = fit_encoder(source, rows, weights)
    return encoder.encode(source if new is None else as_source(new)).values.numpy()


def test_columns_are_standardised() -> None:
    X = np.random.default_rng(0).normal(5, 3, (100, 4))
    values = encoded(X)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, (X - X.mean(0)) / X.std(0), rtol=1e-4, atol=1e-5)


def test_missing_values_are_set_to_the_mean_and_marked_where_training_had_some() -> None:
    X = np.array([[1.0, 1.0], [3.0, np.nan], [5.0, 3.0]])
    np.testing.assert_allclose(encoded(X)[:, 1:], [[-1, 0], [0, 1], [1, 0]], atol=1e-6)
    values = encoded(X, new=np.array([[np.nan, np.nan]]))
    assert values.tolist() == [[0.0, 0.0, 1.0]]
    assert "1 columns have missing values" in fit_encoder(as_source(X)).notes[0]


def test_constant_and_empty_columns_carry_nothing_also_later() -> None:
    X = np.array([[0.1, np.nan, 1.0], [0.1, np.nan, 2.0], [0.1, np.nan, 3.0]])
    values = encoded(X, new=np.array([[7.0, 3.0, 2.0]]))
    assert values.tolist() == [[0.0, 0.0, 0.0, 0.0]]
    assert "2 of 3 columns are constant" in fit_encoder(as_source(X)).notes[0]


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 20), st.integers(1, 3)), elements=NUMBERS))
def test_inputs_are_finite_for_any_numbers(X: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(encoded(X)).all()


@pytest.mark.parametrize("size", [1e300, 1e-300, 5e-324])
def test_extreme_magnitudes_do_not_overflow(size: float) -> None:
    X = np.array([[size], [-size], [0.0]])
    values = encoded(X, new=np.array([[1e308], [size]]))
    assert np.isfinite(values).all()
    assert np.abs(values).max() <= LARGEST


@given(
    hnp.arrays(np.float64, (8, 2), elements=st.integers(-5, 5)),
    st.permutations(range(8)),
    st.lists(st.integers(0, 3), min_size=8, max_size=8).filter(any),
)
@settings(max_examples=50)
def test_statistics_depend_on_the_weighted_rows_in_their_order_only(X, order, weights) -> None:
    weight = np.array(weights, dtype=float)
    first = fit_encoder(as_source(X), np.arange(8), weight)
    place = np.argsort(order)
    second = fit_encoder(as_source(X[order]), place, weight)
    assert first.to_json() == second.to_json()
    repeated = np.repeat(X, weights, axis=0)
    np.testing.assert_allclose(first.mean, repeated.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(first.scale, repeated.std(axis=0), atol=1e-12)


@given(hnp.arrays(np.float64, (6, 3), elements=NUMBERS))
@settings(max_examples=50)
def test_encoders_survive_json_exactly(X: np.ndarray) -> None:
    encoder = fit_encoder(as_source(X))
    assert encoder_from_json(json.loads(json.dumps(encoder.to_json()))) == encoder


def test_another_number_of_columns_or_kind_is_an_error() -> None:
    encoder = fit_encoder(as_source(np.eye(2)))
    with pytest.raises(InputError, match="has 3 features, but the encoder was fitted on 2"):
        encoder.encode(as_source(np.eye(3)))
    with pytest.raises(InputError, match="array of numbers"):
        encoder.encode(as_source(np.zeros((2, 3, 3))))
    with pytest.raises(InputError, match="numbers only"):
        encoder.encode(as_source(pd.DataFrame({"a": ["x"], "b": [1]})))
    assert encoder.encode(as_source(pd.DataFrame({"a": [1], "b": [2]}))).shape == (2,)
    with pytest.raises(InputError, match="no examples"):
        fit_encoder(as_source(np.eye(2)), weights=[0, 0])


def test_batches_come_by_index_on_the_device() -> None:
    source = as_source(np.arange(10.0)[:, None])
    examples = fit_encoder(source).encode(source)
    batches = list(examples.batches(iter(torch.tensor([3, 1, 4]).split(2)), torch.device("cpu")))
    assert torch.equal(torch.cat(batches), examples.values[[3, 1, 4]])
