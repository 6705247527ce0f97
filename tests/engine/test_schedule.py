import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from bltm.core.errors import InputError
from bltm.engine.schedule import Schedule, make_optimizer

sizes = st.integers(1, 40)


def test_constant_rate_is_the_same_at_every_step() -> None:
    schedule = Schedule(3, 0.2)
    assert {schedule.rate(step, 7) for step in range(21)} == {0.2}


def test_steps_divide_the_rate_by_ten_at_each_milestone() -> None:
    schedule = Schedule(6, 0.1, decay="steps", milestones=(2, 5))
    rates = [schedule.rate(10 * epoch + 9, 10) for epoch in range(6)]
    assert rates == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.01, 0.001])
    assert schedule.rate(20, 10) == pytest.approx(0.01)


def test_one_cycle_rises_linearly_for_a_quarter_and_falls_as_half_a_cosine() -> None:
    schedule = Schedule(10, 0.8, decay="one-cycle")
    assert schedule.rate(0, 4) == pytest.approx(0.08)
    assert schedule.rate(4, 4) == pytest.approx(0.4)
    assert schedule.rate(9, 4) == schedule.rate(10, 4) == 0.8
    assert schedule.rate(25, 4) == pytest.approx(0.4)
    assert schedule.rate(39, 4) == pytest.approx(0.4 * (1 - math.cos(math.pi / 30)))


@given(epochs=sizes, per_epoch=sizes, lr=st.floats(1e-6, 10.0))
def test_one_cycle_has_one_peak_of_the_given_rate(epochs: int, per_epoch: int, lr: float) -> None:
    schedule = Schedule(epochs, lr, decay="one-cycle")
    rates = [schedule.rate(step, per_epoch) for step in range(epochs * per_epoch)]
    peak = rates.index(max(rates))
    assert max(rates) == pytest.approx(lr)
    assert min(rates) > 0 or len(rates) < 3
    assert rates[: peak + 1] == sorted(rates[: peak + 1])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)


@given(
    n=st.integers(1, 5000),
    epochs=sizes,
    batch_size=st.integers(1, 300),
    min_steps=st.integers(1, 400),
)
def test_a_schedule_fitted_to_small_data_makes_enough_steps(
    n: int, epochs: int, batch_size: int, min_steps: int
) -> None:
    schedule = Schedule(epochs, 0.1, batch_size=batch_size, min_steps=min_steps)
    fitted = schedule.fitted_to(n)
    assert 1 <= fitted.batch_size <= batch_size
    assert fitted.epochs >= epochs
    assert fitted.epochs * math.ceil(n / fitted.batch_size) >= min(min_steps, max(50, n))
    if fitted.epochs > epochs:
        assert (fitted.epochs - 1) * math.ceil(n / fitted.batch_size) < min_steps


@given(n=st.integers(0, 100), epochs=st.integers(0, 5))
def test_a_schedule_without_least_steps_is_kept_to_on_small_data(n: int, epochs: int) -> None:
    schedule = Schedule(epochs, 0.1)
    assert schedule.fitted_to(n) == schedule


def test_large_data_keeps_epochs_and_batch_size() -> None:
    schedule = Schedule(12, 0.1, min_steps=200)
    assert schedule.fitted_to(50_000) == schedule


def test_epochs_of_the_user_are_kept_to_on_small_data() -> None:
    schedule = Schedule(12, 0.1, min_steps=200).overridden(epochs=3)
    assert schedule.fitted_to(30).epochs == 3


@pytest.mark.parametrize(
    ("argument", "values"),
    [
        ("epochs", {"epochs": -1, "lr": 0.1}),
        ("batch_size", {"epochs": 1, "lr": 0.1, "batch_size": 0}),
        ("epochs", {"epochs": 1.5, "lr": 0.1}),
        ("batch_size", {"epochs": 1, "lr": 0.1, "batch_size": 16.0}),
        ("lr", {"epochs": 1, "lr": math.nan}),
        ("lr", {"epochs": 1, "lr": -1.0}),
    ],
)
def test_impossible_values_are_refused_by_name(argument: str, values: dict[str, float]) -> None:
    with pytest.raises(InputError) as error:
        Schedule(**values)  # type: ignore[arg-type]
    assert error.value.argument == argument


def test_an_unknown_optimizer_is_refused() -> None:
    with pytest.raises(InputError, match="optimizer: unknown: 'lion'"):
        make_optimizer({"net": nn.Linear(1, 1)}, Schedule(1, 0.1, "lion"))  # type: ignore[arg-type]


def test_a_module_with_a_rate_of_its_own_is_not_decayed() -> None:
    modules = {"net": nn.Linear(1, 1), "offset": nn.Linear(1, 1)}
    optimizer = make_optimizer(modules, Schedule(1, 0.1, weight_decay=0.5), {"offset": 2.0})
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.5, 0.0]
    assert [group["factor"] for group in optimizer.param_groups] == [1.0, 2.0]
    assert isinstance(optimizer, torch.optim.SGD)
