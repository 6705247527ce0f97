"""Small-loss selection against loops written from the formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bltm.losses import (
    exchange_loss,
    forget_rate,
    keep_count,
    kept_examples,
    self_paced_loss,
    small_loss,
    weighted_mean,
)

BATCHES = st.builds(
    lambda seed, n: torch.from_numpy(np.random.default_rng(seed).permutation(n) + 0.5),
    st.integers(0, 10_000),
    st.integers(1, 30),
)
SHARES = st.floats(0.0, 1.0)


def smallest(losses: list[float], keep: float) -> list[int]:
    """Sort example by example, the first of equals first."""
    count = max(1, math.floor(keep * len(losses) + 1e-9))
    return sorted(range(len(losses)), key=lambda i: (losses[i], i))[:count]


def mean_over(losses: list[float], weights: list[float], chosen: list[int]) -> float:
    return sum(losses[i] * weights[i] for i in chosen) / sum(weights[i] for i in chosen)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_the_papers_forget_rate(exponent: float) -> None:
    for epoch in range(200):
        expected = 0.45 * min(epoch**exponent / 10, 1)
        assert forget_rate(epoch, 0.45, 10, exponent) == pytest.approx(expected)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_the_codes_forget_rate_is_its_table(exponent: float) -> None:
    table = np.ones(200) * 0.45
    table[:10] = np.linspace(0, 0.45**exponent, 10)
    rates = [forget_rate(epoch, 0.45, 10, exponent, "code") for epoch in range(200)]
    np.testing.assert_allclose(rates, table)


def test_the_code_reaches_the_rate_an_epoch_early_and_jumps_with_an_exponent() -> None:
    assert forget_rate(9, 0.4, 10) == pytest.approx(0.36)
    assert forget_rate(9, 0.4, 10, mode="code") == pytest.approx(0.4)
    assert forget_rate(9, 0.4, 10, 2.0, "code") == pytest.approx(0.16)
    assert forget_rate(10, 0.4, 10, 2.0, "code") == pytest.approx(0.4)


@given(
    st.floats(0, 500),
    st.floats(0, 0.99),
    st.floats(0, 50),
    st.floats(0.1, 3),
    st.sampled_from(["paper", "code"]),
)
def test_a_forget_rate_is_a_share_and_ends_at_the_noise_rate(
    epoch: float, rate: float, ramp: float, exponent: float, mode: str
) -> None:
    value = forget_rate(epoch, rate, ramp, exponent, mode)
    # Below one a root is larger than its square: the table may climb above the rate.
    assert 0.0 <= value <= max(rate, rate**exponent) + 1e-12
    assert forget_rate(1e99, rate, ramp, exponent, mode) == pytest.approx(rate)
    assert forget_rate(epoch, rate, 0.0, exponent, mode) == rate


@pytest.mark.parametrize(
    ("forget", "count"), [(0.1, 115), (0.2, 102), (0.3, 89), (0.4, 76), (0.45, 70), (0.5, 64)]
)
def test_the_counts_of_a_batch_of_128(forget: float, count: int) -> None:
    assert keep_count(1 - forget, 128) == count


@given(st.integers(1, 300), st.data())
def test_rounding_errors_cost_no_example(n: int, data: st.DataObject) -> None:
    left_out = data.draw(st.integers(0, n))
    assert keep_count(1 - left_out / n, n) == max(1, n - left_out)


@given(SHARES, st.integers(1, 300))
def test_at_least_one_example_is_kept_and_at_most_all(keep: float, n: int) -> None:
    assert 1 <= keep_count(keep, n) <= n
    assert keep_count(1.0, n) == n


@given(BATCHES, SHARES)
def test_small_losses_are_those_of_a_slow_sort(losses: torch.Tensor, keep: float) -> None:
    chosen = small_loss(losses, keep_count(keep, len(losses)))
    assert chosen.tolist() == smallest(losses.tolist(), keep)


@given(BATCHES, SHARES, st.integers(0, 1000))
def test_a_permuted_batch_gives_the_same_examples(
    losses: torch.Tensor, keep: float, seed: int
) -> None:
    count = keep_count(keep, len(losses))
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(losses)))
    assert set(order[small_loss(losses[order], count)].tolist()) == set(
        small_loss(losses, count).tolist()
    )


def test_of_equal_losses_the_first_are_kept() -> None:
    # Long enough for a sort that is not stable to show.
    assert small_loss(torch.zeros(1000), 300).tolist() == list(range(300))


@given(BATCHES, SHARES, st.integers(0, 1000))
def test_trusted_examples_are_kept_and_the_share_is_one_of_the_others(
    losses: torch.Tensor, keep: float, seed: int
) -> None:
    trusted = torch.from_numpy(np.random.default_rng(seed).random(len(losses)) < 0.4)
    sure = trusted.nonzero().squeeze(1).tolist()
    others = [i for i in range(len(losses)) if i not in sure]
    chosen = [others[i] for i in smallest(losses[others].tolist(), keep)] if others else []
    kept = kept_examples(losses, keep, trusted)
    assert sorted(kept.tolist()) == sorted(sure + chosen)
    assert torch.equal(
        kept_examples(losses, keep, torch.zeros_like(trusted)), kept_examples(losses, keep)
    )


@given(BATCHES, SHARES)
def test_the_self_paced_loss_is_its_formula(losses: torch.Tensor, keep: float) -> None:
    weights = torch.arange(1.0, len(losses) + 1, dtype=losses.dtype)
    expected = mean_over(losses.tolist(), weights.tolist(), smallest(losses.tolist(), keep))
    assert float(self_paced_loss(losses, weights, keep)) == pytest.approx(expected)


@given(BATCHES, SHARES, st.integers(0, 1000))
def test_the_exchange_loss_is_its_formula(first: torch.Tensor, keep: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    second = torch.from_numpy(rng.permutation(len(first)) + 0.25)
    weights = torch.from_numpy(rng.uniform(0.1, 3.0, len(first)))
    one, two, w = first.tolist(), second.tolist(), weights.tolist()
    expected = mean_over(one, w, smallest(two, keep)) + mean_over(two, w, smallest(one, keep))
    loss = exchange_loss(first, second, weights, keep)
    assert float(loss) == pytest.approx(expected)
    assert float(exchange_loss(second, first, weights, keep)) == pytest.approx(float(loss))


@given(BATCHES, SHARES)
def test_equal_networks_exchange_what_one_would_keep(losses: torch.Tensor, keep: float) -> None:
    weights = torch.ones_like(losses)
    both = exchange_loss(losses, losses, weights, keep)
    assert float(both) == pytest.approx(2 * float(self_paced_loss(losses, weights, keep)))


@given(BATCHES)
def test_keeping_everything_is_the_plain_mean(losses: torch.Tensor) -> None:
    weights = torch.ones_like(losses)
    assert float(self_paced_loss(losses, weights, 1.0)) == pytest.approx(float(losses.mean()))


@given(SHARES)
def test_the_scale_of_the_loss_does_not_depend_on_how_many_are_kept(keep: float) -> None:
    """A mean that is divided by the count again is about a hundredth of what it should be."""
    losses, weights = torch.full((128,), 3.0), torch.ones(128)
    assert float(self_paced_loss(losses, weights, keep)) == pytest.approx(3.0)
    assert float(exchange_loss(losses, losses, weights, keep)) == pytest.approx(6.0)


def test_each_network_learns_from_the_choice_of_the_other_alone() -> None:
    first = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    second = torch.tensor([4.0, 3.0, 2.0, 1.0], requires_grad=True)
    exchange_loss(first, second, torch.tensor([1.0, 1.0, 1.0, 3.0]), 0.5).backward()
    assert first.grad is not None
    assert second.grad is not None
    torch.testing.assert_close(first.grad, torch.tensor([0.0, 0.0, 0.25, 0.75]))
    torch.testing.assert_close(second.grad, torch.tensor([0.5, 0.5, 0.0, 0.0]))


def test_a_weight_of_two_counts_like_two_copies_in_a_mean() -> None:
    losses = torch.tensor([1.0, 5.0, 5.0])
    twice = weighted_mean(losses[:2], torch.tensor([1.0, 2.0]))
    torch.testing.assert_close(twice, losses.mean())
