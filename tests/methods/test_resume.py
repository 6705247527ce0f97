"""A fit of BLTM that is stopped anywhere and started again ends with the same bytes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

from bltm.data.source import as_source
from bltm.engine.store import DirectoryStore
from bltm.engine.workbench import Interrupted, Workbench
from bltm.methods.bltm import BLTMClassifier
from engine.helpers import weights_of

from .helpers import sample

DATA = sample(140)


def net(n_outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, n_outputs)
    )


def make(**parameters: Any) -> BLTMClassifier:
    settings: dict[str, Any] = {
        "epochs": 4,
        "lr": 0.05,
        "batch_size": 32,
        "rho_max": 0.0,
        "folds": 2,
        "rounds": 2,
        "random_state": 0,
    }
    return BLTMClassifier(net, **(settings | parameters))


def fit(
    model: BLTMClassifier, directory: Path | None, stop: Callable[[], bool] | None = None
) -> BLTMClassifier:
    def workbench(**parts: Any) -> Workbench:
        if directory is not None:
            parts["store"] = DirectoryStore(directory / "state", directory / "history.jsonl")
        if stop is not None:
            parts["stop_requested"] = stop
        return Workbench(**parts)

    source = as_source(DATA.x, DATA.y_noisy)
    return model.fit_source(source, workbench)


def counting(limit: int | None = None) -> Any:
    class Count:
        steps = 0

        def __call__(self) -> bool:
            self.steps += 1
            return limit is not None and self.steps >= limit

    return Count()


def outcome(model: BLTMClassifier) -> Any:
    assert model.transition_ is not None
    history = [{k: v for k, v in line.items() if k != "seconds"} for line in model.history_]
    findings = {k: v for k, v in model.findings_.items() if k != "seconds"}
    return (
        weights_of(model.classifier_),
        weights_of(model.transition_),
        model.posterior_.probs.tobytes(),
        model.collected_.indices.tolist(),
        model.collected_.bayes_labels.tolist(),
        history,
        findings,
    )


@pytest.fixture(scope="module")
def whole() -> tuple[Any, int]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        count = counting()
        return outcome(fit(make(), None, count)), count.steps


def test_a_directory_changes_nothing(whole: tuple[Any, int], tmp_path: Path) -> None:
    expected, _ = whole
    assert outcome(fit(make(), tmp_path)) == expected


def test_a_stop_at_any_step_of_any_stage_changes_nothing(
    whole: tuple[Any, int], tmp_path: Path
) -> None:
    expected, steps = whole
    stages = [line["stage"] for line in expected[5]]
    assert list(dict.fromkeys(stages)) == [
        "warm_up/fold-1",
        "warm_up/fold-2",
        "round-1/transition",
        "round-1/correct",
        "round-2/transition",
        "round-2/correct",
        "round-2/correct-2",
        "revise",
    ]
    for limit in range(1, steps + 1, 5):
        directory = tmp_path / str(limit)
        with pytest.raises(Interrupted):
            fit(make(), directory, counting(limit))
        count = counting()
        assert outcome(fit(make(), directory, count)) == expected, f"stopped after step {limit}"
        assert count.steps == steps - limit


def test_a_run_stopped_again_and_again_ends_the_same(
    whole: tuple[Any, int], tmp_path: Path
) -> None:
    expected, steps = whole
    done = 0
    while done + 3 <= steps:
        with pytest.raises(Interrupted):
            fit(make(), tmp_path, counting(3))
        done += 3
    assert outcome(fit(make(), tmp_path)) == expected


def test_a_crash_between_any_two_files_changes_nothing(
    whole: tuple[Any, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process may die before each write; what was written before is all that is left."""
    expected, _ = whole
    writes = 0

    class Crash(Exception):
        pass

    original = DirectoryStore.save

    def save(self: DirectoryStore, name: str, artifact: Any) -> None:
        nonlocal writes
        writes += 1
        if writes % 2 == 0:
            raise Crash
        original(self, name, artifact)

    monkeypatch.setattr(DirectoryStore, "save", save)
    for _ in range(40):
        try:
            model = fit(make(), tmp_path)
            break
        except Crash:
            continue
    assert writes > 10
    assert outcome(model) == expected


def test_a_finished_run_makes_no_step_again(whole: tuple[Any, int], tmp_path: Path) -> None:
    expected, _ = whole
    fit(make(), tmp_path)
    count = counting()
    assert outcome(fit(make(), tmp_path, count)) == expected
    assert count.steps == 0
    names = [path.name for path in (tmp_path / "state").iterdir()]
    assert all(name.endswith(".safetensors") and "partial" not in name for name in names)


@pytest.mark.parametrize("preset", ["paper", "authors"])
@pytest.mark.filterwarnings("ignore::bltm.core.errors.CollapseWarning")
def test_published_presets_resume_as_well(preset: str, tmp_path: Path) -> None:
    model = {"preset": preset, "epochs": 2, "rounds": None, "folds": None}
    count = counting()
    expected = outcome(fit(make(**model), None, count))
    for limit in range(2, count.steps, 7):
        directory = tmp_path / str(limit)
        with pytest.raises(Interrupted):
            fit(make(**model), directory, counting(limit))
        assert outcome(fit(make(**model), directory)) == expected


def test_a_model_of_the_users_own_is_fitted_once(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression

    fits = []

    class Watched(LogisticRegression):  # type: ignore[misc]
        def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: Any = None) -> Any:
            fits.append(len(X))
            return super().fit(X, y, sample_weight)

    first = fit(make(posterior=Watched()), tmp_path)
    assert len(fits) == 2
    assert outcome(fit(make(posterior=Watched()), tmp_path)) == outcome(first)
    assert len(fits) == 2
