"""ΔT: nothing at first, rows renormalised for every shape, gradients where they belong."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bltm.losses import forward_nll, noisy_log_probs, transition_nll
from bltm.transition.revision import Revision


def random_matrices(seed: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=dtype).softmax(-1)


def revision_with(delta: torch.Tensor) -> Revision:
    revision = Revision(len(delta)).to(delta.dtype)
    with torch.no_grad():
        revision.delta.copy_(delta)
    return revision


def slow_revision(T: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
    result = torch.zeros_like(T)
    for b in range(len(T)):
        for i in range(T.shape[1]):
            row = [max(float(T[b, i, j] + delta[i, j]), 0.0) for j in range(T.shape[2])]
            for j, value in enumerate(row):
                result[b, i, j] = value / sum(row)
    return result


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_revision_equals_the_loop(dtype: torch.dtype) -> None:
    T = random_matrices(0, (5, 4, 4), dtype)
    delta = 0.2 * torch.randn(4, 4, generator=torch.Generator().manual_seed(1), dtype=dtype)
    assert ((T + delta) < 0).any()
    revised = revision_with(delta)(T)
    torch.testing.assert_close(revised, slow_revision(T, delta))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(2, 6))
def test_zero_offset_changes_nothing(seed: int, batch: int, n_classes: int) -> None:
    T = random_matrices(seed, (batch, n_classes, n_classes), torch.float64)
    revision = Revision(n_classes).double()
    torch.testing.assert_close(revision(T), T)
    torch.testing.assert_close(revision(T[0]), T[0])
    logits = torch.randn(batch, n_classes, dtype=torch.float64)
    labels = torch.arange(batch) % n_classes
    plain = transition_nll(noisy_log_probs(logits, T), labels)
    torch.testing.assert_close(forward_nll(logits, revision.log_columns(T, labels)), plain)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(2, 6))
def test_rows_not_columns_are_normalised(seed: int, batch: int, n_classes: int) -> None:
    T = random_matrices(seed, (batch, n_classes, n_classes), torch.float64)
    delta = 0.3 * random_matrices(seed + 1, (n_classes, n_classes), torch.float64)
    revision = revision_with(delta)
    ones = torch.ones(batch, n_classes, dtype=torch.float64)
    torch.testing.assert_close(revision(T).sum(-1), ones)
    torch.testing.assert_close(revision(T)[0], revision(T[0]))


def test_columns_do_not_sum_to_one() -> None:
    T = torch.tensor([[[0.9, 0.1], [0.6, 0.4]]])
    revised = Revision(2)(T)
    torch.testing.assert_close(revised.sum(-2), torch.tensor([[1.5, 0.5]]))


def test_log_columns_are_columns_of_the_revised_matrix() -> None:
    T = random_matrices(3, (4, 3, 3), torch.float64)
    revision = revision_with(0.1 * random_matrices(4, (3, 3), torch.float64))
    labels = torch.tensor([2, 0, 1, 1])
    expected = torch.stack([revision(T)[b, :, j].log() for b, j in enumerate(labels.tolist())])
    torch.testing.assert_close(revision.log_columns(T, labels), expected)
    shared = torch.stack([revision(T[0])[:, j].log() for j in labels.tolist()])
    torch.testing.assert_close(revision.log_columns(T[0], labels), shared)


def test_offset_receives_the_gradient_of_the_forward_loss() -> None:
    T = random_matrices(5, (6, 3, 3), torch.float64)
    revision = Revision(3).double()
    logits = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(6))
    labels = torch.tensor([0, 1, 2, 0, 1, 2])

    def loss(delta: torch.Tensor) -> torch.Tensor:
        matrices = (T + delta).clamp_min(0)
        matrices = matrices / matrices.sum(-1, keepdim=True)
        return transition_nll((logits.softmax(-1)[:, None] @ matrices)[:, 0].log(), labels).mean()

    forward_nll(logits, revision.log_columns(T, labels)).mean().backward()
    gradient = revision.delta.grad
    assert gradient is not None
    assert (gradient.abs() > 0).all()
    for i, j in ((0, 0), (1, 2), (2, 1)):
        step = torch.zeros(3, 3, dtype=torch.float64)
        step[i, j] = 1e-6
        slope = (loss(step) - loss(-step)) / 2e-6
        torch.testing.assert_close(gradient[i, j], slope, rtol=1e-6, atol=1e-8)
