"""Active and passive losses that are robust to symmetric noise.

A loss is symmetric when its sum over all labels is the same for every prediction; then uniformly
wrong labels only scale and shift the expected loss, and its minimiser stays where it is.

References
----------
Ma et al. (2020), Normalized Loss Functions for Deep Learning with Noisy Labels.
"""

from __future__ import annotations

import math

import torch

from bltm.losses.cross_entropy import cross_entropy

LOG_ZERO = math.log(1e-4)
"""What stands for log 0, the logarithm of a one-hot label's zeros."""


def normalised_cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return ``log p_y / Σ_k log p_k`` for each sample, shape (B,).

    Active: it only asks for a likely label. Its sum over all labels is one.

    Examples
    --------
    >>> normalised_cross_entropy(torch.zeros(1, 4), torch.tensor([2]))
    tensor([0.2500])
    """
    return -cross_entropy(logits, labels) / logits.log_softmax(-1).sum(-1)


def reverse_cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return ``-Σ_k p_k log y_k`` for each sample, with log 0 = log 1e-4, shape (B,).

    That is ``9.21 · (1 - p_y)``. Passive: it also asks for unlikely other labels. Its sum over all
    labels is ``9.21 · (C - 1)``.

    Examples
    --------
    >>> reverse_cross_entropy(torch.zeros(1, 4), torch.tensor([2]))
    tensor([6.9078])
    """
    return LOG_ZERO * torch.expm1(-cross_entropy(logits, labels))
