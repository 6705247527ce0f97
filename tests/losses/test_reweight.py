"""Importance reweighting against its formula, and against what public code gets wrong."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bltm.core.matrix import log_entries
from bltm.losses import cross_entropy, importance_weights, reweighted_cross_entropy
from bltm.losses.reweight import MOST
from bltm.transition.revision import Revision

Problem = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def random_problem(seed: int, n: int, n_classes: int) -> Problem:
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, n_classes, generator=generator, dtype=torch.float64)
    T = torch.randn(n, n_classes, n_classes, generator=generator, dtype=torch.float64).softmax(-1)
    labels = torch.randint(n_classes, (n,), generator=generator)
    return logits, T, labels


def log_columns(T: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return log_entries(torch.stack([T[b, :, y] for b, y in enumerate(labels.tolist())]))


def slow_weights(logits: torch.Tensor, T: torch.Tensor, labels: torch.Tensor) -> list[float]:
    weights = []
    for b, y in enumerate(labels.tolist()):
        z = logits[b].tolist()
        total = sum(math.exp(v) for v in z)
        p = [math.exp(v) / total for v in z]
        weights.append(p[y] / sum(p[i] * float(T[b, i, y]) for i in range(len(p))))
    return weights


problems = st.builds(random_problem, st.integers(0, 10_000), st.integers(1, 5), st.integers(2, 6))


@settings(max_examples=30)
@given(problems)
def test_weights_equal_the_formula(problem: Problem) -> None:
    logits, T, labels = problem
    weights = importance_weights(logits, log_columns(T, labels), labels, most=1e6)
    expected = torch.tensor(slow_weights(logits, T, labels), dtype=torch.float64)
    torch.testing.assert_close(weights, expected)
    clamped = importance_weights(logits, log_columns(T, labels), labels, most=1.5)
    torch.testing.assert_close(clamped, expected.clamp_max(1.5))


@settings(max_examples=30)
@given(problems)
def test_the_loss_is_the_weight_times_cross_entropy(problem: Problem) -> None:
    logits, T, labels = problem
    columns = log_columns(T, labels)
    expected = torch.tensor(slow_weights(logits, T, labels)).clamp_max(MOST).double()
    for detach in (True, False):
        loss = reweighted_cross_entropy(logits, columns, labels, detach=detach)
        torch.testing.assert_close(loss, expected * cross_entropy(logits, labels))


@settings(max_examples=30)
@given(problems)
def test_a_weight_is_at_most_one_over_the_diagonal_entry(problem: Problem) -> None:
    """So that only a tiny diagonal entry can make it large, whatever the classifier says."""
    logits, T, labels = problem
    weights = importance_weights(10 * logits, log_columns(T, labels), labels, most=1e9)
    diagonal = T[torch.arange(len(T)), labels, labels]
    assert (weights <= 1 / diagonal * (1 + 1e-9)).all()


@settings(max_examples=20)
@given(problems)
def test_with_t_the_identity_weights_are_one_and_the_loss_is_cross_entropy(
    problem: Problem,
) -> None:
    logits, _, labels = problem
    identity = torch.eye(logits.shape[1], dtype=logits.dtype)
    for columns in (identity.log()[labels], log_entries(identity)[labels]):
        weights = importance_weights(logits, columns, labels)
        torch.testing.assert_close(weights, torch.ones_like(weights))
        torch.testing.assert_close(
            reweighted_cross_entropy(logits, columns, labels), cross_entropy(logits, labels)
        )


@settings(max_examples=20)
@given(problems)
def test_with_constant_weights_the_gradient_is_beta_times_p_minus_e(problem: Problem) -> None:
    logits, T, labels = problem
    logits.requires_grad_()
    columns = log_columns(T, labels)
    reweighted_cross_entropy(logits, columns, labels).sum().backward()
    beta = importance_weights(logits, columns, labels).detach()
    one_hot = torch.nn.functional.one_hot(labels, logits.shape[1])
    expected = beta[:, None] * (logits.detach().softmax(-1) - one_hot)
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, expected)


def revised_loss(revision: Revision, problem: Problem, detach: bool) -> torch.Tensor:
    logits, T, labels = problem
    columns = revision.log_columns(T[0], labels)
    return reweighted_cross_entropy(logits, columns, labels, detach=detach)


def test_an_offset_learns_through_weights_that_are_not_detached() -> None:
    """A vectorised version of public code wraps β anew and with that cuts ΔT off."""
    problem = random_problem(1, 6, 3)
    revision = Revision(3).double()
    revised_loss(revision, problem, detach=False).mean().backward()
    gradient = revision.delta.grad
    assert gradient is not None
    assert (gradient.abs() > 0).any()

    logits, T, labels = problem
    p = logits.softmax(-1)

    def value(delta: torch.Tensor) -> torch.Tensor:
        matrix = (T[0] + delta).clamp_min(0)
        matrix = matrix / matrix.sum(-1, keepdim=True)
        q = (p @ matrix).gather(1, labels[:, None])[:, 0]
        own = p.gather(1, labels[:, None])[:, 0]
        return (-own / q * own.log()).mean()

    for i in range(3):
        for j in range(3):
            step = torch.zeros(3, 3, dtype=torch.float64)
            step[i, j] = 1e-6
            slope = (value(step) - value(-step)) / 2e-6
            torch.testing.assert_close(gradient[i, j], slope, rtol=1e-5, atol=1e-8)


def test_with_an_offset_of_zero_the_value_is_that_of_reweight() -> None:
    logits, T, labels = problem = random_problem(2, 6, 3)
    expected = reweighted_cross_entropy(logits, log_columns(T[:1].expand(6, 3, 3), labels), labels)
    torch.testing.assert_close(
        revised_loss(Revision(3).double(), problem, detach=False).detach(), expected
    )


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_the_order_of_a_batch_does_not_matter(seed: int) -> None:
    """Public code adds ΔT to T again for each sample: the b-th sees T + (b + 1) ΔT."""
    logits, T, labels = problem = random_problem(seed, 5, 3)
    revision = Revision(3).double()
    with torch.no_grad():
        revision.delta.copy_(0.1 * torch.eye(3))
    order = torch.randperm(5, generator=torch.Generator().manual_seed(seed))
    permuted = (logits[order], T[:1].expand(5, 3, 3), labels[order])
    loss = revised_loss(revision, (logits, T[:1].expand(5, 3, 3), labels), detach=False)
    torch.testing.assert_close(revised_loss(revision, permuted, detach=False), loss[order])
    single = [
        revised_loss(revision, (logits[[b]], T[:1], labels[[b]]), detach=False) for b in range(5)
    ]
    torch.testing.assert_close(torch.cat(single), revised_loss(revision, problem, detach=False))


@pytest.mark.parametrize("detach", [True, False])
def test_extreme_logits_and_impossible_labels_stay_finite(detach: bool) -> None:
    logits = torch.tensor([[0.0, 300.0], [500.0, -500.0], [0.0, 0.0]], requires_grad=True)
    columns = log_entries(torch.tensor([[0.9, 0.0], [1e-30, 1.0], [0.0, 0.0]]))
    labels = torch.tensor([0, 1, 0])
    loss = reweighted_cross_entropy(logits, columns, labels, detach=detach)
    assert loss.isfinite().all()
    loss.sum().backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


def test_a_tiny_diagonal_entry_is_clamped() -> None:
    columns = torch.tensor([[1e-6, 1e-6]]).log()
    weight = importance_weights(torch.zeros(1, 2), columns, torch.tensor([0]))
    torch.testing.assert_close(weight, torch.tensor([MOST]))
