"""T(x) trusted by a third: the noise rate stays, against plain Python."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bltm.core import blocks
from bltm.core.posterior import given_and_best, right_label_posterior
from bltm.core.tempering import FLOOR, POWER, Tempering, find_tempering, judge_given


@dataclass(frozen=True)
class Judged:
    """What f and the columns of T(x) say of some labels."""

    f: np.ndarray
    log_columns: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    index: np.ndarray

    def tempering(self, power: float = POWER, floor: float = FLOOR) -> Tempering:
        return find_tempering(
            self.f, self.log_columns, self.labels, self.weights, self.index, power, floor
        )

    def p_right(self, tempering: Tempering) -> np.ndarray:
        return judge_given(self.f, self.log_columns, self.labels, tempering)[0]

    def rate(self, tempering: Tempering) -> float:
        p_wrong = 1.0 - self.p_right(tempering).astype(np.float64)
        return float(np.average(p_wrong[self.index], weights=self.weights[self.index]))


def drawn(seed: int, n: int, n_classes: int, blur: float) -> Judged:
    """Random probabilities, the more extreme the smaller ``blur``; some of them are zero."""
    rng = np.random.default_rng(seed)
    f = rng.dirichlet(np.full(n_classes, blur), n).astype(np.float32)
    columns = rng.beta(blur, blur, (n, n_classes)).astype(np.float32)
    # As ``log_entries`` has them.
    log_columns = np.log(np.maximum(columns, np.finfo(np.float32).tiny))
    log_columns[columns <= 0] = -1e4
    index = np.sort(rng.permutation(n)[: max(1, 2 * n // 3)])
    return Judged(f, log_columns, rng.integers(0, n_classes, n), rng.random(n) + 0.1, index)


PROBLEMS = st.builds(
    drawn, st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 6), st.floats(0.02, 5.0)
)
POWERS = st.floats(0.05, 1.0)


def p_wrong_by_hand(
    f: list[float], column: list[float], label: int, power: float, k: float, floor: float
) -> float:
    joint = [
        a * max(c, floor / len(f)) ** power * (1.0 if i == label else k)
        for i, (a, c) in enumerate(zip(f, column, strict=True))
    ]
    total = sum(joint)
    return 1.0 - (joint[label] / total if total > 0 else f[label])


def test_against_bisection_in_plain_python() -> None:
    problem = drawn(3, 30, 4, 1.0)

    def rate(power: float, k: float, floor: float) -> float:
        wrong = [
            problem.weights[n]
            * p_wrong_by_hand(
                problem.f[n].tolist(),
                np.exp(problem.log_columns[n]).tolist(),
                int(problem.labels[n]),
                power,
                k,
                floor,
            )
            for n in problem.index
        ]
        return float(sum(wrong) / problem.weights[problem.index].sum())

    target, low, high = rate(1.0, 1.0, 0.0), -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        below = rate(POWER, math.exp(middle), FLOOR) < target
        low, high = (middle, high) if below else (low, middle)
    found = problem.tempering()
    assert found.power == POWER
    assert found.log_odds == pytest.approx(low, abs=1e-5)
    expected = [
        p_wrong_by_hand(f, column, label, POWER, math.exp(low), FLOOR)
        for f, column, label in zip(
            problem.f.tolist(),
            np.exp(problem.log_columns).tolist(),
            problem.labels.tolist(),
            strict=True,
        )
    ]
    assert 1 - problem.p_right(found) == pytest.approx(expected, abs=1e-5)


@given(PROBLEMS, POWERS)
def test_the_noise_rate_is_that_of_f_and_t(problem: Judged, power: float) -> None:
    found = problem.tempering(power)
    assert math.isfinite(found.log_odds)
    assert problem.rate(found) == pytest.approx(problem.rate(Tempering(1.0)), abs=1e-5)


@given(PROBLEMS)
def test_a_power_of_one_is_f_and_t_as_they_are(problem: Judged) -> None:
    found = problem.tempering(1.0, floor=0.0)
    columns = np.exp(problem.log_columns)
    assert (Tempering(1.0).columns(columns, problem.labels) == columns).all()
    right, _ = right_label_posterior(problem.f, columns)
    expected = right[np.arange(len(right)), problem.labels]
    assert problem.p_right(found) == pytest.approx(expected, abs=1e-6)


@given(PROBLEMS, POWERS, st.floats(-80, 80), st.floats(0.01, 10))
def test_the_more_the_odds_are_raised_the_more_labels_are_wrong(
    problem: Judged, power: float, log_odds: float, more: float
) -> None:
    low = problem.p_right(Tempering(power, log_odds))
    high = problem.p_right(Tempering(power, log_odds + more))
    assert (high <= low * (1 + 1e-5)).all()
    # A constant on the odds of all leaves their order.
    in_order = high[np.argsort(low, kind="stable")]
    assert (in_order[1:] >= in_order[:-1] * (1 - 1e-5) - 1e-5).all()


@given(PROBLEMS, st.integers(0, 10_000))
def test_the_order_of_the_examples_does_not_matter(problem: Judged, seed: int) -> None:
    n = len(problem.labels)
    order = np.random.default_rng(seed).permutation(n)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    shuffled = Judged(
        problem.f[order],
        problem.log_columns[order],
        problem.labels[order],
        problem.weights[order],
        place[problem.index],
    )
    one, other = problem.tempering(), shuffled.tempering()
    assert one.power == other.power
    assert problem.p_right(one)[order] == pytest.approx(shuffled.p_right(other), abs=1e-5)


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = drawn(0, 100, 3, 0.5)
    whole = problem.tempering()
    monkeypatch.setattr(blocks, "BLOCK_ENTRIES", 21)
    assert problem.tempering().log_odds == pytest.approx(whole.log_odds, rel=1e-9)
    assert problem.p_right(whole).shape == (100,)


def test_where_all_flips_are_alike_nothing_changes() -> None:
    """Every likelihood ratio is the same, so there is nothing to trust more or less."""
    rng = np.random.default_rng(0)
    f = rng.dirichlet(np.full(4, 0.3), 200).astype(np.float32)
    labels = rng.integers(0, 4, 200)
    T = np.full((4, 4), 0.1, np.float32) + 0.6 * np.eye(4, dtype=np.float32)
    problem = Judged(f, np.log(T.T[labels]), labels, np.ones(200), np.arange(200))
    found = problem.tempering()
    assert found.log_odds == pytest.approx((POWER - 1) * math.log(7), abs=1e-5)
    assert problem.p_right(found) == pytest.approx(problem.p_right(Tempering(1.0)), abs=1e-6)


def nothing_in_doubt() -> dict[str, Judged]:
    one, labels, everyone = np.ones(5), np.arange(5) % 3, np.arange(5)
    flat = np.full((5, 3), 1 / 3, np.float32)
    never = np.where(np.eye(3, dtype=bool)[labels], 0.0, -1e4).astype(np.float32)
    always = np.where(np.eye(3, dtype=bool)[labels], -1e4, -0.7).astype(np.float32)
    sure = np.eye(3, dtype=np.float32)[(labels + 1) % 3]
    loud = np.full((5, 3), -1.1, np.float32)
    return {
        "no noise": Judged(flat, never, labels, one, everyone),
        "nothing but noise": Judged(flat, always, labels, one, everyone),
        "minus infinity": Judged(
            flat, np.where(never < 0, -np.inf, 0).astype(np.float32), labels, one, everyone
        ),
        "f excludes the given label": Judged(sure, loud, labels, one, everyone),
        "f and T exclude each other": Judged(sure, never, labels, one, everyone),
        "no example": Judged(flat, loud, labels, one, everyone[:0]),
        "no weight": Judged(flat, loud, labels, 0 * one, everyone),
        "no data": Judged(flat[:0], loud[:0], labels[:0], one[:0], everyone[:0]),
        "one class": Judged(flat[:, :1], loud[:, :1], 0 * labels, one, everyone),
    }


@pytest.mark.parametrize("case", nothing_in_doubt())
def test_where_no_label_is_in_doubt_t_is_left_as_it_is(case: str) -> None:
    problem = nothing_in_doubt()[case]
    assert problem.tempering() == Tempering(1.0, 0.0)


def test_no_flip_is_impossible_because_an_estimate_says_so() -> None:
    problem = nothing_in_doubt()["no noise"]
    log_columns = problem.log_columns.copy()
    log_columns[:2] = np.log(np.array([[0.6, 0.3, 0.1], [0.1, 0.8, 0.4]], np.float32))
    mixed = Judged(problem.f, log_columns, problem.labels, problem.weights, problem.index)
    without, found = mixed.tempering(floor=0.0), mixed.tempering()
    assert (mixed.p_right(Tempering(1.0))[2:] == 1.0).all()
    assert (mixed.p_right(without)[2:] == 1.0).all()
    assert (mixed.p_right(found)[2:] < 1.0).all()
    for tempering in (without, found):
        assert tempering.power == POWER
        assert mixed.rate(tempering) == pytest.approx(mixed.rate(Tempering(1.0)), abs=1e-6)


def test_a_tiny_probability_of_being_right_keeps_its_digits() -> None:
    f = np.array([[1e-20, 1.0]], np.float32)
    log_columns = np.log(np.array([[1e-8, 0.64]], np.float32))
    p_right, suggested = judge_given(f, log_columns, np.array([0]), Tempering(0.5, 2.0))
    expected = 1e-20 * 1e-4 / (0.8 * math.exp(2.0))
    assert p_right[0] == pytest.approx(expected, rel=1e-4)
    assert suggested.tolist() == [1]


@pytest.mark.parametrize("log_odds", [-100.0, 100.0])
def test_extreme_odds_stay_within_float32(log_odds: float) -> None:
    columns = np.array([[1.0, 1e-6, 0.0]], np.float32)
    found = Tempering(0.5, log_odds).columns(columns, np.array([0]))
    assert np.isfinite(found).all()
    ratio = math.log(found[0, 1]) - math.log(found[0, 0])
    assert ratio == pytest.approx(log_odds + math.log(1e-3), abs=1e-3)
    assert found[0, 2] == 0


def test_among_equals_the_given_label_is_the_most_probable() -> None:
    right = np.array([[0.4, 0.2, 0.4], [0.4, 0.2, 0.4]], np.float32)
    p_given, best = given_and_best(right, np.array([2, 1]))
    assert p_given == pytest.approx([0.4, 0.2])
    assert best.tolist() == [2, 0]


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.6])
def test_as_many_labels_are_wrong_as_expected_and_their_order_stays(rate: float) -> None:
    problem = drawn(5, 200, 4, 1.0)
    # Examples that are not in question do not count.
    expected = np.where(np.isin(np.arange(200), problem.index), rate, 0.9).astype(np.float32)
    arguments = (problem.f, problem.log_columns, problem.labels, problem.weights, problem.index)
    tempering = find_tempering(*arguments, expected=expected)
    assert problem.rate(tempering) == pytest.approx(rate, abs=1e-5)
    before, after = problem.p_right(problem.tempering()), problem.p_right(tempering)
    assert np.diff(after[np.argsort(before)].astype(np.float64)).min() > -1e-6
