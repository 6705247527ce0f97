"""How long a grid will take: from rows where there are any, from a few steps elsewhere."""

from pathlib import Path

import pytest
import torch

from bltm.benchmark.forecast import forecast
from bltm.benchmark.spec import Cell, RunSpec

SMALL = {"net": "mlp", "epochs": 2}


def run(method: str, seed: int = 0, **parameters: object) -> RunSpec:
    cell = Cell("digits", 200, "instance", 0.3, seed)
    return RunSpec(cell, method, {**SMALL, **parameters})


def row(spec: RunSpec, seconds: float) -> dict[str, object]:
    return {"status": "done", "spec": spec.to_json(), "cost": {"seconds": seconds}}


def test_rows_of_other_seeds_tell_best(tmp_path: Path) -> None:
    rows = [row(run("gce", 1), 10.0), row(run("gce", 2), 30.0)]
    rows.append({"status": "failed", "spec": run("gce", 3).to_json()})
    assert forecast([run("gce")], rows, tmp_path) == {run("gce").id: pytest.approx(20.0)}


def test_what_a_family_shares_is_counted_once(tmp_path: Path) -> None:
    rows = [row(run("bltm", 1), 100.0), row(run("bltm-v", 1), 110.0)]
    expected = forecast([run("bltm"), run("bltm-v")], rows, tmp_path)
    assert expected[run("bltm").id] == pytest.approx(100.0)
    assert expected[run("bltm-v").id] == pytest.approx(10.0)


def test_without_rows_steps_are_timed_and_more_work_takes_longer(tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    runs = [run("cross-entropy"), run("cross-entropy", epochs=20), run("oracle-class")]
    short, long, oracle = forecast(runs, [], tmp_path, threads=1).values()
    assert long == pytest.approx(10 * short)
    assert oracle == short > 0
    assert torch.get_num_threads() == threads
