"""predict_transition: T*(x) of each example, whole or in parts."""

import numpy as np
import pytest

from bltm.core.errors import InputError
from bltm.methods import transitions

from .helpers import quick_bltm, quick_cross_entropy, sample

NAMES = np.array(["north", "east", "west"], dtype=object)
DATA = sample()


@pytest.fixture(scope="module", params=[True, False], ids=["revised", "plain"])
def model(request: pytest.FixtureRequest):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return quick_bltm(epochs=8, revision=request.param).fit(DATA.x, NAMES[DATA.y_noisy])


def test_whole_matrices_have_rows_that_sum_to_one(model) -> None:
    T = model.predict_transition(DATA.x)
    assert T.shape == (120, 3, 3)
    assert T.dtype == np.float32
    assert (T >= 0).all()
    np.testing.assert_allclose(T.sum(axis=2), 1.0, atol=1e-5)


def test_rows_of_predicted_labels_are_rows_of_the_whole(model) -> None:
    T = model.predict_transition(DATA.x)
    code = model.predict_proba(DATA.x).argmax(axis=1)
    rows = model.predict_transition(DATA.x, rows="predicted")
    np.testing.assert_array_equal(rows, T[np.arange(120), code])


def test_rows_of_given_labels_are_rows_of_the_whole(model) -> None:
    T = model.predict_transition(DATA.x)
    labels = NAMES[DATA.y_bayes]
    rows = model.predict_transition(DATA.x, rows=labels)
    code = np.searchsorted(model.classes_.astype(str), labels.astype(str))
    np.testing.assert_array_equal(rows, T[np.arange(120), code])


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_top_of_each_row_agrees_with_the_whole(model, k: int) -> None:
    T = model.predict_transition(DATA.x)
    top = model.predict_transition(DATA.x, top_k=k)
    assert top.labels.shape == top.probs.shape == (120, 3, k)
    np.testing.assert_array_equal(top.probs, -np.sort(-T, axis=2)[..., :k])
    codes = np.searchsorted(model.classes_.astype(str), top.labels.astype(str))
    np.testing.assert_array_equal(np.take_along_axis(T, codes, axis=2), top.probs)
    rows = model.predict_transition(DATA.x, rows="predicted", top_k=k)
    assert rows.probs.shape == (120, k)
    code = model.predict_proba(DATA.x).argmax(axis=1)
    np.testing.assert_array_equal(rows.probs, top.probs[np.arange(120), code])


@pytest.mark.parametrize("k", [0, -1, 4])
def test_an_impossible_top_is_refused(model, k: int) -> None:
    with pytest.raises(InputError, match=rf"top_k: must lie in 1..3, got {k}"):
        model.predict_transition(DATA.x, top_k=k)


def test_labels_that_do_not_fit_are_refused(model) -> None:
    with pytest.raises(InputError, match="rows: has length 2 but there are 120 examples"):
        model.predict_transition(DATA.x, rows=["north", "east"])
    with pytest.raises(InputError, match="'south'"):
        model.predict_transition(DATA.x, rows=["south"] * 120)


def test_a_result_too_large_is_refused_with_a_way_out(
    model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transitions, "LARGEST", 4 * 120 * 3 * 3 - 1)
    with pytest.raises(InputError, match=r"\(120, 3, 3\).*rows='predicted'.*top_k"):
        model.predict_transition(DATA.x)
    assert model.predict_transition(DATA.x, rows="predicted").shape == (120, 3)
    assert model.predict_transition(DATA.x, top_k=2).probs.shape == (120, 3, 2)


def test_a_thousand_classes_for_many_examples_are_refused_before_any_memory_is_taken() -> None:
    with pytest.raises(InputError, match="37.3 GiB"):
        transitions.gather_transitions([], 10_000, np.arange(1000), None, None)


def test_a_method_without_transition_says_so() -> None:
    model = quick_cross_entropy(epochs=1).fit(DATA.x, DATA.y_noisy)
    with pytest.raises(InputError, match="CrossEntropyClassifier does not estimate"):
        model.predict_transition(DATA.x)
