"""S2E-lite: the curves, the search and the trials."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import beta

from bltm.core.errors import InputError
from bltm.data.source import as_source
from bltm.engine.protocol import BUDGET, CT200
from bltm.engine.store import DirectoryStore
from bltm.engine.workbench import Interrupted, Workbench
from bltm.methods.s2e import S2EClassifier
from bltm.methods.s2e.schedule import SIZE, forget_curve
from bltm.methods.s2e.search import Betas, highest_within
from engine.helpers import weights_of

from .helpers import sample

END = 200.0
CURVES = st.lists(
    st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)), min_size=SIZE, max_size=SIZE
).map(np.array)


def slow_curve(x: list[float], e: float, end: float) -> float:
    """F(e) as it is written."""
    y = [v / 2 if k in (2, 4, 6, 9, 10) else 2 * v if k in (5, 11) else v for k, v in enumerate(x)]
    value = y[0] * (1 - math.exp(-y[2] * e ** y[1]))
    value += (1 - y[0]) * y[7] * (1 - (1 + y[4] * e) ** -y[3])
    value += (1 - y[0]) * (1 - y[7]) * (1 - math.log(1 + y[8]) / math.log(1 + y[8] + y[9] * e))
    value -= y[6] * (e / end) ** y[5]
    value -= y[10] * math.log(1 + e ** y[11]) / math.log(1 + end ** y[11])
    return min(max(value, 0.0), 0.99)


@given(
    st.lists(st.floats(0.01, 1), min_size=SIZE, max_size=SIZE),
    st.floats(0.5, END),
)
def test_the_curve_is_its_formula(x: list[float], time: float) -> None:
    assert forget_curve(np.array(x), time, END) == pytest.approx(slow_curve(x, time, END), abs=1e-9)


@given(CURVES, st.floats(0, END))
def test_the_curve_is_a_share_everywhere(x: np.ndarray, time: float) -> None:
    for moment in (0.0, time, END):
        assert 0.0 <= forget_curve(x, moment, END) <= 0.99


def test_the_curve_is_defined_where_its_logarithms_are_not() -> None:
    x = np.zeros(SIZE)
    x[9] = 1.0
    assert forget_curve(x, 0.0, END) == 0.0  # 0 / 0
    assert forget_curve(x, 10.0, END) == 0.99  # ln 1 = 0: all at once
    assert forget_curve(np.zeros(SIZE), 10.0, END) == 0.0


def test_the_curve_is_cut_at_both_ends() -> None:
    falling = np.zeros(SIZE)
    falling[[5, 6]] = 0.5, 1.0
    assert forget_curve(falling, 100.0, END) == 0.0
    rising = np.zeros(SIZE)
    rising[[0, 1, 2]] = 1.0
    assert forget_curve(rising, 100.0, END) == 0.99


@settings(max_examples=30)
@given(
    st.lists(st.floats(1, 20), min_size=3, max_size=3),
    st.lists(st.floats(1, 20), min_size=3, max_size=3),
    st.integers(0, 1000),
)
def test_a_newton_step_solves_the_quadratic_model_within_its_bounds(
    a: list[float], b: list[float], seed: int
) -> None:
    """Against a solver, with derivatives taken from the density by differences."""
    points = np.random.default_rng(seed).uniform(0.02, 0.98, (2, 3))
    moved = Betas(np.array(a), np.array(b)).moved_to(points)

    for k in range(3):
        start = np.array([a[k], b[k]])

        def density(at: np.ndarray, k: int = k) -> float:
            return float(beta.logpdf(points[:, k], *at).mean())

        h = 1e-3
        unit = h * np.eye(2)
        gradient = [(density(start + u) - density(start - u)) / (2 * h) for u in unit]
        curvature = [
            [
                (
                    density(start + u + v)
                    - density(start + u - v)
                    - density(start - u + v)
                    + density(start - u - v)
                )
                / (4 * h * h)
                for v in unit
            ]
            for u in unit
        ]

        def gain(d: Any, g: Any = gradient, c: Any = curvature) -> float:
            return float(np.dot(g, d) + d @ np.array(c) @ d / 2)

        move = np.array([moved.a[k], moved.b[k]]) - start
        least = 1 - start
        solved = minimize(
            lambda d: -gain(d), np.zeros(2), bounds=[(low, None) for low in least], tol=1e-12
        )
        assert (move >= least - 1e-9).all()
        assert gain(move) >= gain(solved.x) - 1e-3 * (1 + abs(gain(solved.x)))


def test_both_unknowns_take_part_in_a_step() -> None:
    """A product that is taken by elements, or of one column, would come out otherwise."""
    curvature = np.array([[[2.0, -1.0], [-1.0, 3.0]]])
    move = highest_within(np.array([[1.0, 2.0]]), curvature, np.array([[-9.0, -9.0]]))
    np.testing.assert_allclose(curvature[0] @ move[0], [1.0, 2.0])


def test_a_bound_that_is_met_changes_the_other_unknown() -> None:
    curvature = np.array([[[1.0, -0.6], [-0.6, 1.0]]])
    gradient = np.array([[0.9, -1.3]])
    move = highest_within(gradient, curvature, np.zeros((1, 2)))
    np.testing.assert_allclose(move, [[0.9, 0.0]])
    cut = np.maximum(np.linalg.solve(curvature[0], gradient[0]), 0.0)
    assert cut[0] < 0.2


@pytest.mark.parametrize("seed", range(5))
def test_the_means_move_to_the_optimum_of_a_quadratic(seed: int) -> None:
    rng = np.random.default_rng(seed)
    optimum = rng.uniform(0.1, 0.9, SIZE)
    betas = Betas.uniform(SIZE)
    distances = [np.abs(betas.mean - optimum).mean()]
    for _ in range(30):
        draws = sorted(
            (betas.draw(rng) for _ in range(20)), key=lambda x: float(((x - optimum) ** 2).sum())
        )
        betas = betas.moved_to(np.stack(draws[:10]))
        distances.append(np.abs(betas.mean - optimum).mean())
    assert distances[-1] < 0.5 * distances[0]
    assert (betas.a >= 1).all()
    assert (betas.b >= 1).all()


def test_draws_at_the_ends_of_the_interval_do_no_harm() -> None:
    betas = Betas.uniform(2)
    for _ in range(20):
        betas = betas.moved_to(np.array([[0.0, 1.0]]))
    assert np.isfinite([betas.a, betas.b]).all()
    assert betas.mean[0] < 0.2
    assert betas.mean[1] > 0.8


def quick(**parameters: Any) -> S2EClassifier:
    settings = {"rounds": 2, "trials": 2, "epochs": 2, "batch_size": 32, "random_state": 0}
    return S2EClassifier(**(settings | parameters))


def test_a_seed_gives_a_schedule_and_another_seed_another() -> None:
    data = sample(90)
    first, again, other = (
        quick(random_state=seed).fit(data.x, data.y_noisy).findings_ for seed in (0, 0, 1)
    )
    assert first["schedule"] == again["schedule"]
    assert first["trial_accuracies"] == again["trial_accuracies"]
    assert first["schedule"] != other["schedule"]
    assert first["schedule_searched"]
    assert np.shape(first["trial_accuracies"]) == (2, 2)


def test_the_best_trial_is_used() -> None:
    data = sample(90)
    model = quick().fit(data.x, data.y_noisy)
    lines = [line for line in model.history_ if line["stage"].startswith("search/")]
    assert {line["stage"] for line in lines} == {
        f"search/round-{r}/trial-{t}" for r in (1, 2) for t in (1, 2)
    }
    best = max((line for line in lines), key=lambda line: (line["val_accuracy"], -line["val_loss"]))
    assert best["val_accuracy"] == np.max(model.findings_["trial_accuracies"])


def test_without_validation_data_nothing_is_searched() -> None:
    data = sample(90)
    model = quick(validation_fraction=0.0).fit(data.x, data.y_noisy)
    assert not model.findings_["schedule_searched"]
    assert model.findings_["schedule"] == [0.5] * SIZE
    assert model.findings_["trial_accuracies"] == []
    assert model.findings_["passes"] == 4


def fit_in(directory: Path, stop_at: int | None) -> S2EClassifier:
    made = 0

    def stop() -> bool:
        nonlocal made
        made += 1
        return made == stop_at

    def workbench(**parts: Any) -> Workbench:
        store = DirectoryStore(directory, directory / "history.jsonl")
        return Workbench(store=store, stop_requested=stop, **parts)

    data = sample(90)
    return quick().fit_source(as_source(data.x, data.y_noisy), workbench)


@pytest.mark.parametrize("stop_at", [3, 15, 26])
def test_a_search_goes_on_where_it_was_and_leaves_no_weights_of_trials(
    stop_at: int, tmp_path: Path
) -> None:
    for name in ("whole", "stopped"):
        (tmp_path / name).mkdir()
    whole = fit_in(tmp_path / "whole", None)
    with pytest.raises(Interrupted):
        fit_in(tmp_path / "stopped", stop_at)
    resumed = fit_in(tmp_path / "stopped", None)
    assert weights_of(resumed.classifier_) == weights_of(whole.classifier_)
    assert resumed.findings_["schedule"] == whole.findings_["schedule"]
    assert resumed.findings_["passes"] == whole.findings_["passes"] == 2 * 2 * 5
    kept = {path.name for path in (tmp_path / "stopped").glob("*.safetensors")}
    assert kept == {"search.safetensors", "s2e.safetensors"}


def test_the_presets_keep_to_the_budget() -> None:
    planned = S2EClassifier().plan(10_000)
    assert len(planned) == 10
    assert sum(stage.work for stage in planned) / 10_000 == 96 <= BUDGET
    planned = S2EClassifier(preset="paper").plan(10_000)
    assert len(planned) == 61
    assert {stage.schedule for stage in planned} == {CT200}


def test_the_users_settings_reach_trials_and_training() -> None:
    *trials, training = S2EClassifier(epochs=8, batch_size=16, lr=0.5, trials=2).plan(100)
    assert len(trials) == 6
    assert {stage.schedule.epochs for stage in trials} == {3}
    assert training.schedule.epochs == 8
    assert {(s.schedule.batch_size, s.schedule.lr) for s in [*trials, training]} == {(16, 0.5)}


@pytest.mark.parametrize("name", ["rounds", "trials"])
def test_a_search_without_trials_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name}: must be at least 1, got 0"):
        S2EClassifier(**{name: 0}).plan(100)


def test_it_learns() -> None:
    data = sample(300)
    model = S2EClassifier(random_state=0, epochs=15).fit(data.x, data.y_noisy)
    assert (model.predict(data.x) == data.y_bayes).mean() > 0.75
