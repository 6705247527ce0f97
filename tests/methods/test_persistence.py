import json
import pickle
import pickletools
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import bltm
from bltm.core.errors import InputError
from bltm.methods.base import NoisyLabelClassifier
from bltm.methods.bltm.collect import ThresholdCollector

from .helpers import quick_bltm, quick_cross_entropy, same, sample

DATA = sample()


def small(n_outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, n_outputs))


def fitted(**parameters: Any) -> Any:
    return quick_bltm(**({"epochs": 8} | parameters)).fit(DATA.x, DATA.y_noisy)


def assert_same_model(one: NoisyLabelClassifier, other: NoisyLabelClassifier, x: Any) -> None:
    assert same(one.predict_proba(x), other.predict_proba(x))
    assert one.predict(x).tolist() == other.predict(x).tolist()
    assert one.predict(x).dtype == other.predict(x).dtype
    if one.transition_ is not None:
        assert same(np.asarray(one.predict_transition(x)), np.asarray(other.predict_transition(x)))


@pytest.mark.parametrize("revision", [True, False])
def test_a_loaded_model_predicts_the_same_bytes(revision: bool, tmp_path: Path) -> None:
    model = fitted(revision=revision, epochs=8)
    model.save(tmp_path)
    loaded = bltm.load(tmp_path)
    assert_same_model(model, loaded, DATA.x)
    assert loaded.get_params() == model.get_params()
    assert loaded.findings_ == model.findings_
    assert loaded.n_features_in_ == 2
    with pytest.raises(ValueError, match="features"):
        loaded.predict(np.zeros((3, 5)))


def test_a_loaded_baseline_has_no_transition(tmp_path: Path) -> None:
    model = quick_cross_entropy().fit(DATA.x, DATA.y_noisy)
    model.save(str(tmp_path))
    loaded = bltm.load(str(tmp_path))
    assert_same_model(model, loaded, DATA.x)
    with pytest.raises(InputError, match="does not estimate a transition matrix"):
        loaded.predict_transition(DATA.x)


@pytest.mark.parametrize(
    "names",
    [
        np.array(["ä", "b c", "1"], dtype=object),
        np.array(["x", "y", "z"]),
        np.array([-5, 10, 3]),
        np.array([1, 2, 3], dtype=np.int32),
        np.array([True, False, True]),
    ],
)
def test_classes_of_every_kind_come_back(names: np.ndarray, tmp_path: Path) -> None:
    model = quick_cross_entropy().fit(DATA.x, names[DATA.y_noisy])
    model.save(tmp_path)
    loaded = bltm.load(tmp_path)
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.classes_.dtype == model.classes_.dtype
    assert_same_model(model, loaded, DATA.x)


def test_a_model_of_a_table_matches_columns_by_name_after_loading(tmp_path: Path) -> None:
    frame = pd.DataFrame(DATA.x, columns=["a", "b"])
    frame["kind"] = np.where(DATA.y_clean == 0, "u", "v")
    model = quick_bltm().fit(frame, DATA.y_noisy)
    model.save(tmp_path)
    assert_same_model(model, bltm.load(tmp_path), frame)


def test_a_model_of_images_predicts_the_same_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=60)
    images = (rng.integers(0, 128, (60, 12, 12)) + 127 * labels[:, None, None]).astype(np.uint8)
    model = quick_bltm(epochs=4).fit(images, labels)
    model.save(tmp_path)
    assert_same_model(model, bltm.load(tmp_path), images)


def test_no_file_is_a_pickle(tmp_path: Path) -> None:
    fitted(net=small, lr=0.02).save(tmp_path)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["metadata.json", "model.safetensors"]
    assert isinstance(json.loads((tmp_path / "metadata.json").read_text()), dict)
    content = (tmp_path / "model.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    assert 8 + int.from_bytes(content[:8], "little") + max(ends) == len(content)
    for name in files:
        raw = (tmp_path / name).read_bytes()
        assert not raw.startswith((b"\x80", b"PK"))
        with pytest.raises(Exception, match=".*"):
            list(pickletools.genops(raw))


def test_parameters_that_are_no_plain_values_do_not_stop_saving(tmp_path: Path) -> None:
    model = fitted(
        classes=np.array([0, 1, 2]),
        collector=ThresholdCollector("mine", out_of_sample=False),
        random_state=np.random.RandomState(0),
        lr=np.float32(0.01),
    )
    model.save(tmp_path)
    loaded = bltm.load(tmp_path)
    assert_same_model(model, loaded, DATA.x)
    assert loaded.classes == [0, 1, 2]


def test_a_network_of_the_users_own_is_asked_for(tmp_path: Path) -> None:
    model = fitted(net=small, lr=0.02)
    model.save(tmp_path)
    with pytest.raises(InputError, match=r"load\(path, net=...\)"):
        bltm.load(tmp_path)
    assert_same_model(model, bltm.load(tmp_path, net=small), DATA.x)


def test_another_network_than_the_saved_one_is_refused(tmp_path: Path) -> None:
    fitted(net=small, lr=0.02).save(tmp_path)
    with pytest.raises(InputError, match="net"):
        bltm.load(tmp_path, net=lambda n_outputs: nn.Linear(2, n_outputs))


def test_loading_leaves_global_generators_alone(tmp_path: Path) -> None:
    fitted().save(tmp_path)
    before = torch.get_rng_state()
    bltm.load(tmp_path)
    assert torch.equal(torch.get_rng_state(), before)


def change(path: Path, **values: Any) -> None:
    metadata = json.loads((path / "metadata.json").read_text())
    (path / "metadata.json").write_text(json.dumps(metadata | values))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: (path / "metadata.json").unlink(),
        lambda path: (path / "model.safetensors").unlink(),
        lambda path: (path / "metadata.json").write_text("{"),
        lambda path: (path / "metadata.json").write_text("[]"),
        lambda path: (path / "metadata.json").write_bytes(b"\xff\xfe\x00"),
        lambda path: (path / "metadata.json").write_text('{"format": 1}'),
        lambda path: (path / "model.safetensors").write_bytes(b""),
        lambda path: change(path, format=99),
        lambda path: change(path, estimator="SomethingElse"),
        lambda path: change(path, parameters={"unknown": 1}),
    ],
    ids=[
        "no metadata",
        "no model",
        "metadata cut off",
        "metadata of another kind",
        "metadata not text",
        "metadata without entries",
        "empty model",
        "unknown format",
        "unknown estimator",
        "unknown parameter",
    ],
)
def test_damaged_models_are_refused_in_words(damage: Any, tmp_path: Path) -> None:
    quick_cross_entropy(epochs=1).fit(DATA.x, DATA.y_noisy).save(tmp_path)
    damage(tmp_path)
    with pytest.raises(InputError) as error:
        bltm.load(tmp_path)
    assert error.value.argument == "path"
    assert str(tmp_path) in str(error.value)


@pytest.mark.parametrize("position", [0.1, 0.5, 0.999])
def test_a_changed_byte_is_noticed(position: float, tmp_path: Path) -> None:
    quick_cross_entropy(epochs=1).fit(DATA.x, DATA.y_noisy).save(tmp_path)
    path = tmp_path / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[int(position * len(content))] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match="not the file that metadata.json describes"):
        bltm.load(tmp_path)


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no finished model"):
        bltm.load(tmp_path / "nothing")


def test_an_estimator_that_is_not_fitted_is_not_saved(tmp_path: Path) -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        quick_bltm().save(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("make", [quick_bltm, quick_cross_entropy])
def test_estimators_survive_pickling_in_memory(make: Any) -> None:
    model = make().fit(DATA.x, DATA.y_noisy)
    again = pickle.loads(pickle.dumps(model))
    assert_same_model(model, again, DATA.x)
    assert joblib.hash(make()) == joblib.hash(make())
