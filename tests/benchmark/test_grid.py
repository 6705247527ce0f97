"""Grids: what they expand to, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from bltm.benchmark.grid import built_in_grids, load_grid, parse_grid
from bltm.benchmark.runner import check_grid
from bltm.core.errors import InputError
from bltm.methods.registry import METHODS

SMALL: dict[str, Any] = {
    "data": "digits",
    "rates": [0.2, 0.4],
    "seeds": [0, 1],
    "methods": ["bltm"],
}


def test_a_grid_is_the_product_with_the_bounds() -> None:
    grid = parse_grid(SMALL, "mine")
    assert len(grid.runs) == 2 * 2 * 3
    assert {run.method for run in grid.runs} == {"clean", "cross-entropy", "bltm"}
    assert len({run.id for run in grid.runs}) == len(grid.runs)


def test_runs_of_one_noisy_data_set_follow_each_other() -> None:
    cells = [run.cell for run in parse_grid(SMALL, "mine").runs]
    assert len([1 for one, next_ in zip(cells, cells[1:], strict=False) if one != next_]) == 3


def test_parameters_of_all_of_one_and_of_the_user() -> None:
    values = {**SMALL, "parameters": {"epochs": 2, "lr": 0.1}}
    values["method_parameters"] = {"bltm": {"epochs": 3}}
    by_method = {run.method: run for run in parse_grid(values, "mine", parameters={"lr": 1.0}).runs}
    assert by_method["bltm"].parameters == {"epochs": 3, "lr": 1.0}
    assert by_method["clean"].parameters == {"epochs": 2, "lr": 1.0}


def test_parts_inherit_and_equal_runs_are_one() -> None:
    values = {**SMALL, "parts": [{"data": "digits"}, {"data": "toy"}, {"rates": [0.2]}]}
    runs = parse_grid(values, "mine").runs
    assert {run.cell.data for run in runs} == {"digits", "toy"}
    assert len(runs) == 2 * 12


def test_quick_changes_every_part() -> None:
    values = {**SMALL, "quick": {"seeds": [5], "rates": [0.1]}, "parts": [{"seeds": [7]}]}
    assert {(r.cell.seed, r.cell.rate) for r in parse_grid(values, "m", quick=True).runs} == {
        (5, 0.1)
    }
    assert {run.cell.seed for run in parse_grid(values, "m").runs} == {7}


def test_data_that_is_noisy_by_itself_has_no_rates() -> None:
    values = {"data": "toy", "noise": "none", "seeds": [0], "methods": ["bltm"]}
    assert {run.cell.rate for run in parse_grid(values, "mine").runs} == {None}
    with pytest.raises(InputError, match="noisy by itself"):
        parse_grid({**values, "rates": [0.1]}, "mine")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sedes": [0]}, "unknown key 'sedes'"),
        ({"quick": {"sedes": [0]}}, "unknown key 'sedes'"),
        ({"parts": [{"title": "x"}]}, "unknown key 'title'"),
        ({"seeds": 3}, "'seeds' of grid 'mine' cannot be 3"),
        ({"images": True}, "'images' of grid 'mine' cannot be True"),
        ({"seeds": []}, "seeds: is missing"),
        ({"methods": []}, "methods: is missing"),
        ({"rates": []}, "rates: is missing"),
        ({"bounds": ["bltm"]}, "bounds: unknown: 'bltm'"),
        ({"method_parameters": {"gce": {}}}, "'gce' is none of the grid's methods"),
    ],
)
def test_what_a_grid_cannot_say(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_grid({**SMALL, **changes}, "mine")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": "digit"}, "no data set 'digit'"),
        ({"noise": "instanc"}, "unknown: 'instanc'"),
        ({"methods": ["btlm"]}, "no method 'btlm'"),
        ({"parameters": {"epoch": 1}}, "'epoch' is no parameter"),
        ({"parameters": {"preset": "papers"}}, "preset"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_runs(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        check_grid(parse_grid({**SMALL, **changes}, "mine"))


def test_files_and_names_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        load_grid(str(tmp_path / "none.toml"))
    with pytest.raises(InputError, match="there is no grid 'none'"):
        load_grid("none")
    (tmp_path / "broken.toml").write_text("data = ")
    with pytest.raises(InputError, match="is not TOML"):
        load_grid(str(tmp_path / "broken.toml"))
    (tmp_path / "good.toml").write_text(
        'data = "digits"\nrates = [0.1]\nseeds = [0]\nmethods = ["gce"]\n'
    )
    assert len(load_grid(str(tmp_path / "good.toml")).runs) == 3
    with pytest.raises(InputError, match="no quick form"):
        load_grid(str(tmp_path / "good.toml"), quick=True)


@pytest.mark.parametrize("name", built_in_grids())
def test_built_in_grids_can_be_run(name: str) -> None:
    grid = load_grid(name)
    check_grid(grid)
    assert grid.title
    assert grid.description
    if name.endswith("-cpu"):
        check_grid(load_grid(name, quick=True))
        images = 20_000 if "20000" in name else 10_000
        assert all(run.cell.images == images for run in grid.runs)


@pytest.mark.parametrize("name", [name for name in built_in_grids() if name.startswith("paper")])
def test_grids_of_the_paper_exist_in_both_sizes(name: str) -> None:
    twin = name.removesuffix("-cpu") if name.endswith("-cpu") else f"{name}-cpu"
    assert twin in built_in_grids()


def test_the_papers_tables_are_whole() -> None:
    for name in ("paper-fmnist", "paper-cifar10", "paper-svhn"):
        grid = load_grid(name)
        assert {run.cell.rate for run in grid.runs} == {0.1, 0.2, 0.3, 0.4, 0.5}
        assert {run.cell.seed for run in grid.runs} == set(range(5))
        # DivideMix and BLTM+ augment and have a table of their own.
        plain = {"clean", *METHODS} - {"dividemix", "bltm+"}
        assert {run.method for run in grid.runs} == plain
    cpu = {run.method for run in load_grid("paper-fmnist-cpu").runs}
    assert cpu == {*plain, "dividemix", "oracle-class", "oracle-instance"}
    clothing = {run.method for run in load_grid("paper-clothing1m").runs}
    assert len(clothing) == 14
    assert clothing <= set(METHODS)
