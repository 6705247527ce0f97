"""How much of a batch is kept, and which settings are refused."""

import math
from typing import Any

import pytest

from bltm.core.errors import InputError
from bltm.engine.batches import Moment
from bltm.engine.forgetting import Forgetting, check_share


def test_the_ramp_is_a_share_of_the_epochs() -> None:
    forgetting = Forgetting(0.4, ramp=0.05)
    kept = [forgetting.keep(Moment(epoch, 200)) for epoch in range(200)]
    assert kept == pytest.approx([1 - 0.4 * min(epoch / 10, 1) for epoch in range(200)])
    assert forgetting.keep(Moment(1, 20)) == pytest.approx(0.6)


def test_a_rate_is_that_of_a_whole_epoch() -> None:
    forgetting = Forgetting(0.4, ramp=0.5)
    assert {forgetting.keep(Moment(2, 10, position, 7)) for position in range(7)} == {0.84}


def test_the_authors_loop_starts_with_the_second_entry_of_the_table() -> None:
    forgetting = Forgetting(0.45, 0.05, mode="code")
    kept = [forgetting.keep(Moment(epoch, 200)) for epoch in range(199)]
    assert kept[:9] == pytest.approx([1 - 0.45 * entry / 9 for entry in range(1, 10)])
    assert kept[9:] == pytest.approx([0.55] * 190)


def test_without_a_ramp_all_wrong_labels_are_left_out_from_the_start() -> None:
    for mode in ("paper", "code"):
        assert Forgetting(0.3, 0.0, mode=mode).keep(Moment(0, 10)) == 0.7


@pytest.mark.parametrize(
    ("ramp", "exponent", "mode", "message"),
    [
        (-0.1, 1.0, "paper", "ramp: must be a share of the training, 0 to 1, got -0.1"),
        (1.5, 1.0, "paper", "ramp: "),
        (math.nan, 1.0, "paper", "ramp: "),
        (0.1, 0.0, "paper", "exponent: must be above 0"),
        (0.1, math.inf, "paper", "exponent: "),
        (0.1, 1.0, "both", "forget: unknown: 'both'. Use one of paper, code"),
    ],
)
def test_settings_that_cannot_be_are_refused(
    ramp: float, exponent: float, mode: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Forgetting(0.3, ramp, exponent, mode)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_settings_that_can_be_are_not(value: Any) -> None:
    check_share("warm_up", value)
    assert 0.0 <= Forgetting(0.3, value, 2.0, "code").keep(Moment(3, 9)) <= 1.0
