"""Generalised cross-entropy against its formula, its limits and its gradient."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bltm.losses import cross_entropy, generalised_cross_entropy, truncated_gce

Problem = tuple[torch.Tensor, torch.Tensor]


def random_problem(
    seed: int, n: int, n_classes: int, dtype: torch.dtype = torch.float64
) -> Problem:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(n, n_classes, generator=generator, dtype=dtype)
    return logits, torch.randint(n_classes, (n,), generator=generator)


problems = st.builds(random_problem, st.integers(0, 10_000), st.integers(1, 6), st.integers(2, 6))


def gradient(loss: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    (result,) = torch.autograd.grad(loss.sum(), logits)
    return result


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("q", [0.1, 0.7, 1.0])
def test_it_equals_its_formula(q: float, dtype: torch.dtype) -> None:
    logits, labels = random_problem(0, 8, 4, dtype)
    expected = []
    for z, y in zip(logits.tolist(), labels.tolist(), strict=True):
        p = math.exp(z[y]) / sum(math.exp(v) for v in z)
        expected.append((1.0 - p**q) / q)
    loss = generalised_cross_entropy(logits, labels, q)
    assert loss.dtype == dtype
    torch.testing.assert_close(loss, torch.tensor(expected, dtype=dtype))


@settings(max_examples=30)
@given(problems)
def test_small_q_gives_cross_entropy(problem: Problem) -> None:
    logits, labels = problem
    torch.testing.assert_close(
        generalised_cross_entropy(logits, labels, 1e-6),
        cross_entropy(logits, labels),
        rtol=1e-4,
        atol=1e-5,
    )


def test_small_q_keeps_its_digits_in_single_precision() -> None:
    logits, labels = random_problem(1, 50, 5, torch.float32)
    torch.testing.assert_close(
        generalised_cross_entropy(logits, labels, 1e-8), cross_entropy(logits, labels)
    )


@settings(max_examples=30)
@given(problems)
def test_q_of_one_gives_the_mean_absolute_error(problem: Problem) -> None:
    logits, labels = problem
    p = logits.softmax(-1).gather(1, labels[:, None]).squeeze(1)
    torch.testing.assert_close(generalised_cross_entropy(logits, labels, 1.0), 1.0 - p)


@settings(max_examples=30)
@given(problems, st.floats(0.05, 1.0))
def test_the_gradient_is_that_of_cross_entropy_times_p_to_the_q(problem: Problem, q: float) -> None:
    logits, labels = problem
    logits.requires_grad_()
    p = logits.detach().softmax(-1).gather(1, labels[:, None])
    expected = p**q * gradient(cross_entropy(logits, labels), logits)
    torch.testing.assert_close(
        gradient(generalised_cross_entropy(logits, labels, q), logits), expected
    )


@pytest.mark.parametrize("q", [0.01, 0.3, 0.7, 1.0])
def test_the_gradient_is_finite_at_any_probability(q: float) -> None:
    logits = torch.tensor([[0.0, 40.0], [0.0, 300.0], [-1e4, 1e4], [1e4, -1e4]], requires_grad=True)
    labels = torch.zeros(4, dtype=torch.int64)
    loss = generalised_cross_entropy(logits, labels, q)
    assert loss.isfinite().all()
    slope = gradient(loss, logits)
    assert slope.isfinite().all()
    # No floor under p: with a small q even a label of probability exp(-40) still pulls.
    assert slope[0, 1] == pytest.approx(math.exp(-40 * q), abs=1e-7)


def test_unlikely_labels_pull_less() -> None:
    logits = torch.tensor([[0.0, 1.0], [0.0, 5.0]], requires_grad=True)
    slope = gradient(generalised_cross_entropy(logits, torch.tensor([0, 0]), 0.7), logits).abs()
    assert slope[1].sum() < slope[0].sum()


def test_a_label_that_is_left_out_has_a_constant_loss_and_no_gradient() -> None:
    logits, labels = random_problem(2, 6, 3)
    logits.requires_grad_()
    kept = torch.tensor([True, False, True, True, False, True])
    loss = truncated_gce(logits, labels, kept, q=0.7, threshold=0.5)
    plain = generalised_cross_entropy(logits, labels, 0.7)
    torch.testing.assert_close(loss[kept], plain[kept])
    assert loss[~kept].tolist() == pytest.approx([(1 - 0.5**0.7) / 0.7] * 2)
    slope = gradient(loss, logits)
    assert torch.equal(slope[~kept], torch.zeros(2, 3, dtype=slope.dtype))
    torch.testing.assert_close(slope[kept], gradient(plain, logits)[kept])


def test_leaving_out_what_is_below_the_threshold_cuts_the_loss_off_there() -> None:
    logits, labels = random_problem(3, 40, 3)
    likely = logits.softmax(-1).gather(1, labels[:, None]).squeeze(1) > 0.5
    loss = truncated_gce(logits, labels, likely, 0.7, 0.5)
    plain = generalised_cross_entropy(logits, labels, 0.7)
    torch.testing.assert_close(loss, plain.clamp_max((1 - 0.5**0.7) / 0.7))
