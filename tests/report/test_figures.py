"""Figures: what is drawn, the same each time, with nothing left behind."""

import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import pytest
from matplotlib.figure import Figure
from PIL import Image

from bltm.report.accuracy_figures import accuracy_figure, cost_figure
from bltm.report.collection_figure import collection_figure
from bltm.report.figures import write_figures
from bltm.report.runs import as_runs
from bltm.report.style import save, spread, styled
from bltm.report.summary import Grid, summarise
from bltm.report.transition_figures import error_figure, matrices_figure

from .rows import ALL, Row, failed_row, make_row, make_rows

FEW = ("clean", "cross-entropy", "forward", "bltm", "bltm-v")


def grid_of(rows: list[Row]) -> Grid:
    (grid,) = summarise(as_runs(rows))
    return grid


def texts(figure: Figure | None) -> list[str]:
    assert figure is not None
    return [text.get_text() for axes in figure.axes if axes.get_visible() for text in axes.texts]


def titles(figure: Figure | None) -> list[str]:
    assert figure is not None
    axes = [a for a in figure.axes if a.get_visible()]
    return [a.get_title("left") for a in axes if a.get_title("left")]


@pytest.fixture
def style() -> object:
    with styled():
        yield


@pytest.mark.usefixtures("style")
def test_accuracy__has_a_panel_per_family_and_names_every_method_once() -> None:
    figure = accuracy_figure(grid_of(make_rows(rates=(0.1, 0.3), seeds=(0, 1))))
    assert titles(figure) == [
        "robust loss",
        "sample selection",
        "label refinement",
        "class-dependent T",
        "instance-dependent T",
    ]
    found = texts(figure)
    assert found.count("BLTM-V") == found.count("ceiling") == found.count("floor (CE)") == 5
    others = [name for name in found if name not in ("BLTM-V", "ceiling", "floor (CE)")]
    assert len(others) == len(set(others)) == len(ALL) - 3


@pytest.mark.usefixtures("style")
def test_accuracy__missing_seeds_are_hollow_and_failures_left_out() -> None:
    rows = [*make_rows(FEW, rates=(0.1, 0.3), seeds=(0, 1)), failed_row("forward", 0.3, 1)]
    figure = accuracy_figure(grid_of(rows))
    assert figure is not None
    faces = {str(line.get_markerfacecolor()) for axes in figure.axes for line in axes.lines}
    assert "white" in faces
    assert accuracy_figure(grid_of([failed_row("gce", r, 0) for r in (0.1, 0.3)])) is None


@pytest.mark.usefixtures("style")
def test_accuracy__one_rate__is_left_out() -> None:
    assert accuracy_figure(grid_of(make_rows(FEW, rates=(0.3,)))) is None


@pytest.mark.usefixtures("style")
def test_cost__names_bltm_v_and_what_nothing_cheaper_beats() -> None:
    values = {"cross-entropy": (20, 0.7), "gce": (30, 0.8), "apl": (40, 0.75), "bltm-v": (80, 0.78)}
    rows = [make_row(m, accuracy=a, passes=float(p)) for m, (p, a) in values.items()]
    assert sorted(texts(cost_figure(grid_of(rows)))) == ["BLTM-V", "CE", "GCE"]


@pytest.mark.usefixtures("style")
def test_transition_error__has_mean_and_spread_of_the_steps_that_all_seeds_have() -> None:
    curves = ([0.5, 0.3, 0.2], [0.7, 0.5])
    rows = [
        make_row(
            "bltm-v",
            seed=seed,
            watch=True,
            curve=[
                {"stage": "correct", "epoch": epoch, "row_error": error}
                for epoch, error in enumerate(curve, start=1)
            ],
        )
        for seed, curve in enumerate(curves)
    ]
    figure = error_figure(grid_of(rows))
    assert figure is not None
    line = figure.axes[0].lines[0]
    assert list(line.get_xdata()) == [1, 2]
    assert list(line.get_ydata()) == pytest.approx([0.6, 0.4])
    references = {"true class average", "true targets, mean flip rate"}
    assert set(texts(figure)) == {"BLTM-V"} | references
    assert error_figure(grid_of(make_rows(FEW, seeds=(0,)))) is None
    by_the_way = make_row("bltm-v", curve=[{"stage": "revise", "epoch": 1, "row_error": 0.3}])
    assert error_figure(grid_of([by_the_way])) is None


@pytest.mark.usefixtures("style")
def test_transition_error__stages_are_in_the_order_of_training() -> None:
    row = make_row("bltm-v", watch=True)
    expected = [point["row_error"] for point in row["figures"]["curve"]]
    row["figures"]["curve"].sort(key=lambda point: point["stage"])
    assert [point["row_error"] for point in row["figures"]["curve"]] != expected
    figure = error_figure(grid_of([row]))
    assert figure is not None
    assert list(figure.axes[0].lines[0].get_ydata()) == expected


@pytest.mark.usefixtures("style")
def test_transition_error__t_that_never_changes_is_a_level() -> None:
    rows = [make_row("forward", watch=True, curve=[]), make_row("bltm-v", watch=True)]
    figure = error_figure(grid_of(rows))
    assert figure is not None
    assert "Forward" in texts(figure)
    level = rows[0]["figures"]["row_error"]["all"]
    assert list(figure.axes[0].lines[0].get_ydata()) == [level, level]


@pytest.mark.usefixtures("style")
def test_matrices__are_those_of_one_noisy_data_set() -> None:
    rows = make_rows(FEW, rates=(0.1, 0.3), seeds=(1, 2))
    figure = matrices_figure(grid_of(rows))
    names = titles(figure)
    assert names[0] == "true"
    assert [name.partition(":")[0] for name in names[1:]] == ["Forward", "BLTM", "BLTM-V"]
    assert figure is not None
    assert any("noise 30 %, seed 1" in text.get_text() for text in figure.texts)
    assert matrices_figure(grid_of(make_rows(("gce",)))) is None


@pytest.mark.usefixtures("style")
def test_collection__has_a_line_per_rate_and_the_paper_s_points() -> None:
    rows = make_rows(("bltm-v",), rates=(0.1, 0.2, 0.3), seeds=(0, 1), data="cifar10")
    figure = collection_figure(grid_of(rows))
    names = texts(figure)
    assert [names.count(name) for name in ("10 %", "20 %", "30 %")] == [2, 2, 2]
    assert figure is not None
    quality = figure.axes[0]
    points = {
        (round(float(line.get_xdata()[0]), 2), float(line.get_ydata()[0]))
        for line in quality.lines
        if line.get_marker() == "D"
    }
    assert points == {(0.65, 98.0), (0.75, 99.0), (0.65, 96.0)}
    assert collection_figure(grid_of(make_rows(("gce",)))) is None


def test_files_are_the_same_each_time_and_have_no_date(tmp_path: Path) -> None:
    grid = grid_of(make_rows(FEW, rates=(0.1, 0.3), seeds=(0, 1), watch=True))
    first = write_figures(grid, tmp_path / "a", "p-")
    assert set(first) == {"accuracy", "transition-error", "matrices", "collection", "cost"}
    with styled():
        figure = cost_figure(grid)
    assert figure is not None
    again, _ = save(figure, tmp_path / "again")
    svg, png = first["cost"]
    assert svg.name == "p-cost.svg"
    assert svg.read_bytes() == again.read_bytes()
    assert not re.search(r"<dc:date>|20\d\d-\d\d-\d\d", svg.read_text(encoding="utf-8"))
    with Image.open(png) as image:
        assert min(image.size) > 400
        assert "Software" not in image.info


def test_settings_of_the_user_neither_matter_nor_change() -> None:
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context({"font.size": 30.0}):
        with styled():
            assert matplotlib.rcParams["font.size"] == 9.0
        assert matplotlib.rcParams["font.size"] == 30.0
    assert dict(matplotlib.rcParams) == before


def test_reports_need_neither_pyplot_nor_torch() -> None:
    code = (
        "import sys, bltm.report.documents, bltm.report.style as s\n"
        "with s.styled(): s.new_figure(2, 2, 'a', 'b')\n"
        "print([m for m in ('matplotlib.pyplot', 'torch', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("values", [[0.0, 0.0, 0.0], [1.0, 1.1, 9.9, 10.0], [5.0], []])
def test_spread_labels_are_apart_and_inside(values: list[float]) -> None:
    moved = spread(values, 1.0, 0.0, 10.0)
    assert all(b - a >= 1.0 - 1e-9 for a, b in zip(moved, moved[1:], strict=False))
    assert all(0.0 <= value <= 10.0 for value in moved)
