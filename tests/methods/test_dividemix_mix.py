"""The second half of DivideMix: labels refined and guessed, mixed examples, and their loss."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from bltm.core.random import torch_stream
from bltm.engine.batches import Batch, Moment
from bltm.methods.dividemix.mix import (
    CLEAN,
    NETWORKS,
    MixStep,
    co_refined,
    learner,
    mix_up,
    ramped,
    sharpened,
    warm_up_step,
)
from engine.helpers import weights_of

N, C = 9, 3


def probabilities(seed: int, n: int, n_classes: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (4 * torch.randn(n, n_classes, generator=generator, dtype=torch.float64)).softmax(1)


rows = st.builds(probabilities, st.integers(0, 10_000), st.integers(1, 5), st.integers(2, 6))


@given(rows, st.floats(0.05, 1.0))
def test_sharpening_keeps_the_argmax_and_the_simplex(
    probs: torch.Tensor, temperature: float
) -> None:
    sharp = sharpened(probs, temperature)
    assert torch.equal(sharp.argmax(1), probs.argmax(1))
    assert (sharp >= 0).all()
    torch.testing.assert_close(sharp.sum(1), torch.ones(len(probs), dtype=probs.dtype))
    assert (sharp.amax(1) >= probs.amax(1) - 1e-12).all()


@given(rows)
def test_sharpening_equals_its_formula(probs: torch.Tensor) -> None:
    powers = [[p ** (1 / 0.5) for p in row] for row in probs.tolist()]
    expected = [[p / sum(row) for p in row] for row in powers]
    torch.testing.assert_close(sharpened(probs, 0.5), torch.tensor(expected, dtype=probs.dtype))
    torch.testing.assert_close(sharpened(probs, 1.0), probs)


def test_a_label_that_is_certain_stays_so_and_a_tiny_temperature_is_no_trouble() -> None:
    certain = torch.tensor([[0.0, 1.0, 0.0]])
    assert torch.equal(sharpened(certain, 0.5), certain)
    assert sharpened(torch.tensor([[0.3, 0.3001, 0.3999]]), 1e-3).isfinite().all()


def test_co_refinement_is_between_label_and_prediction() -> None:
    predicted = torch.tensor([[0.2, 0.8], [0.6, 0.4]])
    labels = torch.tensor([0, 1])
    assert torch.equal(
        co_refined(predicted, labels, torch.tensor([1.0, 0.0])),
        torch.tensor([[1.0, 0.0], [0.6, 0.4]]),
    )


@pytest.mark.parametrize("alpha", [0.5, 4.0])
def test_mixed_examples_keep_the_larger_share_of_themselves(alpha: float) -> None:
    shares = []
    for seed in range(50):
        with torch_stream(seed, "mix"):
            inputs, targets = mix_up(torch.eye(N), torch.eye(N)[:, :4], alpha)
        own = inputs.diagonal()
        kept = {round(float(value), 5) for value in own if value < 1.0}
        assert len(kept) <= 1, "one coefficient for the whole batch"
        assert (own >= 0.5).all()
        torch.testing.assert_close(inputs.sum(1), torch.ones(N))
        torch.testing.assert_close(targets, inputs[:, :4])
        shares += list(kept)
    # E max(l, 1-l) for Beta(4, 4) is 0.637, for Beta(1/2, 1/2) it is 0.818.
    assert np.mean(shares) == pytest.approx({0.5: 0.818, 4.0: 0.637}[alpha], abs=0.05)


def test_the_unlabelled_loss_starts_from_nothing_and_is_all_there_after_the_ramp() -> None:
    moments = [Moment(epoch, 100, position, 8) for epoch in range(100) for position in range(4)]
    weights = [ramped(25.0, moment, 0.16) for moment in moments]
    # The warm-up has no unlabelled loss, and the main stage begins without.
    assert weights[0] == 0.0
    assert weights[4] == pytest.approx(25.0 / 16)
    assert np.allclose(np.diff(weights[:65]), 25.0 / 64)
    assert weights[64:] == [25.0] * (400 - 64)
    # The second network has what the first had, and a shorter training a shorter ramp.
    assert ramped(25.0, Moment(3, 100, 5, 8), 0.16) == ramped(25.0, Moment(3, 100, 1, 8), 0.16)
    assert ramped(25.0, Moment(1, 50, 0, 8), 0.16) == ramped(25.0, Moment(2, 100, 0, 8), 0.16)
    assert ramped(0.0, Moment(50, 100), 0.16) == 0.0


def test_the_first_network_learns_in_the_first_half_of_an_epoch() -> None:
    turns = [learner(Moment(position=position, positions=6)) for position in range(6)]
    assert turns == [0, 0, 0, 1, 1, 1]


def networks(make: Any = lambda: nn.Linear(4, C)) -> dict[str, nn.Module]:
    with torch_stream(0, "networks"):
        return {name: make() for name in NETWORKS}


def normalised() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, C))


def some_batch(n_labelled: int = 5, *, second_half: bool = False, epoch: int = 5) -> Batch:
    """Batch of which the division by the network that does not learn keeps the first labels."""
    rng = np.random.default_rng(1)
    w = np.where(np.arange(N) < n_labelled, 0.9, 0.2) + rng.uniform(-0.1, 0.1, N)
    memory = torch.zeros(20, 2)
    index = torch.from_numpy(rng.permutation(20)[:N])
    memory[index, 0 if second_half else 1] = torch.from_numpy(w).float()
    return Batch(
        index=index,
        x=torch.from_numpy(rng.standard_normal((N, 4))).float(),
        y=torch.from_numpy(rng.integers(C, size=N)),
        weight=torch.from_numpy(rng.uniform(0.5, 2.0, N)).float(),
        extras={},
        moment=Moment(epoch, 10, 3 if second_half else 1, 4, {CLEAN: memory}),
    )


def step(**changes: Any) -> MixStep:
    plain = MixStep(
        prior=torch.tensor([0.5, 0.3, 0.2]),
        lambda_u=25.0,
        ramp=0.2,
        alpha=4.0,
        temperature=0.5,
        threshold=0.5,
        augment=None,
    )
    return replace(plain, **changes)


def loss_of(settings: MixStep, modules: dict[str, nn.Module], batch: Batch) -> torch.Tensor:
    with torch_stream(3, "step"):
        return settings(modules, batch)


def by_hand(modules: dict[str, nn.Module], batch: Batch, settings: MixStep) -> float:
    """The loss written from Algorithm 1, example by example, with the same draws."""
    turn = int(batch.moment.position >= batch.moment.positions / 2)
    own, peer = modules[NETWORKS[turn]], modules[NETWORKS[1 - turn]]
    double = settings.augment is not None
    with torch_stream(3, "step"):
        views = [settings.augment(batch.x) for _ in range(2)] if double else [batch.x]
        share = float(torch.distributions.Beta(settings.alpha, settings.alpha).sample())
        partner = torch.randperm(len(views) * N).tolist()

    def predict(net: nn.Module, x: torch.Tensor) -> np.ndarray:
        return torch.softmax(net(x[None]), dim=1)[0].detach().double().numpy()

    w = batch.moment.memory[CLEAN][batch.index, 1 - turn].tolist()
    targets = []
    for row in range(N):
        mine = np.mean([predict(own, view[row]) for view in views], axis=0)
        if w[row] > 0.5:
            one_hot = np.eye(C)[int(batch.y[row])]
            target = w[row] * one_hot + (1 - w[row]) * mine
        else:
            theirs = np.mean([predict(peer, view[row]) for view in views], axis=0)
            target = (mine + theirs) / 2
        target = target ** (1 / settings.temperature)
        targets.append(target / target.sum())
    inputs = torch.cat(views)
    share = max(share, 1 - share)
    labelled, unlabelled = [], []
    mean, total = np.zeros(C), 0.0
    for row in range(len(inputs)):
        mixed = share * inputs[row] + (1 - share) * inputs[partner[row]]
        target = share * targets[row % N] + (1 - share) * targets[partner[row] % N]
        probs, weight = predict(own, mixed), float(batch.weight[row % N])
        mean, total = mean + weight * probs, total + weight
        if w[row % N] > 0.5:
            labelled.append((weight, -(target * np.log(probs)).sum()))
        else:
            unlabelled.append((weight, ((probs - target) ** 2).mean()))

    def average(pairs: list[tuple[float, float]]) -> float:
        weights, values = zip(*pairs, strict=True)
        return float(np.average(values, weights=weights))

    done = batch.moment.epoch + (batch.moment.position % 2) / 2
    lambda_u = settings.lambda_u * min(1.0, done / (settings.ramp * batch.moment.epochs))
    loss = -(settings.prior.numpy() * np.log(mean / total)).sum()
    loss += average(labelled) if labelled else 0.0
    return float(loss + (lambda_u * average(unlabelled) if unlabelled else 0.0))


def shaken(x: torch.Tensor) -> torch.Tensor:
    return x + 0.1 * torch.rand_like(x)


@pytest.mark.parametrize("augment", [None, shaken])
@pytest.mark.parametrize("second_half", [False, True])
@pytest.mark.parametrize(("n_labelled", "epoch"), [(5, 5), (5, 0), (N, 5), (0, 5), (1, 1)])
def test_the_loss_of_a_step_equals_algorithm_1(
    n_labelled: int, epoch: int, second_half: bool, augment: Any
) -> None:
    modules, settings = networks(), step(augment=augment)
    batch = some_batch(n_labelled, second_half=second_half, epoch=epoch)
    expected = by_hand(modules, batch, settings)
    loss = loss_of(settings, modules, batch).item()
    assert loss == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("second_half", [False, True])
def test_only_the_network_whose_turn_it_is_learns_and_the_other_stands_still(
    second_half: bool,
) -> None:
    modules, batch = networks(normalised), some_batch(second_half=second_half)
    active, frozen = (modules[name] for name in (NETWORKS[::-1] if second_half else NETWORKS))
    for module in modules.values():
        module.train()
    before, moving = weights_of(frozen), weights_of(active)
    loss_of(step(), modules, batch).backward()
    assert weights_of(frozen) == before, "not even its batch statistics move"
    assert weights_of(active) != moving
    assert all(parameter.grad is None for parameter in frozen.parameters())
    assert all(parameter.grad is not None for parameter in active.parameters())
    assert not frozen.training
    assert active.training


def test_labels_of_unlabelled_examples_and_the_own_division_have_no_influence() -> None:
    modules, batch = networks(), some_batch()
    expected = loss_of(step(), modules, batch)
    other_labels = torch.cat([batch.y[:5], (batch.y[5:] + 1) % C])
    assert torch.equal(loss_of(step(), modules, replace(batch, y=other_labels)), expected)
    changed = {CLEAN: batch.moment.memory[CLEAN].clone()}
    changed[CLEAN][:, 0] = 1.0
    own = replace(batch, moment=replace(batch.moment, memory=changed))
    assert torch.equal(loss_of(step(), modules, own), expected)
    changed[CLEAN][:, 1] *= 0.95
    assert not torch.equal(loss_of(step(), modules, own), expected)


def test_guessed_labels_come_from_both_networks() -> None:
    modules, batch = networks(), some_batch()
    expected = loss_of(step(), modules, batch)
    with torch.no_grad():
        modules["second"].bias.add_(torch.tensor([2.0, 0.0, 0.0]))  # type: ignore[operator, union-attr]
    assert not torch.equal(loss_of(step(), modules, batch), expected)
    alone = some_batch(N)
    same = loss_of(step(), modules, alone)
    with torch.no_grad():
        modules["second"].bias.zero_()  # type: ignore[operator]
    assert torch.equal(loss_of(step(), modules, alone), same)


@pytest.mark.parametrize("penalty", [False, True])
def test_the_warm_up_is_cross_entropy_of_both_less_their_entropy(penalty: bool) -> None:
    modules, batch = networks(), some_batch()
    expected = torch.zeros(N)
    for module in modules.values():
        log_probs = module(batch.x).log_softmax(1)
        for row in range(N):
            expected[row] -= log_probs[row, batch.y[row]].detach()
            if penalty:
                expected[row] += (log_probs[row].exp() * log_probs[row]).sum().detach()
    torch.testing.assert_close(warm_up_step(penalty, modules, batch), expected)
