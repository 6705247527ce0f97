"""Two networks in one stage."""

import numpy as np
import pytest
import torch
from torch import nn

from bltm.core.errors import InputError
from bltm.engine.batches import Batch
from bltm.engine.pairs import (
    conclude_pair,
    exchange_step,
    fit_pair,
    pair_logits,
    plan_pair,
)
from bltm.engine.posteriors import network_probs
from bltm.engine.schedule import Schedule
from bltm.engine.stage import Modules
from bltm.engine.supervised import fit_cross_entropy
from bltm.losses import cross_entropy

from .helpers import tiny_job, weights_of
from .pair_helpers import batch_of, fixed_pair, random_logits

SCHEDULE = Schedule(2, 0.01, "adamw", "one-cycle", batch_size=12, weight_decay=0.01)


def both(modules: Modules, batch: Batch) -> torch.Tensor:
    first, second = pair_logits(modules, batch)
    return cross_entropy(first, batch.y) + cross_entropy(second, batch.y)


def test_one_optimiser_over_both_trains_each_as_if_it_were_alone() -> None:
    pair = fit_pair(tiny_job(), "stage", SCHEDULE, both)
    alone = fit_cross_entropy(tiny_job(), "stage", SCHEDULE)
    assert weights_of(pair.classifier) == weights_of(alone)
    assert weights_of(pair.peer) != weights_of(alone)


def test_two_networks_are_two_passes() -> None:
    job = tiny_job()
    pair = fit_pair(job, "stage", SCHEDULE, both)
    n = len(job.split.train)
    assert pair.outcome.examples_seen == 2 * 2 * n == plan_pair("stage", SCHEDULE, n).work


def test_the_networks_start_from_different_weights() -> None:
    pair = fit_pair(tiny_job(), "stage", Schedule(0, 0.01), both)
    assert weights_of(pair.classifier) != weights_of(pair.peer)


def same_start(n_outputs: int) -> nn.Module:
    net = nn.Linear(4, n_outputs)
    nn.init.ones_(net.weight)
    nn.init.zeros_(net.bias)
    return net


def test_networks_that_are_equal_are_refused() -> None:
    with pytest.raises(InputError, match="net: gives two networks the same start"):
        fit_pair(tiny_job(net=same_start), "stage", SCHEDULE, both)


def test_the_exchange_reaches_the_rows_that_the_other_network_chose() -> None:
    labels = [0, 1, 2] * 4
    modules = fixed_pair(random_logits(0), random_logits(1))
    batch = batch_of(labels)
    losses = [cross_entropy(m.logits, batch.y).tolist() for m in modules.values()]
    chosen = [sorted(sorted(range(12), key=one.__getitem__)[:7]) for one in losses]
    loss = exchange_step(lambda moment: 0.6)(modules, batch)
    assert loss is not None
    loss.backward()
    assert modules["classifier"].touched() == chosen[1]
    assert modules["peer"].touched() == chosen[0]
    assert chosen[0] != chosen[1]


def test_trusted_labels_are_exchanged_whatever_their_loss() -> None:
    trusted = np.arange(60) % 2 == 0
    seen = []

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        seen.append((batch.index.numpy(), batch.extras["trusted"].numpy()))
        loss = exchange_step(lambda moment: 0.0)(modules, batch)
        assert loss is not None
        return loss

    fit_pair(tiny_job(trusted=trusted), "stage", SCHEDULE, step)
    for index, mask in seen:
        np.testing.assert_array_equal(mask, trusted[index])
    modules = fixed_pair(random_logits(0), random_logits(1))
    mask = torch.arange(12) < 4
    loss = exchange_step(lambda moment: 0.2)(modules, batch_of([0, 1, 2] * 4, trusted=mask))
    assert loss is not None
    loss.backward()
    assert modules["classifier"].touched()[:4] == [0, 1, 2, 3]
    assert len(modules["classifier"].touched()) == 5


def test_both_networks_judge_the_labels_and_the_first_predicts() -> None:
    trusted = np.arange(60) < 5
    job = tiny_job(trusted=trusted)
    pair = fit_pair(job, "stage", SCHEDULE, both)
    result = conclude_pair(job, pair, {"what": 1})
    everyone = np.arange(60)
    first, second = (network_probs(job, net) for net in (pair.classifier, pair.peer))
    np.testing.assert_array_equal(result.probs, first)
    mean = (first + second)[everyone, job.data.labels] / 2
    np.testing.assert_allclose(result.suspicion.values[5:], 1 - mean[5:], atol=1e-6)
    assert (result.suspicion.values[:5] == 0).all()
    assert result.suspicion.kind == "score"
    assert result.findings["what"] == 1
