"""Every loss against a loop written from its formula."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bltm.core.matrix import log_entries
from bltm.losses import cross_entropy, forward_nll, noisy_log_probs, transition_nll

DTYPES = [torch.float32, torch.float64]


def random_problem(
    seed: int, n: int, n_classes: int, dtype: torch.dtype = torch.float64
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(n, n_classes, generator=generator, dtype=dtype)
    T = torch.randn(n, n_classes, n_classes, generator=generator, dtype=dtype).softmax(-1)
    labels = torch.randint(n_classes, (n,), generator=generator)
    return logits, T, labels


def columns(T: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return torch.stack([T[b, :, label] for b, label in enumerate(labels.tolist())])


def probabilities(logits: list[float]) -> list[float]:
    total = sum(math.exp(z) for z in logits)
    return [math.exp(z) / total for z in logits]


@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_entropy_equals_its_formula(dtype: torch.dtype) -> None:
    logits, _, labels = random_problem(0, 6, 4, dtype)
    expected = [
        -math.log(probabilities(z)[y])
        for z, y in zip(logits.tolist(), labels.tolist(), strict=True)
    ]
    loss = cross_entropy(logits, labels)
    assert loss.dtype == dtype
    torch.testing.assert_close(loss, torch.tensor(expected, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_transition_nll_equals_eq_3(dtype: torch.dtype) -> None:
    _, T, noisy = random_problem(1, 6, 4, dtype)
    bayes = [0, 1, 2, 3, 1, 0]
    expected = []
    for b, (i, j) in enumerate(zip(bayes, noisy.tolist(), strict=True)):
        one_hot = [float(k == i) for k in range(4)]
        mixed = [sum(one_hot[k] * float(T[b, k, m]) for k in range(4)) for m in range(4)]
        expected.append(-math.log(mixed[j]))
    log_rows = torch.stack([T[b, i] for b, i in enumerate(bayes)]).log()
    loss = transition_nll(log_rows, noisy)
    torch.testing.assert_close(loss, torch.tensor(expected, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_forward_nll_equals_eq_5(dtype: torch.dtype) -> None:
    logits, T, noisy = random_problem(2, 6, 4, dtype)
    expected = []
    for b, j in enumerate(noisy.tolist()):
        p = probabilities(logits[b].tolist())
        expected.append(-math.log(sum(p[i] * float(T[b, i, j]) for i in range(4))))
    loss = forward_nll(logits, columns(T, noisy).log())
    assert loss.dtype == dtype
    torch.testing.assert_close(loss, torch.tensor(expected, dtype=dtype))


@pytest.mark.parametrize("batched", [True, False])
def test_noisy_log_probs_equal_eq_4(batched: bool) -> None:
    logits, T, _ = random_problem(3, 5, 3)
    expected = torch.zeros(5, 3, dtype=torch.float64)
    for b in range(5):
        p = probabilities(logits[b].tolist())
        matrix = T[b] if batched else T[0]
        for j in range(3):
            expected[b, j] = math.log(sum(p[i] * float(matrix[i, j]) for i in range(3)))
    torch.testing.assert_close(noisy_log_probs(logits, T if batched else T[0]), expected)


problems = st.builds(random_problem, st.integers(0, 10_000), st.integers(1, 5), st.integers(2, 6))


@settings(max_examples=30, deadline=None)
@given(problems)
def test_forward_with_identity_is_cross_entropy(
    problem: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    logits, _, labels = problem
    identity = torch.eye(logits.shape[1], dtype=logits.dtype)
    expected = cross_entropy(logits, labels)
    by_matrix = transition_nll(noisy_log_probs(logits, identity), labels)
    torch.testing.assert_close(by_matrix, expected)
    by_column = forward_nll(logits, log_entries(identity)[labels])
    torch.testing.assert_close(by_column, expected)


@settings(max_examples=30, deadline=None)
@given(problems)
def test_forward_with_uniform_matrix_is_log_c_without_gradient(
    problem: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    logits, _, labels = problem
    logits.requires_grad_()
    n_classes = logits.shape[1]
    log_columns = torch.full_like(logits, -math.log(n_classes))
    loss = forward_nll(logits, log_columns)
    torch.testing.assert_close(loss, torch.full_like(loss, math.log(n_classes)))
    loss.sum().backward()
    assert logits.grad is not None
    assert logits.grad.abs().max() < 1e-12


@settings(max_examples=30, deadline=None)
@given(problems)
def test_forward_by_column_and_by_matrix_agree_and_sum_to_one(
    problem: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    logits, T, labels = problem
    log_q = noisy_log_probs(logits, T)
    torch.testing.assert_close(log_q.logsumexp(-1), torch.zeros(len(logits), dtype=logits.dtype))
    torch.testing.assert_close(
        forward_nll(logits, columns(T, labels).log()), transition_nll(log_q, labels)
    )


@settings(max_examples=20, deadline=None)
@given(problems)
def test_transition_nll_gradient_touches_only_the_row_of_the_bayes_label(
    problem: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    _, T, noisy = problem
    n, n_classes = T.shape[:2]
    scores = T.log().requires_grad_()
    bayes = (noisy + 1) % n_classes
    log_rows = scores.log_softmax(-1)[torch.arange(n), bayes]
    transition_nll(log_rows, noisy).sum().backward()
    assert scores.grad is not None
    touched = scores.grad.abs().sum(-1) > 0
    assert torch.equal(touched, torch.nn.functional.one_hot(bayes, n_classes).bool())


def test_extreme_logits_and_zero_entries_stay_finite_with_their_gradients() -> None:
    logits = torch.tensor([[0.0, 300.0], [-500.0, 500.0]], requires_grad=True)
    T = torch.tensor([[1.0, 0.0], [0.0, 1.0]], requires_grad=True)
    labels = torch.tensor([0, 0])
    loss = transition_nll(noisy_log_probs(logits, T), labels)
    torch.testing.assert_close(loss, cross_entropy(logits, labels))
    loss.sum().backward()
    assert logits.grad is not None
    assert T.grad is not None
    assert logits.grad.isfinite().all()
    assert T.grad.isfinite().all()
    torch.testing.assert_close(logits.grad, torch.tensor([[-1.0, 1.0], [-1.0, 1.0]]))


def test_a_noisy_label_that_cannot_occur_gives_a_finite_loss() -> None:
    T = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    loss = transition_nll(noisy_log_probs(torch.zeros(1, 2), T), torch.tensor([1]))
    assert loss.isfinite().all()
