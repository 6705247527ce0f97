"""The bound on lost classes against a loop, and its gradient against that of the mean."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bltm.losses import lost_classes


def random_batch(seed: int, n: int, n_classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(n, n_classes, generator=generator, dtype=torch.float64)
    least = torch.rand(n_classes, generator=generator, dtype=torch.float64)
    return logits, least / least.sum()


def formula(probs: list[list[float]], weights: list[float], least: list[float]) -> float:
    total = 0.0
    for j, l_j in enumerate(least):
        m_j = sum(w * row[j] for w, row in zip(weights, probs, strict=True)) / sum(weights)
        total += l_j * max(0.0, math.log(l_j / m_j))
    return total


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(2, 6))
def test_its_mean_equals_the_formula(seed: int, n: int, n_classes: int) -> None:
    logits, least = random_batch(seed, n, n_classes)
    probs = logits.softmax(-1)
    expected = formula(probs.tolist(), [1.0] * n, least.tolist())
    loss = lost_classes(probs, probs.mean(0), least)
    assert loss.shape == (n,)
    assert float(loss.mean()) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 5))
def test_weighted_parts_have_the_gradient_of_the_whole(seed: int, n_classes: int) -> None:
    """As several processes compute it, each of them on some rows of the batch."""
    logits, least = random_batch(seed, 9, n_classes)
    weights = torch.linspace(0.5, 2.0, 9, dtype=torch.float64)
    whole, parts = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    mean = weights @ whole.softmax(-1) / weights.sum()
    (least * torch.relu((least / mean).log())).sum().backward()
    for rows in (slice(0, 4), slice(4, 9)):
        losses = lost_classes(parts[rows].softmax(-1), mean.detach(), least)
        (losses @ weights[rows] / weights.sum()).backward()
    torch.testing.assert_close(parts.grad, whole.grad)


def test_nothing_is_asked_where_no_class_falls_short() -> None:
    probs = torch.tensor([[0.7, 0.3], [0.4, 0.6]], requires_grad=True)
    loss = lost_classes(probs, probs.detach().mean(0), torch.tensor([0.3, 0.0]))
    assert torch.equal(loss, torch.zeros(2))
    loss.sum().backward()
    assert probs.grad is not None
    assert (probs.grad == 0).all()


def test_a_class_that_is_gone_is_called_for_with_finite_force() -> None:
    logits = torch.tensor([[100.0, 0.0], [5.0, -20.0]], requires_grad=True)
    probs = logits.softmax(-1)
    loss = lost_classes(probs, probs.detach().mean(0), torch.tensor([0.2, 0.2]))
    assert loss.isfinite().all()
    assert loss.mean() > 1.0
    loss.mean().backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
    # The example that is nearest to the class.
    assert logits.grad[1, 1] < 0
