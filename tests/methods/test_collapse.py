"""A run that breaks down says so."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bltm.core.errors import CollapseWarning, TrainingError
from bltm.nets.ensemble import last_member

from .helpers import quick_bltm, quick_cross_entropy, sample

QUICK = [quick_cross_entropy, quick_bltm]


class Constant(nn.Module):
    """Does not look at its input."""

    def __init__(self, n_outputs: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(n_outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.logits.expand(len(x), -1)


@pytest.mark.parametrize("make", QUICK)
def test_a_constant_prediction_is_warned_of(make: Any) -> None:
    data = sample()
    with pytest.warns(CollapseWarning, match="predicts one and the same class"):
        model = make(net=Constant).fit(data.x, data.y_noisy)
    assert len(np.unique(model.predict(data.x))) == 1


@pytest.mark.parametrize("make", QUICK)
@pytest.mark.filterwarnings("error::bltm.core.errors.CollapseWarning")
def test_a_sound_run_is_not_warned_of(make: Any) -> None:
    data = sample()
    make(epochs=15).fit(data.x, data.y_noisy)


@pytest.mark.parametrize(
    ("make", "stage"),
    [(quick_cross_entropy, "cross_entropy"), (quick_bltm, "warm_up/fold-1")],
)
def test_weights_that_are_not_numbers_stop_the_run_and_name_the_stage(
    make: Any, stage: str, tmp_path: Path
) -> None:
    data = sample()
    model = make().fit(data.x, data.y_noisy)
    weights = last_member(model.classifier_).state_dict()
    weights["fc.bias"][0] = float("nan")
    torch.save(weights, tmp_path / "weights.pt")
    with pytest.raises(TrainingError, match=f"'{stage}' is nan"):
        make(weights=tmp_path / "weights.pt").fit(data.x, data.y_noisy)


@pytest.mark.parametrize("make", QUICK)
def test_a_learning_rate_that_is_much_too_high_is_told(make: Any) -> None:
    data = sample()
    with pytest.raises(TrainingError, match=r"Lower the learning rate \(it is 1e\+30\)"):
        make(lr=1e30).fit(data.x, data.y_noisy)
