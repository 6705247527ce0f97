"""What tables say of complete grids and of grids with holes."""

import csv
import io

import pytest

from bltm.report.layout import Cell, Table
from bltm.report.runs import as_runs
from bltm.report.summary import Grid, summarise
from bltm.report.tables import long_table, tables_of, tables_over

from .rows import ALL, Row, failed_row, make_row, make_rows

FEW = ("clean", "cross-entropy", "gce", "bltm", "bltm-v")


def grid_of(rows: list[Row]) -> Grid:
    (grid,) = summarise(as_runs(rows))
    return grid


def tables(rows: list[Row]) -> dict[str, Table]:
    return {table.name: table for table in tables_of(grid_of(rows))}


def cells(table: Table, heading: str) -> dict[str, Cell]:
    (row,) = [row for part in table.sections for row in part.rows if row.heading == heading]
    return {c.full: cell for c, cell in zip(table.columns, row.cells, strict=True)}


def headings(table: Table) -> list[list[str]]:
    return [[row.heading for row in section.rows] for section in table.sections]


def test_accuracy__is_in_the_paper_s_order_with_bounds_and_oracles_apart() -> None:
    table = tables(make_rows((*ALL, "oracle-class", "relabelled")))["accuracy"]
    assert headings(table) == [
        ["CE on the right labels (ceiling)", "CE (floor)"],
        ["GCE", "APL", "Decoupling", "MentorNet", "Co-teaching", "Co-teaching+", "Joint", "DMI"]
        + ["Forward", "Reweight", "S2E", "T-Revision", "PTD", "PTD-V", "DivideMix"],
        ["BLTM", "BLTM-V", "BLTM+"],
        ["Relabelled"],
        ["Forward, true T"],
    ]


def test_accuracy__has_mean_spread_and_the_paper_s_value() -> None:
    rows = [make_row("gce", 0.3, s, accuracy=a) for s, a in enumerate((0.80, 0.82, 0.84))]
    found = cells(tables(rows)["accuracy"], "GCE")
    assert found["30 %"] == Cell("82.00 ± 2.00", bold=True)
    assert found["paper: 30 %"] == Cell("86.64 ± 0.76")


def test_accuracy__marks_the_best_of_each_column_only_among_methods() -> None:
    table = tables(make_rows())["accuracy"]
    for column in range(5):
        marked = [
            (row.heading, row.cells[column])
            for part in table.sections
            for row in part.rows
            if row.cells[column].bold
        ]
        assert len(marked) == 1
        assert "ceiling" not in marked[0][0]


def test_accuracy__says_that_levels_are_not_comparable_with_net_and_images() -> None:
    notes = " ".join(tables(make_rows(FEW))["accuracy"].notes)
    assert "ResNet-18, 60,000 images" in notes
    assert "compact net, 10,000 images of Fashion-MNIST" in notes
    assert "not comparable in level" in notes


def test_accuracy__same_scale_as_the_paper__says_so_without_the_warning() -> None:
    rows = make_rows(FEW, images=None, parameters={"net": "resnet18"})
    notes = " ".join(tables(rows)["accuracy"].notes)
    assert "not comparable" not in notes
    assert "ours from the resnet18 net, 60,000 images" in notes


def test_accuracy__other_noise_or_data__has_no_published_columns() -> None:
    soft = make_rows(FEW)
    for row in soft:
        row["spec"]["noise_options"] = {"feature_mode": "std_unit"}
    other = make_rows(FEW, noise="symmetric"), make_rows(FEW, data="digits", images=None)
    for rows in (soft, *other):
        table = tables(rows)["accuracy"]
        assert not any(column.group for column in table.columns)
        assert "paper" not in " ".join(table.notes)


def test_accuracy__missing_and_failed_runs_are_shown() -> None:
    rows = [
        row
        for row in make_rows(FEW)
        if (row["spec"]["method"], row["spec"]["rate"], row["spec"]["seed"]) != ("gce", 0.1, 2)
        and (row["spec"]["method"], row["spec"]["rate"]) != ("gce", 0.5)
    ]
    rows += [failed_row("gce", 0.3, 1), *(failed_row("bltm", 0.4, seed) for seed in (0, 1, 2))]
    table = tables(rows)["accuracy"]
    gce = cells(table, "GCE")
    assert gce["10 %"].mark == "2/3"
    assert gce["20 %"].mark == ""
    assert gce["30 %"].mark == "2/3, 1 failed"
    assert gce["50 %"] == Cell("–")
    assert gce["mean rank"] == Cell("–")
    assert cells(table, "BLTM")["40 %"] == Cell("failed")
    assert "[2/3]" in " ".join(table.notes)
    assert "[2/3]" not in " ".join(tables(make_rows(FEW))["accuracy"].notes)


def test_gap__best_and_mean_are_of_complete_entries() -> None:
    rows = [r for r in make_rows(FEW) if (r["spec"]["method"], r["spec"]["seed"]) != ("gce", 2)]
    table = tables(rows)["gap"]
    assert headings(table) == [["GCE"], ["BLTM", "BLTM-V"]]
    assert cells(table, "GCE")["mean"] == Cell("–")
    assert cells(table, "GCE")["30 %"].mark == "2/3"
    assert cells(table, "BLTM-V")["mean"].text.endswith(" %")


def test_paired__has_difference_and_p_value_or_says_none() -> None:
    accuracies = {"bltm-v": (0.80, 0.82, 0.84), "gce": (0.79, 0.80, 0.81), "apl": (0.7, 0.7)}
    rows = [
        make_row(method, 0.3, seed, accuracy=value)
        for method, values in accuracies.items()
        for seed, value in enumerate(values)
    ]
    table = tables(rows)["paired"]
    assert cells(table, "GCE")["30 %"] == Cell("−2.00 (p = 0.074)")
    assert cells(table, "APL")["30 %"] == Cell("−11.00", mark="2/3")


def test_networks__shows_one_and_all() -> None:
    several = make_row("bltm-v", 0.3, 0, accuracy=0.8, accuracy_of_each=[0.76, 0.79, 0.78])
    one = make_row("gce", 0.3, 0, accuracy=0.7, accuracy_of_each=None)
    found = tables([several, one])["networks"]
    assert cells(found, "BLTM-V")["30 %"] == Cell("77.7 / 80.0")
    assert headings(found) == [["BLTM-V"]]
    assert "networks" not in tables([one])


def test_networks__a_rate_without_them_is_empty() -> None:
    several = make_row("bltm-v", 0.3, 0, accuracy=0.8, accuracy_of_each=[0.76, 0.78])
    before = make_row("bltm-v", 0.1, 0, accuracy=0.8)
    found = cells(tables([several, before])["networks"], "BLTM-V")
    assert [cell.text for cell in found.values()] == ["–", "77.0 / 80.0"]


def test_selection__shows_selected_last_and_best() -> None:
    row = make_row(accuracy=0.8, accuracy_last=0.79, oracle_best=0.82)
    assert cells(tables([row])["selection"], "BLTM-V")["30 %"] == Cell("80.0 / 79.0 / 82.0")
    unknown = make_row(accuracy=0.8, accuracy_last=None, oracle_best=0.82)
    assert cells(tables([unknown])["selection"], "BLTM-V")["30 %"] == Cell("80.0 / – / 82.0")


def test_transition__has_all_collected_rest_beside_the_class_average() -> None:
    table = tables(make_rows(("clean", "forward", "bltm-v"), rates=(0.3,)))["transition"]
    assert cells(table, "true class-average matrix")["30 %"] == Cell("0.360")
    assert cells(table, "true targets, mean flip rate")["30 %"] == Cell("0.150")
    assert cells(table, "Forward")["30 %"] == Cell("0.420")
    assert cells(table, "BLTM-V")["30 %"] == Cell("0.300 / 0.270 / 0.390", bold=True)


def test_collection__is_appendix_a_with_the_paper_s_values() -> None:
    rows = make_rows(("bltm", "bltm-v"), rates=(0.1, 0.3, 0.5), data="cifar10")
    table = tables(rows)["collection"]
    found = cells(Table("", "", "", table.columns, table.sections[:1]), "30 %")
    assert found["paper, rho_max 0.3: right, %"] == Cell("96")
    assert found["paper, rho_max 0.5: number"] == Cell("10,673 of 50,000")
    sweep = rows[0]["figures"]["collection"]["sweep"]
    assert [point["threshold"] for point in sweep][3] == 0.65
    assert found["rho_max 0.3: right, %"].text == "95.5 ± 0.0"
    assert found["as used: right, %"].text == "94.5 ± 0.0"
    assert found["as used: number"].text.endswith(" of 9,000")


def test_collection__methods_with_the_same_one_share_lines() -> None:
    same = make_row("bltm")["figures"]["collection"]
    rows = [make_row(method, collection=same) for method in ("bltm", "bltm-v")]
    (section,) = tables(rows)["collection"].sections
    assert section.title == "BLTM, BLTM-V"


def test_audit__has_chance_and_kind_and_no_ceiling() -> None:
    table = tables(make_rows(FEW))["audit"]
    assert cells(table, "share of wrong labels (chance)")["30 %"] == Cell("0.297")
    assert cells(table, "BLTM")["suspicion"] == Cell("probability")
    assert cells(table, "CE")["suspicion"] == Cell("score")
    assert "CE on the right labels" not in sum(headings(table), [])


def test_cost__counts_runs_and_failures() -> None:
    rows = [*make_rows(FEW, seeds=(0, 1)), failed_row("gce", 0.1, 2)]
    found = cells(tables(rows)["cost"], "GCE")
    assert (found["runs"], found["failed"]) == (Cell("10"), Cell("1"))
    assert found["peak memory, MB"] == Cell("700 ± 0")


def test_ablation__spans_data_sets_with_the_paper_s_values() -> None:
    methods = ("clean", "cross-entropy", "collected-only", "relabelled", "bltm-v")
    rows = make_rows(methods, rates=(0.1, 0.3), data="cifar10")
    rows += make_rows(methods, rates=(None,), data="clothing1m", images=None, noise="none")
    (table,) = tables_over(summarise(as_runs(rows)))
    assert headings(table) == [["Collected examples only", "Relabelled", "BLTM-V"]]
    found = cells(table, "Relabelled")
    assert found["CIFAR-10 30 %: paper"] == Cell("70.73")
    assert found["Clothing1M own labels: paper"] == Cell("64.98")
    assert "±" in found["CIFAR-10 10 %"].text


def test_deviations__are_differences_to_their_base() -> None:
    accuracies = {
        "deviation/base": (0.80, 0.82),
        "deviation/base-v": (0.81, 0.83),
        "deviation/column-normalised": (0.71, 0.73),
        "deviation/threshold-0.55": (0.79, 0.82),
    }
    rows = [
        make_row(
            method,
            0.3,
            seed,
            accuracy=value,
            oracle_best=value + 0.01,
            row_error={"all": 1.0 - value, "collected": None, "rest": None},
        )
        for method, values in accuracies.items()
        for seed, value in enumerate(values)
    ]
    table = tables(rows)["deviations"]
    accuracy, error = "accuracy: 30 %", "error of T(x): 30 %"
    assert cells(table, "columns normalised")[accuracy] == Cell("−10.00 ± 0.00")
    assert cells(table, "columns normalised")[error] == Cell("+0.100 ± 0.000")
    assert cells(table, "threshold 0.55")[accuracy] == Cell("−0.50 ± 0.71")
    assert cells(table, "epoch selected on the test set")[accuracy] == Cell("+1.00 ± 0.00")


def test_tables_without_data_are_left_out() -> None:
    rows = [make_row("gce", average_precision=None, accuracy_last=None, oracle_best=None)]
    assert set(tables(rows)) == {"accuracy", "cost"}
    assert set(tables([make_row("collection", average_precision=None)])) == {"collection", "cost"}
    assert set(tables([failed_row("gce", 0.3, 0)])) == {"accuracy"}
    assert tables_over([grid_of(rows)]) == ()


def test_long_table__has_a_line_per_method_and_rate_with_numbers() -> None:
    rows = [*make_rows(FEW), failed_row("apl", 0.3, 1)]
    lines = list(csv.DictReader(io.StringIO(long_table([grid_of(rows)]))))
    assert len(lines) == 5 * 5 + 1
    (ours,) = [x for x in lines if x["method"] == "bltm-v" and x["rate"] == "0.5"]
    assert float(ours["paper_accuracy"]) == pytest.approx(0.7689)
    assert ours["seeds"] == "0 1 2"
    assert ours["complete"] == "True"
    assert (ours["rank"], ours["ranked"]) == ("1", "4")
    (failed,) = [x for x in lines if x["method"] == "apl"]
    assert (failed["failed_seeds"], failed["accuracy"], failed["n_seeds"]) == ("1", "", "0")
