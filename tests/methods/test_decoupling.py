"""Decoupling learns where two networks disagree, and nowhere else."""

from copy import deepcopy

import numpy as np
import pytest
import torch

from bltm.core.errors import InputError
from bltm.engine.batches import Moment
from bltm.engine.protocol import CT200
from bltm.losses import cross_entropy
from bltm.methods.decoupling import DecouplingClassifier, disagreement_step
from engine.helpers import tiny_job, weights_of
from engine.pair_helpers import batch_of, fixed_pair, random_logits

from .helpers import sample

LABELS = [0, 1, 2] * 4
STEP = disagreement_step(0.0)


def differing(first: torch.Tensor, second: torch.Tensor) -> list[int]:
    return [
        row
        for row, (one, two) in enumerate(zip(first.tolist(), second.tolist(), strict=True))
        if one.index(max(one)) != two.index(max(two))
    ]


def test_networks_that_agree_learn_nothing() -> None:
    logits = random_logits(0)
    # Other probabilities, the same predictions.
    assert STEP(fixed_pair(logits, logits), batch_of(LABELS)) is None
    assert STEP(fixed_pair(logits, 3 * logits), batch_of(LABELS)) is None


def test_the_gradient_is_in_exactly_the_rows_that_differ() -> None:
    modules = fixed_pair(random_logits(0), random_logits(1))
    rows = differing(modules["classifier"].logits, modules["peer"].logits)
    assert 0 < len(rows) < 12
    loss = STEP(modules, batch_of(LABELS))
    assert loss is not None
    loss.backward()
    assert modules["classifier"].touched() == rows
    assert modules["peer"].touched() == rows


def test_the_loss_is_a_mean_over_disagreements_by_weight() -> None:
    modules = fixed_pair(random_logits(0), random_logits(1))
    first, second = (m.logits.detach() for m in modules.values())
    weight = torch.arange(1.0, 13.0)
    rows = differing(first, second)
    labels = torch.tensor(LABELS)
    losses = (cross_entropy(first, labels) + cross_entropy(second, labels)).tolist()
    expected = sum(losses[i] * (i + 1) for i in rows) / sum(i + 1 for i in rows)
    loss = STEP(modules, batch_of(LABELS, weight=weight))
    assert loss is not None
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_all_examples_are_learned_in_the_warm_up_and_not_after_it() -> None:
    step = disagreement_step(0.25)
    differ = len(differing(random_logits(0), random_logits(1)))
    assert 0 < differ < 12
    for epoch, touched in ((0, 12), (1, 12), (2, differ)):
        modules = fixed_pair(random_logits(0), random_logits(1))
        loss = step(modules, batch_of(LABELS, Moment(epoch, 8)))
        assert loss is not None
        loss.backward()
        assert len(modules["classifier"].touched()) == touched


def test_a_stage_without_disagreement_leaves_the_weights_as_they_are() -> None:
    """Under Adam a loss of zero would still move them by momentum and weight decay."""
    job = tiny_job()
    net = job.new_classifier("stage")
    before = weights_of(net)
    schedule = DecouplingClassifier(epochs=2, batch_size=16).plan(60)[0].schedule
    # A network never disagrees with its copy.
    job.train("stage", {"classifier": net, "peer": deepcopy(net)}, STEP, schedule)
    assert weights_of(net) == before


def test_the_presets() -> None:
    (stage,) = DecouplingClassifier().plan(10_000)
    assert stage.work / 10_000 == 42
    (stage,) = DecouplingClassifier(preset="paper").plan(10_000)
    assert stage.schedule == CT200


def test_a_warm_up_that_is_no_share_is_refused() -> None:
    data = sample()
    with pytest.raises(InputError, match="warm_up: must be a share of the training, 0 to 1, got 2"):
        DecouplingClassifier(warm_up=2).plan(100)
    with pytest.raises(InputError, match="warm_up"):
        DecouplingClassifier(warm_up=-1.0).fit(data.x, data.y_noisy)


def test_it_learns() -> None:
    data = sample(300)
    model = DecouplingClassifier(random_state=0).fit(data.x, data.y_noisy)
    assert (model.predict(data.x) == data.y_bayes).mean() > 0.8
    assert np.isfinite(model.suspicion_.values).all()
