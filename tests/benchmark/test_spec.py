"""Specs are stable: an id depends on everything a run is, and on nothing else."""

from dataclasses import replace

import pytest

from bltm.benchmark.spec import Cell, RunSpec

CELL = Cell("digits", 200, "instance", 0.3, seed=0)
RUN = RunSpec(CELL, "bltm", {"net": "mlp", "epochs": 2})


def test_ids_do_not_change_between_versions() -> None:
    # Rows that were committed are found by these; a change here orphans them all.
    assert RUN.id == "4133f888ef1714f6"


@pytest.mark.parametrize(
    "other",
    [
        replace(RUN, method="bltm-v"),
        replace(RUN, parameters={"net": "mlp", "epochs": 3}),
        replace(RUN, watch_transition=True),
        replace(RUN, cell=replace(CELL, data="toy")),
        replace(RUN, cell=replace(CELL, images=None)),
        replace(RUN, cell=replace(CELL, noise="pair")),
        replace(RUN, cell=replace(CELL, rate=0.31)),
        replace(RUN, cell=replace(CELL, seed=1)),
        replace(RUN, cell=replace(CELL, noise_options={"sd": 0.2})),
    ],
)
def test_everything_a_run_is_changes_its_id(other: RunSpec) -> None:
    assert other.id != RUN.id


def test_the_order_of_parameters_does_not_count() -> None:
    assert replace(RUN, parameters={"epochs": 2, "net": "mlp"}).id == RUN.id


@pytest.mark.parametrize("run", [RUN, replace(RUN, watch_transition=True)])
def test_plain_values_and_back(run: RunSpec) -> None:
    assert RunSpec.from_json(run.to_json()) == run


def test_cells_that_differ_in_noise_options_have_files_of_their_own() -> None:
    assert CELL.id != replace(CELL, noise_options={"sd": 0.2}).id
