"""The determinant loss: its value, and that label noise changes no gradient of it."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bltm.losses import dmi_loss, label_joint


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_logits(seed: int, n: int, n_classes: int) -> torch.Tensor:
    return 2 * torch.randn(n, n_classes, generator=generator(seed), dtype=torch.float64)


def random_rows(seed: int, n: int, n_classes: int) -> torch.Tensor:
    return random_logits(seed, n, n_classes).softmax(-1)


def population(logits: torch.Tensor, posterior: torch.Tensor) -> torch.Tensor:
    """The joint of predictions and labels that are distributed as ``posterior`` says."""
    n, n_classes = logits.shape
    return label_joint(
        logits.repeat_interleave(n_classes, 0),
        torch.arange(n_classes).repeat(n),
        posterior.flatten(),
    )


def determinant(rows: list[list[float]]) -> float:
    """By Leibniz' formula."""
    total = 0.0
    for order in itertools.permutations(range(len(rows))):
        inversions = sum(a > b for a, b in itertools.combinations(order, 2))
        total += (-1) ** inversions * math.prod(row[k] for row, k in zip(rows, order, strict=True))
    return total


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_it_equals_its_formula(n_classes: int, weighted: bool) -> None:
    logits = random_logits(0, 12, n_classes)
    labels = torch.arange(12) % n_classes
    weights = torch.rand(12, generator=generator(1), dtype=torch.float64)
    each = weights.tolist() if weighted else [1.0] * 12
    probs = logits.softmax(-1).tolist()
    rows = [[0.0] * n_classes for _ in range(n_classes)]
    for p, y, w in zip(probs, labels.tolist(), each, strict=True):
        for k in range(n_classes):
            rows[y][k] += w * p[k] / sum(each)
    joint = label_joint(logits, labels, weights if weighted else None)
    torch.testing.assert_close(joint, torch.tensor(rows, dtype=torch.float64))
    assert joint.sum() == pytest.approx(1.0)
    loss = dmi_loss(joint)
    assert loss.ndim == 0
    assert float(loss) == pytest.approx(-math.log(abs(determinant(rows))))


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 5))
def test_noise_shifts_the_loss_and_changes_no_gradient(seed: int, n_classes: int) -> None:
    logits = random_logits(seed, 20, n_classes).requires_grad_()
    posterior = random_rows(seed + 1, 20, n_classes)
    T = 0.4 * random_rows(seed + 2, n_classes, n_classes) + 0.6 * torch.eye(n_classes)
    clean, noisy = population(logits, posterior), population(logits, posterior @ T)
    torch.testing.assert_close(noisy, T.T @ clean)
    losses = [dmi_loss(clean), dmi_loss(noisy)]
    shift = -torch.linalg.slogdet(T.double()).logabsdet
    torch.testing.assert_close(losses[1], losses[0] + shift)
    gradients = [torch.autograd.grad(loss, logits)[0] for loss in losses]
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-6, atol=1e-8)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.floats(0.01, 0.9))
def test_mixing_with_the_joint_of_other_predictions_keeps_this(seed: int, share: float) -> None:
    logits = random_logits(seed, 20, 3).requires_grad_()
    posterior = random_rows(seed + 1, 20, 3)
    T = 0.4 * random_rows(seed + 2, 3, 3) + 0.6 * torch.eye(3)
    others, of_others = random_logits(seed + 3, 30, 3), random_rows(seed + 4, 30, 3)

    def smoothed(noise: torch.Tensor) -> torch.Tensor:
        overall = population(others, of_others @ noise)
        return dmi_loss(population(logits, posterior @ noise).lerp(overall, share))

    losses = [smoothed(torch.eye(3, dtype=torch.float64)), smoothed(T)]
    torch.testing.assert_close(losses[1], losses[0] - torch.linalg.slogdet(T.double()).logabsdet)
    gradients = [torch.autograd.grad(loss, logits)[0] for loss in losses]
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-6, atol=1e-8)


def test_a_ridge_or_a_minor_would_not_keep_it() -> None:
    """Why the joint is smoothed by another joint, not by a multiple of the identity."""
    logits = random_logits(0, 20, 3).requires_grad_()
    posterior = random_rows(1, 20, 3)
    T = 0.4 * random_rows(2, 3, 3) + 0.6 * torch.eye(3)
    clean, noisy = population(logits, posterior), population(logits, posterior @ T)
    ridge = 0.1 * torch.eye(3) / 3
    for change in (lambda u: 0.9 * u + ridge, lambda u: u[:2, :2]):
        gradients = [
            torch.autograd.grad(dmi_loss(change(u)), logits, retain_graph=True)[0]
            for u in (clean, noisy)
        ]
        assert (gradients[0] - gradients[1]).abs().max() > 1e-4


def test_the_gradient_does_not_vanish_with_many_classes_in_single_precision() -> None:
    labels = torch.arange(256) % 10
    sure = 4 * torch.nn.functional.one_hot(labels, 10).float()
    logits = (sure + torch.randn(256, 10, generator=generator(0))).requires_grad_()
    joint = label_joint(logits, labels)
    assert torch.linalg.det(joint).abs() < 1e-10
    (slope,) = torch.autograd.grad(dmi_loss(joint), logits)
    assert 1e-2 < slope.norm() < 1e2
    # The same in an unnormalised form: a factor of the joint only shifts the loss.
    (same,) = torch.autograd.grad(dmi_loss(256 * label_joint(logits, labels)), logits)
    torch.testing.assert_close(same, slope)


def test_a_class_that_no_label_names_takes_no_part() -> None:
    logits = random_logits(3, 9, 3)
    labels = torch.tensor([0, 2, 0, 2, 0, 2, 0, 2, 2])
    joint = label_joint(logits.requires_grad_(), labels)
    loss = dmi_loss(joint)
    (slope,) = torch.autograd.grad(loss, logits, retain_graph=True)
    assert slope.isfinite().all()
    kept = joint[[0, 2]][:, [0, 2]]
    torch.testing.assert_close(loss, -torch.linalg.slogdet(kept).logabsdet)
    # Probability of the missing class is lost to the others: the loss pushes it down.
    assert slope[:, 1].sum() > 0


def test_a_batch_smaller_than_the_number_of_classes_is_defined() -> None:
    logits = random_logits(4, 2, 5).requires_grad_()
    loss = dmi_loss(label_joint(logits, torch.tensor([1, 4])))
    (slope,) = torch.autograd.grad(loss, logits)
    assert loss.isfinite()
    assert slope.isfinite().all()


def test_equal_predictions_have_no_information() -> None:
    logits = torch.zeros(8, 2)
    assert dmi_loss(label_joint(logits, torch.arange(8) % 2)) == math.inf


def test_a_weight_counts_like_copies() -> None:
    logits, labels = random_logits(5, 6, 2), torch.tensor([0, 1, 0, 1, 1, 0])
    weights = torch.tensor([1.0, 3.0, 1.0, 1.0, 1.0, 1.0])
    repeated = torch.tensor([0, 1, 1, 1, 2, 3, 4, 5])
    torch.testing.assert_close(
        label_joint(logits, labels, weights), label_joint(logits[repeated], labels[repeated])
    )
