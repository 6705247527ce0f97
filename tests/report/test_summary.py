"""Means, gaps, ranks and tests, with and without holes in the grid."""

import math
from statistics import fmean, stdev

import pytest

from bltm.core.errors import InputError
from bltm.report.comparison import Stat, gap_recovered, paired_comparison
from bltm.report.runs import as_runs
from bltm.report.summary import Entry, Grid, summarise

from .rows import Row, failed_row, make_row, make_rows

FEW = ("clean", "cross-entropy", "gce", "bltm", "bltm-v")


def summary(rows: list[Row]) -> Grid:
    (grid,) = summarise(as_runs(rows))
    return grid


def entry(rows: list[Row], method: str, rate: float | None = 0.3) -> Entry:
    return summary(rows).entries[method, rate]


def at(method: str, *accuracies: float, rate: float = 0.3) -> list[Row]:
    return [make_row(method, rate, seed, accuracy=a) for seed, a in enumerate(accuracies)]


def test_mean_and_spread_are_over_seeds_with_n_minus_one() -> None:
    values = (0.80, 0.83, 0.87)
    assert entry(at("bltm-v", *values), "bltm-v").accuracy == Stat(fmean(values), stdev(values), 3)
    assert entry(at("bltm-v", 0.8), "bltm-v").accuracy == Stat(0.8, None, 1)


def test_gap_is_from_means_over_the_same_seeds() -> None:
    # The ceiling lacks seed 2, whose accuracies would turn the share around.
    rows = at("clean", 0.9, 0.9) + at("cross-entropy", 0.5, 0.7, 0.0) + at("gce", 0.8, 0.8, 0.0)
    gap = entry(rows, "gce").gap
    assert gap is not None
    assert gap.share == pytest.approx((0.8 - 0.6) / (0.9 - 0.6))
    assert gap.seeds == (0, 1)


def test_gap_is_none_where_there_is_no_gap() -> None:
    assert gap_recovered({0: 0.8}, {0: 0.9}, {0: 0.9}) is None
    assert gap_recovered({0: 0.8}, {1: 0.5}, {0: 0.9}) is None
    assert entry(at("gce", 0.8), "gce").gap is None


def test_ranks_leave_out_ceiling_variants_and_oracles() -> None:
    rows = [
        row
        for method, accuracy in {
            "clean": 0.9,
            "oracle-class": 0.89,
            "relabelled": 0.88,
            "bltm-v": 0.8,
            "gce": 0.85,
            "cross-entropy": 0.7,
        }.items()
        for row in at(method, accuracy)
    ]
    grid = summary(rows)
    ranks = {label: grid.entries[label, 0.3].rank for label in grid.labels}
    assert ranks == {
        "clean": None,
        "cross-entropy": 3,
        "gce": 1,
        "bltm-v": 2,
        "relabelled": None,
        "oracle-class": None,
    }


def test_a_method_that_lacks_a_seed_is_incomplete_and_has_no_rank() -> None:
    grid = summary(at("gce", 0.9, 0.9) + at("bltm-v", 0.8, 0.8, 0.8))
    partial, whole = grid.entries["gce", 0.3], grid.entries["bltm-v", 0.3]
    assert (partial.complete, partial.rank, partial.done, partial.seeds) == (
        False,
        None,
        (0, 1),
        (0, 1, 2),
    )
    assert (whole.complete, whole.rank, whole.ranked) == (True, 1, 1)


def test_seeds_that_other_rates_have_are_missing_too() -> None:
    grid = summary(at("gce", 0.9, rate=0.1) + at("gce", 0.9, 0.9, rate=0.3))
    assert not grid.entries["gce", 0.1].complete
    assert grid.entries["gce", 0.3].complete


def test_paired_test_is_that_of_differences() -> None:
    ours, theirs = {0: 0.80, 1: 0.82, 2: 0.84, 3: 0.9}, {0: 0.79, 1: 0.80, 2: 0.81}
    found = paired_comparison(ours, theirs)
    assert found is not None
    differences = [-0.01, -0.02, -0.03]
    t = fmean(differences) / (stdev(differences) / math.sqrt(3))
    # The distribution function of Student's t with two degrees of freedom, in closed form.
    p_value = 2 * (0.5 + t / (2 * math.sqrt(2 + t * t)))
    assert found.p_value == pytest.approx(p_value)
    assert (found.difference, found.pairs) == (pytest.approx(-0.02), 3)


def test_paired_test__too_few_or_equal_differences__has_no_p_value() -> None:
    two = paired_comparison({0: 0.8, 1: 0.8}, {0: 0.7, 1: 0.6})
    assert two is not None
    assert (two.pairs, two.p_value) == (2, None)
    same = paired_comparison({0: 0.8, 1: 0.7, 2: 0.6}, {0: 0.7, 1: 0.6, 2: 0.5})
    assert same is not None
    assert same.p_value is None
    assert paired_comparison({0: 0.8}, {1: 0.8}) is None


def test_bltm_v_is_not_tested_against_itself() -> None:
    grid = summary(make_rows(FEW))
    assert grid.entries["bltm-v", 0.3].paired is None
    assert grid.entries["gce", 0.3].paired is not None


def test_the_last_row_of_a_run_counts() -> None:
    first, second = make_row(accuracy=0.1), make_row(accuracy=0.8)
    assert entry([first, second], "bltm-v").accuracy == Stat(0.8, None, 1)
    retried = entry([failed_row("bltm-v", 0.3, 0), second], "bltm-v")
    assert (retried.failed, retried.complete) == ({}, True)
    broken = entry([second, failed_row("bltm-v", 0.3, 0)], "bltm-v")
    assert (list(broken.failed), broken.accuracy) == ([0], None)


def test_parameters_that_differ_are_told_apart() -> None:
    rows = [
        make_row("collection", rate, seed, parameters={"net": "compact", "rho_max": rho})
        for rate in (0.1, 0.3)
        for seed in (0, 1)
        for rho in (0.3, 0.5)
    ]
    grid = summary(rows)
    assert grid.labels == ("collection (rho_max=0.3)", "collection (rho_max=0.5)")
    assert all(len(found.runs) == 2 for found in grid.entries.values())
    assert grid.title_of(grid.labels[0]) == "Collection (rho_max=0.3)"


def test_parameters_that_differ_by_rate_only_are_one_method() -> None:
    rows = [make_row("mentornet", rate, parameters={"noise_rate": rate}) for rate in (0.1, 0.3)]
    assert summary(rows).labels == ("mentornet",)


def test_watching_the_transition_makes_no_other_method() -> None:
    rows = [make_row("bltm", seed=0, watch=True), make_row("bltm", seed=1)]
    assert entry(rows, "bltm").done == (0, 1)


def test_settings_are_kept_apart() -> None:
    rows = [make_row(), make_row(images=None), make_row(data="cifar10"), make_row(noise="pmd")]
    assert len(summarise(as_runs(rows))) == 4


def test_real_noise_has_no_rate() -> None:
    grid = summary([make_row(m, None, data="clothing1m", images=None, noise="none") for m in FEW])
    assert grid.rates == (None,)
    assert grid.setting.title == "Clothing1M, all training examples, its own labels"
    assert grid.entries["gce", None].gap is not None


def test_mean_rank_needs_a_rank_at_every_rate() -> None:
    rows = make_rows(FEW)
    assert summary(rows).mean_rank("gce") == 3.0
    holes = [r for r in rows if (r["spec"]["method"], r["spec"]["rate"]) != ("gce", 0.3)]
    assert summary(holes).mean_rank("gce") is None


def test_numbers_that_rows_do_not_have_are_left_out() -> None:
    rows = [make_row(seed=0), make_row(seed=1, average_precision=None)]
    assert entry(rows, "bltm-v").stat("figures", "average_precision") is not None
    assert list(entry(rows, "bltm-v").numbers("figures", "average_precision")) == [0]
    assert entry(rows, "bltm-v").stat("figures", "nothing", "of", "this") is None


def test_a_row_that_is_none_is_named() -> None:
    row = make_row()
    del row["figures"]
    with pytest.raises(InputError, match=rf"{row['id']}.*no result"):
        as_runs([row])
