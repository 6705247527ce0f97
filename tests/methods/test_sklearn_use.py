"""Estimators as scikit-learn users use them."""

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import TensorDataset

from bltm.core.errors import InputError
from bltm.engine.devices import PRECISIONS
from bltm.methods.bltm import BLTMClassifier
from bltm.methods.cross_entropy import CrossEntropyClassifier
from bltm.nets.ensemble import last_member

from .helpers import quick_bltm, quick_cross_entropy, same, sample

NAMES = np.array(["north", "east", "west"], dtype=object)
QUICK = [quick_cross_entropy, quick_bltm]


@pytest.mark.parametrize("make", QUICK)
def test_a_clone_fits_to_the_same_bytes(make: Any) -> None:
    data = sample()
    model = make().fit(data.x, data.y_noisy)
    again = clone(model)
    assert not hasattr(again, "classes_")
    assert again.get_params() == model.get_params()
    again.fit(data.x, data.y_noisy)
    assert same(model.predict_proba(data.x), again.predict_proba(data.x))


def test_parameters_set_later_are_those_that_count() -> None:
    data = sample()
    model = quick_cross_entropy().set_params(epochs=1, batch_size=60)
    model.fit(data.x, data.y_noisy)
    assert len(model.history_) == 1


def test_a_pipeline_scales_trains_and_predicts() -> None:
    data = sample()
    pipeline = make_pipeline(StandardScaler(), quick_bltm(epochs=8))
    pipeline.fit(data.x, data.y_noisy)
    assert (pipeline.predict(data.x) == data.y_bayes).mean() > 0.8


def test_a_grid_search_compares_settings() -> None:
    data = sample()
    search = GridSearchCV(
        quick_bltm(), {"revision": [True, False], "rho_max": [0.1, 0.5]}, cv=2, error_score="raise"
    )
    search.fit(data.x, data.y_noisy)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_score_ > 0.3
    assert search.predict(data.x).shape == (120,)


def test_cross_validation_gives_a_score_for_each_fold() -> None:
    data = sample()
    scores = cross_val_score(quick_cross_entropy(epochs=8), data.x, data.y_noisy, cv=3)
    assert scores.shape == (3,)
    assert scores.mean() > 0.5


@pytest.mark.parametrize("make", QUICK)
def test_a_table_in_and_strings_out(make: Any) -> None:
    data = sample()
    frame = pd.DataFrame(data.x, columns=["length", "width"])
    frame["colour"] = np.where(data.y_clean == 0, "red", "blue")
    model = make(epochs=20).fit(frame, pd.Series(NAMES[data.y_noisy]))
    assert model.classes_.tolist() == ["east", "north", "west"]
    assert model.feature_names_in_.tolist() == ["length", "width", "colour"]
    predicted = model.predict(frame)
    assert set(predicted) <= set(NAMES)
    assert (predicted == NAMES[data.y_bayes]).mean() > 0.6
    np.testing.assert_allclose(model.predict_proba(frame).sum(axis=1), 1.0)


def test_array_and_table_of_the_same_numbers_give_the_same_model() -> None:
    data = sample()
    whole = np.round(data.x * 10)
    model = quick_cross_entropy()
    expected = clone(model).fit(whole, data.y_noisy).predict_proba(whole)
    for X in (whole.astype(np.int64), whole.astype(np.float32), pd.DataFrame(whole)):
        found = clone(model).fit(X, data.y_noisy).predict_proba(X)
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("make", QUICK)
def test_a_weight_of_two_is_a_row_given_twice(make: Any) -> None:
    data = sample(80)
    weights = np.where(np.arange(80) < 20, 2.0, 1.0)
    weighted = make().fit(data.x, data.y_noisy, sample_weight=weights)
    x, y = np.vstack([data.x, data.x[:20]]), np.concatenate([data.y_noisy, data.y_noisy[:20]])
    repeated = make().fit(x, y)
    assert same(weighted.predict_proba(data.x), repeated.predict_proba(data.x))
    unweighted = make().fit(data.x, data.y_noisy)
    assert not same(weighted.predict_proba(data.x), unweighted.predict_proba(data.x))


@pytest.mark.parametrize("make", QUICK)
def test_a_weight_of_zero_is_a_row_left_out(make: Any) -> None:
    data = sample(80)
    labels = data.y_noisy.copy()
    labels[:10] = 7
    weights = np.where(np.arange(80) < 10, 0.0, 1.0)
    weighted = make().fit(data.x, labels, sample_weight=weights)
    without = make().fit(data.x[10:], labels[10:])
    assert weighted.classes_.tolist() == [0, 1, 2]
    assert same(weighted.predict_proba(data.x), without.predict_proba(data.x))


@pytest.mark.parametrize("make", QUICK)
def test_the_order_of_the_rows_does_not_matter(make: Any) -> None:
    data = sample()
    order = np.random.default_rng(1).permutation(120)
    one = make().fit(data.x, data.y_noisy)
    other = make().fit(data.x[order], data.y_noisy[order])
    assert same(one.predict_proba(data.x), other.predict_proba(data.x))


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        (np.ones(5), "has shape"),
        (np.full(120, -1.0), "non-negative"),
        (np.zeros(120), "not all zero"),
        (np.full(120, np.nan), "finite"),
    ],
)
def test_impossible_weights_are_refused(weights: np.ndarray, problem: str) -> None:
    data = sample()
    with pytest.raises(InputError, match=problem) as error:
        quick_cross_entropy().fit(data.x, data.y_noisy, sample_weight=weights)
    assert error.value.argument == "sample_weight"


@pytest.mark.parametrize("make", QUICK)
def test_a_class_without_examples_has_a_column(make: Any) -> None:
    data = sample()
    model = make(classes=[0, 1, 2, 9]).fit(data.x, data.y_noisy)
    assert model.classes_.tolist() == [0, 1, 2, 9]
    probs = model.predict_proba(data.x)
    assert probs.shape == (120, 4)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0)
    assert 9 not in model.predict(data.x)


def test_a_label_that_is_no_named_class_is_refused() -> None:
    data = sample()
    with pytest.raises(InputError, match="classes"):
        quick_cross_entropy(classes=[0, 1]).fit(data.x, data.y_noisy)


def test_an_infinite_label_is_refused_in_words() -> None:
    with pytest.raises(InputError, match="y: has infinite values"):
        quick_cross_entropy().fit(np.zeros((4, 2)), np.array([0.0, 1.0, np.inf, 1.0]))


def test_one_class_is_refused() -> None:
    with pytest.raises(InputError, match="one class only"):
        quick_cross_entropy().fit(np.zeros((4, 2)), np.zeros(4, dtype=int))


def fitted_proba(random_state: Any) -> np.ndarray:
    data = sample()
    model = quick_cross_entropy(random_state=random_state).fit(data.x, data.y_noisy)
    return model.predict_proba(data.x)


def test_random_state_is_used_as_everywhere_in_scikit_learn() -> None:
    assert same(fitted_proba(3), fitted_proba(3))
    assert same(fitted_proba(np.int64(3)), fitted_proba(3))
    assert not same(fitted_proba(3), fitted_proba(4))
    assert not same(fitted_proba(None), fitted_proba(None))
    one, other = np.random.RandomState(5), np.random.RandomState(5)
    first = fitted_proba(one)
    assert same(first, fitted_proba(other))
    assert not same(first, fitted_proba(one))  # a generator moves on


@pytest.mark.parametrize("value", [-1, "seed", 1.5])
def test_an_impossible_random_state_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="random_state"):
        fitted_proba(value)


def test_no_global_generator_moves_during_fit_and_predict() -> None:
    data = sample(60)
    torch_before = torch.get_rng_state()
    numpy_before = np.random.get_state()[1].copy()  # type: ignore[union-attr] # noqa: NPY002
    model = quick_bltm().fit(data.x, data.y_noisy)
    model.predict(data.x)
    model.predict_transition(data.x)
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert (np.random.get_state()[1] == numpy_before).all()  # type: ignore[index] # noqa: NPY002


def test_progress_goes_to_stderr_and_names_every_stage(capsys: pytest.CaptureFixture[str]) -> None:
    data = sample()
    quick_bltm(verbose=1, epochs=8).fit(data.x, data.y_noisy)
    out, err = capsys.readouterr()
    assert out == ""
    for stage in ("warm_up/fold-1", "warm_up/fold-2", "round-1/transition", "round-1/correct"):
        assert f"{stage}: epoch 8/8, loss" in err
    quick_bltm().fit(data.x, data.y_noisy)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    data = sample(60)
    quick_cross_entropy(verbose=1).fit(data.x, data.y_noisy)
    assert "cross_entropy" in terminal.getvalue()
    assert "loss" in terminal.getvalue()


def test_a_torch_data_set_brings_its_own_labels() -> None:
    data = sample()
    x = torch.from_numpy(data.x.astype(np.float32))
    dataset = TensorDataset(x, torch.from_numpy(data.y_noisy))
    from_dataset = quick_cross_entropy().fit(dataset)
    from_arrays = quick_cross_entropy().fit(x.numpy(), data.y_noisy)
    assert same(from_dataset.predict_proba(dataset), from_arrays.predict_proba(x.numpy()))


@pytest.mark.parametrize("make", QUICK)
def test_images_as_a_tensor_are_channels_first(make: Any) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=60)
    images = rng.integers(0, 100, (60, 3, 8, 10)).astype(np.uint8)
    images[labels == 1, 0] += 100
    model = make(epochs=8).fit(torch.from_numpy(images), labels)
    assert model.input_shape_ == (3, 8, 10)
    assert model.score(torch.from_numpy(images), labels) > 0.8
    channels_last = images.transpose(0, 2, 3, 1)
    other = make(epochs=8).fit(channels_last, labels)
    assert same(other.predict_proba(channels_last), model.predict_proba(torch.from_numpy(images)))


@pytest.mark.parametrize("make", QUICK)
def test_a_network_of_the_users_own_is_trained(make: Any) -> None:
    asked: list[int] = []

    def factory(n_outputs: int) -> nn.Module:
        asked.append(n_outputs)
        return nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, n_outputs))

    data = sample()
    model = make(net=factory, epochs=15, lr=0.02).fit(data.x, data.y_noisy)
    assert 3 in asked
    assert isinstance(last_member(model.classifier_), nn.Sequential)
    assert (model.predict(data.x) == data.y_bayes).mean() > 0.6


def test_an_unknown_network_is_refused() -> None:
    data = sample()
    with pytest.raises(InputError, match="no network 'vgg'"):
        quick_cross_entropy(net="vgg").fit(data.x, data.y_noisy)


def test_training_starts_from_the_users_weights(tmp_path: Path) -> None:
    data = sample()
    trained = quick_cross_entropy(epochs=15).fit(data.x, data.y_noisy)
    torch.save(trained.classifier_.state_dict(), tmp_path / "weights.pt")
    started = quick_cross_entropy(weights=tmp_path / "weights.pt", epochs=0)
    started.fit(data.x, data.y_noisy)
    assert same(started.predict_proba(data.x), trained.predict_proba(data.x))
    model = quick_bltm(weights=str(tmp_path / "weights.pt"), epochs=1).fit(data.x, data.y_noisy)
    assert (model.predict(data.x) == data.y_bayes).mean() > 0.8


@pytest.mark.parametrize("make", QUICK)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.filterwarnings("ignore:You passed .Fabric:UserWarning")
def test_every_precision_trains(make: Any, precision: str) -> None:
    data = sample()
    model = make(precision=precision, epochs=8).fit(data.x, data.y_noisy)
    assert (model.predict(data.x) == data.y_bayes).mean() > 0.6
    assert model.predict_proba(data.x).dtype == np.float64


@pytest.mark.parametrize("X", [torch.from_numpy(sample().x), sample().x.tolist()])
def test_tensors_and_lists_are_arrays(X: Any) -> None:
    data = sample()
    expected = quick_bltm().fit(data.x, data.y_noisy).predict_proba(data.x)
    assert same(quick_bltm().fit(X, data.y_noisy.tolist()).predict_proba(X), expected)


def test_missing_values_are_used() -> None:
    data = sample()
    x = data.x.copy()
    x[::7, 0] = np.nan
    model = quick_bltm(epochs=8).fit(x, data.y_noisy)
    assert np.isfinite(model.predict_proba(x)).all()


def test_what_was_found_is_told_in_plain_values() -> None:
    data = sample()
    model = quick_bltm(epochs=8).fit(data.x, data.y_noisy)
    findings = model.findings_
    assert findings["examples"] == 120
    assert findings["training_examples"] + findings["validation_examples"] == 120
    assert findings["collected"] == sum(findings["coverage"]) == len(model.collected_)
    assert 0.0 <= findings["noise_rate"] <= 1.0
    assert findings["predicted_classes"] in (1, 2, 3)
    stages = list(dict.fromkeys(line["stage"] for line in model.history_))
    assert stages == [
        "warm_up/fold-1",
        "warm_up/fold-2",
        "round-1/transition",
        "round-1/correct",
        "round-1/correct-2",
        "revise",
    ]


@pytest.mark.parametrize("kind", [CrossEntropyClassifier, BLTMClassifier])
def test_the_plan_tells_the_stages_that_are_run(kind: Any) -> None:
    data = sample()
    model = kind(epochs=4, batch_size=16, random_state=0)
    planned = [stage.stage for stage in model.plan(108)]
    model.fit(data.x, data.y_noisy)
    stages = list(dict.fromkeys(line["stage"] for line in model.history_))
    assert len(planned) == len(stages)
    for short, full in zip(planned, stages, strict=True):
        assert short in full
