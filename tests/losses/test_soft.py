"""Losses on soft labels against loops written from their formulas."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bltm.losses import cross_entropy, entropy, prior_cross_entropy, soft_cross_entropy

Problem = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
DTYPES = [torch.float32, torch.float64]


def random_problem(
    seed: int, n: int, n_classes: int, dtype: torch.dtype = torch.float64
) -> Problem:
    """Logits, soft labels and weights."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(n, n_classes, generator=generator, dtype=dtype)
    targets = (2 * torch.randn(n, n_classes, generator=generator, dtype=dtype)).softmax(-1)
    weights = 0.1 + torch.rand(n, generator=generator, dtype=dtype)
    return logits, targets, weights


problems = st.builds(random_problem, st.integers(0, 10_000), st.integers(1, 6), st.integers(2, 6))


def probabilities(logits: list[float]) -> list[float]:
    total = sum(math.exp(z) for z in logits)
    return [math.exp(z) / total for z in logits]


@pytest.mark.parametrize("dtype", DTYPES)
def test_soft_cross_entropy_equals_its_formula(dtype: torch.dtype) -> None:
    logits, targets, _ = random_problem(0, 6, 4, dtype)
    expected = [
        -sum(s * math.log(p) for s, p in zip(soft, probabilities(z), strict=True))
        for z, soft in zip(logits.tolist(), targets.tolist(), strict=True)
    ]
    loss = soft_cross_entropy(logits, targets)
    assert loss.dtype == dtype
    torch.testing.assert_close(loss, torch.tensor(expected, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_entropy_equals_its_formula(dtype: torch.dtype) -> None:
    logits, _, _ = random_problem(1, 6, 4, dtype)
    expected = [-sum(p * math.log(p) for p in probabilities(z)) for z in logits.tolist()]
    torch.testing.assert_close(entropy(logits), torch.tensor(expected, dtype=dtype))


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_prior_cross_entropy_equals_its_formula(dtype: torch.dtype, weighted: bool) -> None:
    logits, targets, weights = random_problem(2, 6, 4, dtype)
    prior = targets[0]
    each = weights.tolist() if weighted else [1.0] * 6
    rows = [probabilities(z) for z in logits.tolist()]
    expected = 0.0
    for k in range(4):
        mean = sum(w * row[k] for w, row in zip(each, rows, strict=True)) / sum(each)
        expected -= float(prior[k]) * math.log(mean)
    loss = prior_cross_entropy(logits, prior, weights if weighted else None)
    assert loss.ndim == 0
    torch.testing.assert_close(loss, torch.tensor(expected, dtype=dtype))


@settings(max_examples=30)
@given(problems)
def test_a_hard_label_gives_cross_entropy(problem: Problem) -> None:
    logits, targets, _ = problem
    labels = targets.argmax(-1)
    one_hot = torch.nn.functional.one_hot(labels, logits.shape[1]).to(logits.dtype)
    torch.testing.assert_close(soft_cross_entropy(logits, one_hot), cross_entropy(logits, labels))


@settings(max_examples=30)
@given(problems)
def test_the_gradient_of_soft_cross_entropy_is_prediction_less_label(problem: Problem) -> None:
    logits, targets, _ = problem
    logits.requires_grad_()
    soft_cross_entropy(logits, targets).sum().backward()
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, logits.detach().softmax(-1) - targets)


@settings(max_examples=30)
@given(problems)
def test_entropy_lies_between_zero_and_log_c(problem: Problem) -> None:
    logits, _, _ = problem
    values = entropy(logits)
    assert (values >= 0).all()
    assert (values <= math.log(logits.shape[1]) + 1e-12).all()


@settings(max_examples=30)
@given(problems)
def test_the_prior_is_the_best_mean_prediction(problem: Problem) -> None:
    logits, targets, weights = problem
    prior = targets[0]
    least = -(prior * prior.log()).sum()
    assert prior_cross_entropy(logits, prior, weights) >= least - 1e-12
    at_prior = prior.log().expand(len(logits), -1)
    torch.testing.assert_close(prior_cross_entropy(at_prior, prior, weights), least)


@settings(max_examples=20)
@given(problems, st.integers(1, 4))
def test_a_weight_in_the_mean_counts_like_copies(problem: Problem, copies: int) -> None:
    logits, targets, _ = problem
    weights = torch.ones(len(logits), dtype=logits.dtype)
    weights[0] = copies
    repeated = torch.cat([logits[:1].expand(copies - 1, -1), logits])
    torch.testing.assert_close(
        prior_cross_entropy(logits, targets[0], weights), prior_cross_entropy(repeated, targets[0])
    )


def test_extreme_logits_stay_finite_with_their_gradients() -> None:
    logits = torch.tensor([[0.0, 300.0], [-500.0, 500.0]], requires_grad=True)
    prior = torch.tensor([1.0, 0.0])
    targets = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    total = soft_cross_entropy(logits, targets).sum() + entropy(logits).sum()
    total = total + prior_cross_entropy(logits, prior)
    total.backward()
    assert total.isfinite()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


def test_a_class_of_no_frequency_adds_nothing() -> None:
    logits = torch.tensor([[0.0, 0.0, -1e4], [0.0, 0.0, -1e4]])
    prior = torch.tensor([0.5, 0.5, 0.0])
    assert prior_cross_entropy(logits, prior).exp() == pytest.approx(2.0)
