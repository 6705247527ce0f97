"""Losses on soft labels, and what methods add to them against collapse."""

from __future__ import annotations

import torch


def soft_cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return ``-Σ_k s_k log p_k`` for each sample, shape (B,).

    Parameters
    ----------
    logits
        Shape (B, C).
    targets
        Soft labels s, rows that sum to one, shape (B, C).

    Examples
    --------
    >>> soft_cross_entropy(torch.zeros(1, 4), torch.full((1, 4), 0.25)).exp().round()
    tensor([4.])
    """
    return -(targets * logits.log_softmax(-1)).sum(-1)


def entropy(logits: torch.Tensor) -> torch.Tensor:
    """Return the entropy of each sample's prediction, shape (B,).

    Examples
    --------
    >>> entropy(torch.zeros(1, 4)).exp().round()
    tensor([4.])
    """
    return soft_cross_entropy(logits, logits.softmax(-1))


def prior_cross_entropy(
    logits: torch.Tensor, prior: torch.Tensor, weights: torch.Tensor | None = None
) -> torch.Tensor:
    """Return ``-Σ_k prior_k log(mean_B p_k)``, a scalar that couples the batch.

    Least when the mean prediction is the prior; it keeps a network from answering with one class.
    It is the Kullback-Leibler divergence of the mean prediction from the prior up to a constant.

    Parameters
    ----------
    logits
        Shape (B, C).
    prior
        Class frequencies, shape (C,).
    weights
        Weight of each sample in the mean, shape (B,); all ones by default.

    Examples
    --------
    >>> prior_cross_entropy(torch.zeros(3, 4), torch.full((4,), 0.25)).exp().round()
    tensor(4.)
    """
    if weights is None:
        weights = torch.ones_like(logits[:, 0])
    shares = weights / weights.sum()
    log_mean = (logits.log_softmax(-1) + shares.log()[:, None]).logsumexp(0)
    return -(prior * log_mean).sum()
