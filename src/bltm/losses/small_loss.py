"""Small-loss selection: what a network learns easily is probably labelled right.

References
----------
Han et al. (2018), Co-teaching: Robust Training of Deep Neural Networks with Extremely Noisy Labels.
"""

from __future__ import annotations

import math

import torch

FORGET_MODES = ("paper", "code")

# A share such as 1 - 0.8 is a rounding error below 0.2, and must not cost an example.
ROUNDING = 1e-9


def forget_rate(
    epoch: float, noise_rate: float, ramp: float, exponent: float = 1.0, mode: str = "paper"
) -> float:
    """Return the share of a batch that is left out in an epoch.

    The paper has ``τ · min(e^c / T_k, 1)``, which is τ from epoch ``T_k^(1/c)`` on. The authors'
    code has a table, ``linspace(0, τ^c, T_k)`` and τ from entry T_k on: it raises the rate to the
    power and not the epoch, and jumps at T_k unless c is one.

    Parameters
    ----------
    epoch
        e, counted from 0.
    noise_rate
        τ, the share of wrong labels.
    ramp
        T_k, the epochs until the whole rate is left out. With 0 it is from the start.
    exponent
        c.
    mode
        "paper" or "code".

    Examples
    --------
    >>> [forget_rate(e, 0.4, ramp=10) for e in (0, 5, 10, 50)]
    [0.0, 0.2, 0.4, 0.4]
    """
    if epoch >= ramp and (mode == "code" or ramp == 0):
        return noise_rate
    if mode == "code":
        return float(noise_rate**exponent * min(epoch / max(ramp - 1, 1), 1.0))
    return float(noise_rate * min(epoch**exponent / ramp, 1.0))


def keep_count(keep: float, n: int) -> int:
    """Return how many of ``n`` examples a share is: rounded down, but one if there is any.

    Examples
    --------
    >>> keep_count(0.7, 128), keep_count(0.01, 8)
    (89, 1)
    """
    return min(n, max(1, math.floor(keep * n + ROUNDING)))


def small_loss(losses: torch.Tensor, count: int) -> torch.Tensor:
    """Return the indices of the ``count`` smallest losses; of equal ones the first.

    Examples
    --------
    >>> small_loss(torch.tensor([3.0, 1.0, 2.0, 1.0]), 2)
    tensor([1, 3])
    """
    return losses.detach().argsort(stable=True)[:count]


def kept_examples(
    losses: torch.Tensor, keep: float, trusted: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the indices of the examples that a share of a batch keeps.

    Parameters
    ----------
    losses
        Of the examples of a batch, shape (B,).
    keep
        Share of the examples that is kept: those of smallest loss.
    trusted
        Mask of labels known to be right, shape (B,). They are all kept, and the share is one of
        the others.

    Examples
    --------
    >>> kept_examples(torch.tensor([3.0, 1.0, 2.0, 9.0]), keep=0.5)
    tensor([1, 2])
    >>> trusted = torch.tensor([False, False, False, True])
    >>> kept_examples(torch.tensor([3.0, 1.0, 2.0, 9.0]), keep=0.4, trusted=trusted)
    tensor([3, 1])
    """
    if trusted is None:
        return small_loss(losses, keep_count(keep, len(losses)))
    sure = int(trusted.sum())
    ranked = losses.detach().masked_fill(trusted, -math.inf)
    return small_loss(ranked, sure + keep_count(keep, len(losses) - sure))


def weighted_mean(losses: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the mean of some losses by weight, a scalar whose scale is that of one loss.

    Examples
    --------
    >>> weighted_mean(torch.tensor([1.0, 4.0]), torch.tensor([2.0, 1.0]))
    tensor(2.)
    """
    return (losses * weights).sum() / weights.sum()


def self_paced_loss(
    losses: torch.Tensor, weights: torch.Tensor, keep: float, trusted: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the mean of a network's own small losses, a scalar that couples the batch.

    Parameters
    ----------
    losses, weights
        Of the examples of a batch, shape (B,).
    keep, trusted
        Which examples are kept; see :func:`kept_examples`.

    Examples
    --------
    >>> self_paced_loss(torch.tensor([1.0, 9.0, 3.0]), torch.ones(3), keep=0.7)
    tensor(2.)
    """
    kept = kept_examples(losses, keep, trusted)
    return weighted_mean(losses[kept], weights[kept])


def exchange_loss(
    first: torch.Tensor,
    second: torch.Tensor,
    weights: torch.Tensor,
    keep: float,
    trusted: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return ``mean of ℓ₁ over S₂ + mean of ℓ₂ over S₁``, a scalar that couples the batch.

    S₁ and S₂ are the examples of smallest loss of the two networks: each learns from those that
    the other chose.

    Parameters
    ----------
    first, second
        ℓ₁ and ℓ₂, the losses of two networks on the examples of a batch, shape (B,).
    weights
        Of the examples, shape (B,).
    keep, trusted
        Which examples are kept; see :func:`kept_examples`.

    Examples
    --------
    >>> first, second = torch.tensor([1.0, 5.0]), torch.tensor([7.0, 3.0])
    >>> exchange_loss(first, second, torch.ones(2), keep=0.5)
    tensor(12.)
    """
    by_first, by_second = (kept_examples(losses, keep, trusted) for losses in (first, second))
    return weighted_mean(first[by_second], weights[by_second]) + weighted_mean(
        second[by_first], weights[by_first]
    )
