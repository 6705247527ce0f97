"""Choosing runs of a grid: by method, data set, rate and seed."""

from typing import Any

import pytest

from bltm.benchmark.choice import Choice
from bltm.benchmark.grid import parse_grid
from bltm.core.errors import InputError

VALUES: dict[str, Any] = {
    "seeds": [0, 1],
    "methods": ["bltm"],
    "parts": [{"data": "digits", "rates": [0.2, 0.4]}, {"data": "toy", "rates": [0.2]}],
}
GRID = parse_grid(VALUES, "mine")


def test_without_a_wish_a_grid_stays_as_it_is() -> None:
    assert Choice().of(GRID) == GRID


def test_what_is_named_is_kept_in_the_order_of_the_grid() -> None:
    choice = Choice(data=("digits",), rates=(0.4, 0.2), seeds=(1,))
    runs = choice.of(GRID).runs
    assert runs == tuple(r for r in GRID.runs if r.cell.data == "digits" and r.cell.seed == 1)
    assert [run.cell.rate for run in runs] == [0.2] * 3 + [0.4] * 3


def test_a_method_comes_with_the_bounds() -> None:
    runs = Choice(methods=("bltm",), rates=(0.4,)).of(GRID).runs
    assert {run.method for run in runs} == {"clean", "cross-entropy", "bltm"}


def test_a_method_that_the_grid_lacks_is_run_where_the_floor_is() -> None:
    runs = Choice(methods=("gce",), data=("digits",), seeds=(0,)).of(GRID).runs
    assert [(run.method, run.cell.rate) for run in runs if run.method == "gce"] == [
        ("gce", 0.2),
        ("gce", 0.4),
    ]
    cells = [run.cell for run in runs]
    assert len([1 for one, next_ in zip(cells, cells[1:], strict=False) if one != next_]) == 1


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (Choice(data=("digit",)), "data: grid 'mine' has no 'digit'. Use some of digits, toy"),
        (Choice(rates=(0.3,)), r"rate: grid 'mine' has no 0.3. Use some of 0.2, 0.4"),
        (Choice(seeds=(0, 7)), r"seed: grid 'mine' has no 7. Use some of 0, 1"),
        (Choice(data=("toy",), rates=(0.4,)), "rate: grid 'mine' has no 0.4. Use some of 0.2"),
    ],
)
def test_what_a_grid_lacks_cannot_be_chosen(choice: Choice, message: str) -> None:
    with pytest.raises(InputError, match=message):
        choice.of(GRID)


def test_data_that_is_noisy_by_itself_has_no_rate_to_choose() -> None:
    values = {"data": "toy", "noise": "none", "seeds": [0], "methods": ["bltm"]}
    with pytest.raises(InputError, match="rate: grid 'mine' has none. Leave it out"):
        Choice(rates=(0.2,)).of(parse_grid(values, "mine"))
    mixed = {**values, "parts": [{}, {"noise": "instance", "rates": [0.4]}]}
    with pytest.raises(InputError, match=r"has no 0.2. Use some of 0.4\.$"):
        Choice(rates=(0.2,)).of(parse_grid(mixed, "mine"))
