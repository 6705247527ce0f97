"""T*(x) departs from one matrix for all x as far as held-out noisy labels bear it out."""

import numpy as np
import pytest
import torch
from torch import nn

from bltm import BLTMClassifier
from bltm.core.records import Posterior, Split
from bltm.engine.job import Job
from bltm.engine.workbench import Workbench
from bltm.methods.bltm.hold_back import LEAST_LABELS, hold_back
from bltm.nets.heads import DenseHead
from bltm.nets.transition import TransitionNetwork
from engine.helpers import FABRIC, noisy_data

BASE = np.array([[0.7, 0.3], [0.3, 0.7]])


def network_by_first_feature() -> TransitionNetwork:
    """Labels flip more often the larger the first feature is."""
    head = DenseHead(4, 2, BASE)
    with torch.no_grad():
        head.residual.weight.view(2, 2, 4)[[0, 1], [1, 0], 0] = 2.0
    return TransitionNetwork(nn.Identity(), head)


def two_classes(
    depends: bool, held_out: int = 1000, trusted: bool = False, silent: bool = False
) -> tuple[Job, Posterior]:
    """Flips by the first feature, or at one rate for all, and a classifier that knows the rest.

    ``silent`` gives weight to a tenth of the examples only, whose labels flip at one rate.
    """
    rng = np.random.default_rng(0)
    x = rng.standard_normal((held_out + 10, 4)).astype(np.float32)
    right = rng.integers(2, size=len(x))
    alike = np.arange(len(x)) % 10 == 0 if silent else np.full(len(x), not depends)
    rate = np.where(alike, 0.3, 1 / (1 + np.exp(-2 * x[:, 0] + np.log(7 / 3))))
    labels = np.where(rng.random(len(x)) < rate, 1 - right, right)
    mask = np.full(len(x), trusted)
    data = noisy_data(x, labels, 2, alike.astype(float) if silent else None, mask)
    split = Split(np.arange(10), np.arange(10, len(x)))
    probs = np.full((len(x), 2), 0.02, dtype=np.float32)
    probs[np.arange(len(x)), right] = 0.98
    job = Job(data, split, Workbench(fabric=FABRIC, seed=0), "mlp")
    return job, Posterior(probs, False, "test")


@pytest.mark.parametrize(("depends", "share"), [(True, 1.0), (False, 0.0)])
def test_held_out_labels_decide(depends: bool, share: float) -> None:
    network, learned = network_by_first_feature(), network_by_first_feature()
    job, belief = two_classes(depends)
    assert hold_back(job, network, belief) == share
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    expected = learned.matrix(x) if depends else torch.from_numpy(BASE).float().expand(3, 2, 2)
    torch.testing.assert_close(network.matrix(x), expected)


@pytest.mark.parametrize(
    "options", [{"held_out": LEAST_LABELS - 1}, {"trusted": True}], ids=["few", "trusted"]
)
def test_without_enough_noisy_labels_nothing_is_held_back(options: dict[str, int]) -> None:
    network = network_by_first_feature()
    before = network.head.residual.weight.clone()  # type: ignore[union-attr, operator]
    job, belief = two_classes(False, **options)  # type: ignore[arg-type]
    assert hold_back(job, network, belief) == 1.0
    assert torch.equal(network.head.residual.weight, before)  # type: ignore[union-attr, arg-type]


def test_weights_count() -> None:
    job, belief = two_classes(True, held_out=4000, silent=True)
    assert hold_back(job, network_by_first_feature(), belief) == 0.0


def test_the_fit_tells_what_is_left_and_chooses_a_length_once() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=4000)
    x = (2 * np.eye(3, 4)[y] + rng.standard_normal((4000, 4))).astype(np.float32)
    noisy = np.where(rng.random(4000) < 0.2, rng.integers(3, size=4000), y)
    found = BLTMClassifier(random_state=0).fit(x, noisy).findings_
    assert len(found["departure"]) == 2
    assert set(found["lengths"]) == {"round-1/correct"}
