"""Bad input is refused with the argument, the value and a way out."""

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from bltm.core.errors import InputError
from bltm.noise import NOISE_MODELS, make_noise, option_names

X = np.random.default_rng(0).normal(size=(6, 2))
Y = [0, 1, 2, 0, 1, 2]
ETA = np.full((6, 3), 1 / 3)


def test_table_has_every_model():
    assert set(NOISE_MODELS) == {"instance", "symmetric", "pair", "asymmetric", "matrix", "pmd"}
    assert option_names("instance") == dict.fromkeys(
        ["rho_max", "sd", "feature_mode", "shared_w"], False
    )


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown model": ({"model": "idn"}, "model: .*'idn'.*instance, symmetric, pair"),
    "unknown option": ({"rho": 0.3}, "rho: is not an option.*rho_max, sd, feature_mode, shared_w"),
    "option of another model": ({"draws": "exact"}, "draws: is not an option"),
    "missing option": ({"model": "asymmetric"}, "mapping: is needed"),
    "seed": ({"seed": 0.5}, "seed: must be an integer, got 0.5"),
    "negative rate": ({"rate": -0.1}, r"rate: must lie in \[0, 0.6\], got -0.1"),
    "rate above rho_max": ({"rate": 0.7}, r"rate: must lie in \[0, 0.6\], got 0.7"),
    "percent": ({"model": "symmetric", "rate": 30}, "got 30.*write 30 % as 0.3"),
    "nan": ({"rate": float("nan")}, "rate: .*got nan"),
    "no rate": ({"rate": None}, "rate: must be a number.*got None"),
    "text": ({"rate": "0.3"}, "rate: must be a number.*'0.3'"),
    "pair at one half": ({"model": "pair", "rate": 0.5}, r"rate: must lie in \[0, 0.5\), got 0.5"),
    "rho_max": ({"rho_max": 1.5}, "rho_max: .*got 1.5"),
    "sd": ({"sd": 0.0}, "sd: must be positive, got 0"),
    "feature mode": ({"feature_mode": "pca"}, "feature_mode: .*'pca'.*raw255.*std_unit"),
    "negative label": ({"y": [0, -1, 2, 0, 1, 2]}, "y: .*got -1"),
    "float labels": ({"y": [0.0] * 6}, "y: needs integer codes.*float64"),
    "string labels": ({"y": list("abcabc")}, "y: needs integer codes"),
    "no labels": ({"y": np.zeros(0, dtype=int)}, "y: needs shape"),
    "label matrix": ({"y": np.zeros((6, 3), dtype=int)}, r"y: needs shape.*\(6, 3\)"),
    "too few classes": ({"n_classes": 2}, "n_classes: is 2 but y contains the label 2"),
    "one class": ({"y": [0] * 6}, "n_classes: must be at least 2, got 1"),
    "length": ({"x": X[:5]}, "x: has 5 examples but there are 6 labels"),
    "length of x not used": ({"model": "pair", "x": [[0.0]] * 5}, "x: has 5 examples"),
    "scalar": ({"x": np.float64(1.0)}, "x: has 0 examples"),
    "missing values": ({"x": np.full((6, 2), np.nan)}, "x: contains values that are not finite"),
    "no features": ({"x": np.zeros((6, 0))}, "x: needs at least one feature"),
    "x is None": ({"x": None}, "x: needs numbers"),
    "text features": ({"x": np.full((6, 2), "a")}, "x: needs numbers"),
    "draws": ({"model": "symmetric", "draws": "some"}, "draws: .*'some'.*bernoulli, exact"),
    "map name": ({"model": "asymmetric", "mapping": "stl10"}, "mapping: .*'stl10'.*cifar10"),
    "map size": ({"model": "asymmetric", "mapping": "mnist"}, "n_classes: is 3 .* 10 classes"),
    "map entry": ({"model": "asymmetric", "mapping": {0: 3}}, "mapping: .*0 -> 3"),
    "map to itself": ({"model": "asymmetric", "mapping": {1: 1}}, "mapping: .*1 -> 1"),
    "rate and matrix": ({"model": "matrix", "T": np.eye(3)}, "rate: must be None.*0.3"),
    "columns": (
        {"model": "matrix", "rate": None, "T": [[1, 1, 0.5], [0, 0, 0], [0, 0, 0.5]]},
        "T: .*row sum of.*transpose",
    ),
    "matrix size": ({"model": "matrix", "rate": None, "T": np.eye(2)}, "n_classes: is 2"),
    "other matrix size": (
        {"model": "matrix", "rate": None, "T": np.eye(2), "n_classes": 3},
        r"T: is \(2, 2\) but n_classes is 3",
    ),
    "matrices": (
        {"model": "matrix", "rate": None, "T": np.stack([np.eye(3)] * 2)},
        r"T: needs shape \(C, C\)",
    ),
    "kind": ({"model": "pmd", "eta": ETA, "kind": "IV"}, "kind: .*'IV'.*I, II, III"),
    "scale": ({"model": "pmd", "eta": ETA, "scale": "x"}, "scale: .*keep_div, tau_mul"),
    "rate and factor": ({"model": "pmd", "eta": ETA, "factor": 1.0}, "rate: is 0.3 and factor"),
    "factor": ({"model": "pmd", "eta": ETA, "rate": None, "factor": 0}, "factor: .*got 0"),
    "eta shape": ({"model": "pmd", "eta": ETA[:5]}, r"eta: needs shape \(6, 3\), got \(5, 3\)"),
    "eta sums": ({"model": "pmd", "eta": 2 * ETA}, "eta: needs rows that sum to 1"),
    "no eta, no x": ({"model": "pmd", "x": None}, "x: is None and so is eta"),
    "tiny class": ({"model": "pmd", "y": [0, 1, 1, 0, 1, 2]}, "y: .*smallest with 1 examples"),
}


@pytest.mark.parametrize("name", list(BAD))
def test_bad_input_is_refused(name: str):
    changes, message = BAD[name]
    arguments = {"x": X, "y": Y, "model": "instance", "rate": 0.3, "seed": 0} | changes
    with pytest.raises(InputError, match=message):
        make_noise(**arguments)


@pytest.mark.parametrize("index", [[6], [-1], 3, [[0]], [0.5], [True]])
def test_bad_indices_are_refused(index: Any):
    noisy = make_noise(X, Y, "instance", 0.3, 0)
    with pytest.raises(InputError, match="index"):
        noisy.transition(index)


def test_record_is_frozen():
    noisy = make_noise(X, Y, "instance", 0.3, 0)
    with pytest.raises(FrozenInstanceError):
        noisy.q = noisy.q + 1


def test_record_without_transition_says_so():
    noisy = make_noise(X, Y, "instance", 0.3, 0)
    bare = type(noisy)(noisy.y_noisy, noisy.row, noisy.q, noisy.T, noisy.meta)
    with pytest.raises(InputError, match="transition: is not defined"):
        bare.transition([0])
