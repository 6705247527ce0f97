import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bltm.losses import squared_error


def problem(seed: int, n: int, n_classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(n, n_classes, generator=generator, dtype=torch.float64)
    targets = torch.randn(n, n_classes, generator=generator, dtype=torch.float64).softmax(-1)
    return logits, targets


problems = st.builds(problem, st.integers(0, 10_000), st.integers(1, 5), st.integers(2, 6))


@given(problems)
def test_it_equals_its_formula(sample: tuple[torch.Tensor, torch.Tensor]) -> None:
    logits, targets = sample
    expected = []
    for z, s in zip(logits.tolist(), targets.tolist(), strict=True):
        total = sum(math.exp(value) for value in z)
        errors = [(math.exp(a) / total - b) ** 2 for a, b in zip(z, s, strict=True)]
        expected.append(sum(errors) / len(errors))
    torch.testing.assert_close(
        squared_error(logits, targets), torch.tensor(expected, dtype=torch.float64)
    )


@given(problems)
def test_it_is_zero_at_the_target_and_at_most_two_over_the_classes(
    sample: tuple[torch.Tensor, torch.Tensor],
) -> None:
    logits, targets = sample
    assert squared_error(targets.log(), targets).max() < 1e-20
    assert squared_error(1e4 * logits, targets).max() <= 2 / logits.shape[1]


def test_gradients_stay_finite_for_extreme_logits() -> None:
    logits = torch.tensor([[-500.0, 500.0]], requires_grad=True)
    loss = squared_error(logits, torch.tensor([[1.0, 0.0]])).sum()
    loss.backward()
    assert loss.item() == pytest.approx(1.0)
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
