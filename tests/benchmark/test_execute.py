"""One run: its row, its honesty, and that it goes on after a crash."""

import copy
import gc
import json
import warnings
from dataclasses import replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bltm.benchmark.cells import open_cell
from bltm.benchmark.execute import clean_up, execute, family, planned_stages
from bltm.benchmark.spec import Cell, RunSpec
from bltm.core.errors import CoverageWarning
from bltm.data.source import Source
from bltm.engine.loop import TrainState
from bltm.engine.workbench import Workbench
from bltm.methods.bltm import BLTMClassifier
from bltm.methods.cross_entropy import CrossEntropyClassifier

# Most tests look at the same rows, which take long to make.
pytestmark = pytest.mark.xdist_group("execute")
CELL = Cell("digits", 300, "instance", 0.3, seed=0)
SMALL = {"net": "mlp", "epochs": 8, "batch_size": 16}


def run(method: str, **changes: Any) -> RunSpec:
    return RunSpec(CELL, method, {**SMALL, **changes})


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    work = tmp_path_factory.mktemp("work")
    specs = [run(name) for name in ("clean", "cross-entropy", "forward", "bltm", "bltm-v")]
    specs += [run("dividemix"), run("oracle-instance")]
    specs.append(replace(run("t-revision"), watch_transition=True))
    specs.append(RunSpec(CELL, "bltm", SMALL, watch_transition=True))
    found = {spec.method + "+" * spec.watch_transition: execute(spec, work) for spec in specs}
    for row in found.values():
        assert row["status"] == "done", row["error"]["traceback"]
    return found


def test_rows_are_plain_json(rows: dict[str, dict[str, Any]]) -> None:
    for row in rows.values():
        assert json.loads(json.dumps(row, allow_nan=False)) == row
        assert RunSpec.from_json(row["spec"]).id == row["id"]


def test_the_result_is_that_of_the_selected_epoch(rows: dict[str, dict[str, Any]]) -> None:
    for row in rows.values():
        figures = row["figures"]
        tested = [p["test_accuracy"] for p in figures["curve"] if "test_accuracy" in p]
        assert len(tested) == 8
        assert figures["accuracy_last"] == tested[-1]
        assert figures["oracle_best"] == max(tested) == tested[figures["oracle_best_epoch"] - 1]
        # A revision may keep none of its epochs.
        if row["spec"]["method"] not in ("bltm-v", "t-revision"):
            assert figures["accuracy"] in tested
    # It keeps the last epoch, whatever validation says.
    assert rows["bltm"]["figures"]["accuracy"] == rows["bltm"]["figures"]["accuracy_last"]


def test_figures_of_a_method_fitted_by_hand(
    rows: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    cell = open_cell(CELL, tmp_path)
    judge = cell.evaluate()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageWarning)
        model = BLTMClassifier(random_state=0, revision=False, **SMALL).fit_source(cell.train)
    figures = rows["bltm"]["figures"]
    assert figures["accuracy"] == float((model.predict(judge.test) == judge.test.labels).mean())
    assert figures["accuracy_of_each"] == [
        _score_alone(model, network, judge.test) for network in model.classifier_.networks
    ]
    assert rows["cross-entropy"]["figures"]["accuracy_of_each"] is None
    used = np.asarray(model.predict_transition(cell.train, rows=judge.clean))
    errors = np.abs(used - judge.row).sum(axis=1)
    assert figures["row_error"]["all"] == pytest.approx(errors.mean(), abs=1e-6)
    assert model.collected_ is not None
    indices = model.collected_.indices
    assert figures["row_error"]["collected"] == pytest.approx(errors[indices].mean(), abs=1e-6)
    assert judge.clean is not None
    right = (model.collected_.bayes_labels == judge.clean[indices]).mean()
    assert figures["collection"]["right"] == pytest.approx(right)
    assert figures["collection"]["count"] == len(indices)
    assert figures["collection"]["of"] == 270
    assert figures["passes"] == pytest.approx(model.findings_["passes"])


def _score_alone(model: BLTMClassifier, network: nn.Module, test: Source) -> float:
    alone = copy.copy(model)
    alone.classifier_ = network
    return float((alone.predict(test) == test.labels).mean())


def test_methods_without_a_transition_have_no_error_of_it(rows: dict[str, dict[str, Any]]) -> None:
    assert rows["cross-entropy"]["figures"]["row_error"] is None
    assert rows["cross-entropy"]["figures"]["collection"] is None
    assert rows["cross-entropy"]["figures"]["class_row_error"] > 0
    assert "rest" not in rows["forward"]["figures"]["row_error"]
    assert rows["clean"]["figures"]["average_precision"] is None
    assert rows["cross-entropy"]["figures"]["average_precision"] > 0


def test_the_ceiling_has_seen_right_labels(rows: dict[str, dict[str, Any]]) -> None:
    clean, noisy = (rows[name]["figures"]["validation_accuracy"] for name in ("clean", "forward"))
    assert clean > noisy + 0.1


def test_the_error_of_t_over_training(rows: dict[str, dict[str, Any]]) -> None:
    curve = rows["t-revision+"]["figures"]["curve"]
    assert [point["epoch"] for point in curve if point["stage"] == "revise"] == [
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
    ]
    assert all("row_error" in point for point in curve if point["stage"] == "revise")
    curve = rows["bltm+"]["figures"]["curve"]
    rounds = [point["stage"] for point in curve if "row_error" in point]
    assert rounds == [f"round-{number}/transition" for number in (1, 2, 3) for _ in range(8)]
    last = [point["row_error"] for point in curve if "row_error" in point][-1]
    assert last == pytest.approx(rows["bltm+"]["figures"]["row_error"]["all"], abs=1e-6)
    assert not any("row_error" in point for point in rows["bltm"]["figures"]["curve"])


def test_a_row_tells_how_its_stages_were_trained(rows: dict[str, dict[str, Any]]) -> None:
    told = rows["bltm-v"]["recipe"]["stages"]
    planned = {each.stage: each.schedule for each in planned_stages(run("bltm-v"), 100)}
    assert told["revise"] == {"epochs": planned["revise"].epochs, "lr": planned["revise"].lr}
    assert {stage.partition("/")[0] for stage in told} == {
        "warm_up",
        "round-1",
        "round-2",
        "round-3",
        "revise",
    }
    # What was taken over from a run of the same family is told as well.
    shared = rows["bltm"]["recipe"]["stages"]
    assert shared == {stage: how for stage, how in told.items() if stage != "revise"}


def test_stages_that_methods_share_are_trained_once_and_paid_by_both(
    rows: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    plain, revised = rows["bltm"]["cost"], rows["bltm-v"]["cost"]
    for stage, seconds in plain["stages"].items():
        assert revised["stages"][stage] == seconds
    assert set(revised["stages"]) - set(plain["stages"]) == {"revise"}
    assert revised["seconds"] > sum(revised["stages"].values())
    alone = execute(run("bltm-v"), tmp_path)
    assert alone["figures"] == rows["bltm-v"]["figures"]


def test_who_shares_stages() -> None:
    assert family(run("bltm")) == family(run("bltm-v"))
    assert family(run("bltm")) != family(run("bltm", epochs=4))
    assert family(run("bltm")) != family(replace(run("bltm"), cell=replace(CELL, seed=1)))
    assert family(run("ptd")) != family(run("bltm"))
    noisier = replace(CELL, rate=0.4)
    for method, shared in (("clean", True), ("cross-entropy", False), ("oracle-class", False)):
        assert (family(run(method)) == family(replace(run(method), cell=noisier))) is shared
    other_images = replace(run("clean"), cell=replace(CELL, images=200))
    assert family(run("clean")) != family(other_images)


def test_right_labels_are_learned_once_for_all_rates(
    rows: dict[str, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, noisier = run("clean"), replace(run("clean"), cell=replace(CELL, rate=0.4))
    execute(noisier, tmp_path)
    monkeypatch.setattr(Workbench, "_train", None)
    row = execute(spec, tmp_path)
    assert row["status"] == "done", row["error"]["traceback"]
    assert row["figures"] == rows["clean"]["figures"]
    assert row["noise"] == rows["clean"]["noise"]
    assert row["recipe"]["stages"] == rows["clean"]["recipe"]["stages"]
    assert set(row["cost"]["stages"]) == set(rows["clean"]["cost"]["stages"])
    clean_up([spec, noisier], tmp_path)
    assert not list(tmp_path.rglob("*.safetensors"))


def test_a_run_that_fails_says_why(tmp_path: Path) -> None:
    row = execute(run("cross-entropy", lr=1e30), tmp_path)
    assert row["status"] == "failed"
    assert row["error"]["kind"] == "TrainingError"
    assert "diverged" in row["error"]["message"]
    assert "Traceback" in row["error"]["traceback"]
    json.dumps(row, allow_nan=False)


class Killed(BaseException):
    """Stands for a signal that nobody can catch."""


@pytest.mark.parametrize("after", [1, 4, 5, 7])
def test_a_run_that_was_killed_goes_on(
    after: int, rows: dict[str, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, epochs = Workbench._train, []

    def counted(self: Workbench, stage: Any) -> Any:
        epochs.append(stage.name)
        if len(epochs) == after:
            raise Killed
        return usual(self, stage)

    monkeypatch.setattr(Workbench, "_train", counted)
    with pytest.raises(Killed):
        execute(run("bltm"), tmp_path)
    row = execute(run("bltm"), tmp_path)
    assert row["figures"] == rows["bltm"]["figures"]
    assert len(epochs) == len(set(epochs)) + 1


def test_working_files_go_when_rows_are_kept(tmp_path: Path) -> None:
    spec = run("cross-entropy")
    execute(spec, tmp_path)
    assert list(tmp_path.rglob("*.safetensors"))
    clean_up([spec], tmp_path)
    assert not list(tmp_path.rglob("*.safetensors"))
    assert list((tmp_path / "cells").glob("*.npz"))


def test_plans_of_all_kinds_of_runs() -> None:
    for method in ("clean", "bltm", "oracle-class", "oracle-instance", "collection", "relabelled"):
        assert planned_stages(run(method), 100)


def reachable(start: Any) -> list[Any]:
    """Return everything that can be reached from an object, closures included.

    Modules, classes and the global names of functions are left out: what is in a module any code
    can import, whoever calls it.
    """
    seen: dict[int, Any] = {}
    waiting = [start]
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, (ModuleType, type, str, bytes)):
            continue
        seen[id(item)] = item
        if isinstance(item, FunctionType):
            waiting += [item.__closure__, item.__defaults__, item.__kwdefaults__, item.__dict__]
        else:
            waiting += gc.get_referents(item)
    return list(seen.values())


def test_a_method_cannot_reach_test_data_or_right_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = open_cell(CELL, tmp_path).evaluate()
    assert judge.clean is not None
    assert judge.row is not None
    secrets = [judge.clean, judge.wrong, judge.row, judge.test.inputs, judge.test.labels]
    secrets = [np.asarray(secret) for secret in secrets]
    found: list[Any] = []
    usual = CrossEntropyClassifier._fit

    def spy(self: CrossEntropyClassifier, job: Any) -> Any:
        found.append(reachable([self, job]))
        return usual(self, job)

    monkeypatch.setattr(CrossEntropyClassifier, "_fit", spy)
    row = execute(RunSpec(CELL, "cross-entropy", SMALL, watch_transition=True), tmp_path)
    assert row["status"] == "done"
    (items,) = found
    arrays = [np.asarray(i) for i in items if isinstance(i, (np.ndarray, torch.Tensor))]
    assert len(arrays) > 5
    for array in arrays:
        for secret in secrets:
            assert array.shape != secret.shape or not np.array_equal(array, secret)
    # The walk does find what is there: the noisy labels, and what the watching leads to.
    noisy = open_cell(CELL, tmp_path).train.labels
    assert any(array.shape == (300,) and np.array_equal(array, noisy) for array in arrays)
    assert any(isinstance(item, Workbench) for item in items)
    assert not any(isinstance(item, TrainState) for item in items)
