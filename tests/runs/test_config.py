"""The record of a run."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bltm.core.errors import InputError
from bltm.runs.config import RunConfig, parse_parameters


@given(
    seed=st.integers(0, 2**40),
    classes=st.none() | st.lists(st.text(), max_size=4).map(tuple),
    lr=st.none() | st.floats(1e-9, 1.0),
)
def test_config__through_json__is_the_same(
    seed: int, classes: tuple[str, ...] | None, lr: float | None
) -> None:
    config = RunConfig("x.csv", seed=seed, classes=classes, lr=lr, parameters={"rounds": 1})
    again = RunConfig.from_json(json.loads(json.dumps(config.to_json())))
    assert again == config
    assert config.differences(again) == []


def test_config__unknown_key__is_named() -> None:
    with pytest.raises(InputError, match=r"config\.json: has the unknown key 'sed'"):
        RunConfig.from_json({"data": "x.csv", "sed": 3})
    with pytest.raises(InputError, match="no key 'data'"):
        RunConfig.from_json({"seed": 3})


def test_differences__name_what_was_changed() -> None:
    first = RunConfig("a.csv", data_sha256="1")
    second = RunConfig("b.csv", data_sha256="2", epochs=3)
    assert first.differences(second) == ["epochs: not given, now 3", "the data has changed"]


def test_estimator__gets_what_was_given_and_its_own_defaults() -> None:
    config = RunConfig("x", seed=4, lr=0.5, classes=("a", "b"), parameters={"rounds": 1})
    parameters = config.make_estimator().get_params()
    assert (parameters["random_state"], parameters["lr"], parameters["rounds"]) == (4, 0.5, 1)
    assert parameters["classes"] == ["a", "b"]
    assert parameters["preset"] == "default"


@pytest.mark.parametrize("name", ["rho_max", "collector"])
def test_estimator__option_of_another_method__is_refused(name: str) -> None:
    value = 0.1 if name == "rho_max" else "covering"
    with pytest.raises(InputError, match=f"{name}: is not an option"):
        RunConfig("x", method="cross-entropy", **{name: value}).make_estimator()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("method", "parameters", "message"),
    [
        ("gce", {"q": "abc"}, "q: must be a number, got 'abc'"),
        ("gce", {"q": True}, "q: must be a number, got True"),
        ("gce", {"truncated": "yes"}, "truncated: must be true or false, got 'yes'"),
        ("mentornet", {"ramp": "slow"}, "set: ramp: a value is of the wrong kind"),
        ("gce", {"rate": 1}, "rate: is not an option.*q, threshold, truncated"),
    ],
)
def test_parameters__of_the_wrong_kind__are_refused(
    method: str, parameters: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        RunConfig("x.csv", method=method, parameters=parameters).make_estimator()


def test_parameters__reach_the_estimator() -> None:
    config = RunConfig("x.csv", method="gce", parameters=parse_parameters(["q=0.5"]))
    assert config.make_estimator().get_params()["q"] == 0.5
    with pytest.raises(InputError, match="set: needs NAME=VALUE, got 'q'"):
        parse_parameters(["q"])
