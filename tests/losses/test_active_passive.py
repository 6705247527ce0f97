"""Normalised and reverse cross-entropy against their formulas and the symmetric-loss condition."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bltm.losses import normalised_cross_entropy, reverse_cross_entropy

A = math.log(1e-4)


def random_logits(seed: int, n: int, n_classes: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(n, n_classes, generator=generator, dtype=torch.float64)


logits_of_all_sizes = st.builds(
    random_logits, st.integers(0, 10_000), st.integers(1, 6), st.integers(2, 6)
)


def probabilities(logits: list[float]) -> list[float]:
    total = sum(math.exp(z) for z in logits)
    return [math.exp(z) / total for z in logits]


def test_normalised_cross_entropy_divides_by_the_sum_over_all_labels() -> None:
    logits, labels = random_logits(0, 5, 4), [0, 3, 1, 1, 2]
    expected = []
    for z, y in zip(logits.tolist(), labels, strict=True):
        logs = [math.log(p) for p in probabilities(z)]
        expected.append(logs[y] / sum(logs))
    loss = normalised_cross_entropy(logits, torch.tensor(labels))
    torch.testing.assert_close(loss, torch.tensor(expected, dtype=torch.float64))


def test_reverse_cross_entropy_is_that_of_a_clamped_one_hot_label() -> None:
    logits, labels = random_logits(1, 5, 4), [0, 3, 1, 1, 2]
    expected = []
    for z, y in zip(logits.tolist(), labels, strict=True):
        one_hot = [1.0 if k == y else 1e-4 for k in range(4)]
        terms = zip(probabilities(z), one_hot, strict=True)
        expected.append(-sum(p * math.log(label) for p, label in terms))
    loss = reverse_cross_entropy(logits, torch.tensor(labels))
    torch.testing.assert_close(loss, torch.tensor(expected, dtype=torch.float64))


def sum_over_labels(loss: object, logits: torch.Tensor) -> torch.Tensor:
    n, n_classes = logits.shape
    return sum(  # type: ignore[return-value]
        loss(logits, torch.full((n,), y))  # type: ignore[operator]
        for y in range(n_classes)
    )


@settings(max_examples=30)
@given(logits_of_all_sizes)
def test_both_losses_are_symmetric(logits: torch.Tensor) -> None:
    ones = torch.ones(len(logits), dtype=logits.dtype)
    torch.testing.assert_close(sum_over_labels(normalised_cross_entropy, logits), ones)
    total = -A * (logits.shape[1] - 1)
    torch.testing.assert_close(sum_over_labels(reverse_cross_entropy, logits), total * ones)


@settings(max_examples=20)
@given(logits_of_all_sizes, st.floats(0.0, 0.6))
def test_uniform_noise_scales_the_gradient_and_keeps_its_direction(
    logits: torch.Tensor, rate: float
) -> None:
    n, n_classes = logits.shape
    logits.requires_grad_()
    labels = torch.zeros(n, dtype=torch.int64)
    for loss in (normalised_cross_entropy, reverse_cross_entropy):
        (clean,) = torch.autograd.grad(loss(logits, labels).sum(), logits)
        other = (sum_over_labels(loss, logits) - loss(logits, labels)) / (n_classes - 1)
        noisy_loss = (1 - rate) * loss(logits, labels) + rate * other
        (noisy,) = torch.autograd.grad(noisy_loss.sum(), logits)
        factor = 1 - rate * n_classes / (n_classes - 1)
        torch.testing.assert_close(noisy, factor * clean)


@pytest.mark.parametrize("loss", [normalised_cross_entropy, reverse_cross_entropy])
def test_extreme_logits_stay_finite_with_their_gradients(loss: object) -> None:
    logits = torch.tensor([[0.0, 300.0], [-1e4, 1e4], [1e4, -1e4]], requires_grad=True)
    values = loss(logits, torch.zeros(3, dtype=torch.int64))  # type: ignore[operator]
    assert values.isfinite().all()
    values.sum().backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
