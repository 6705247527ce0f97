"""Generalised cross-entropy: between cross-entropy and the mean absolute error.

References
----------
Zhang, Sabuncu (2018), Generalized Cross Entropy Loss for Training Deep Neural Networks with Noisy
Labels.
"""

from __future__ import annotations

import torch

from bltm.losses.cross_entropy import cross_entropy


def generalised_cross_entropy(
    logits: torch.Tensor, labels: torch.Tensor, q: float = 0.7
) -> torch.Tensor:
    """Return ``(1 - p_y^q) / q`` for each sample, shape (B,).

    Its gradient is ``p_y^q`` times that of cross-entropy: labels that the network finds unlikely
    pull less. For q → 0 it becomes cross-entropy, at q = 1 it is ``1 - p_y``.

    Parameters
    ----------
    logits
        Shape (B, C).
    labels
        Shape (B,).
    q
        Above 0, at most 1.

    Examples
    --------
    >>> generalised_cross_entropy(torch.zeros(1, 4), torch.tensor([2]), q=1.0)
    tensor([0.7500])
    """
    # By way of log p: the slope of p^q is infinite at p = 0, that of exp(q log p) is not, and
    # expm1 keeps the digits where q is small.
    return -torch.expm1(-q * cross_entropy(logits, labels)) / q


def truncated_gce(
    logits: torch.Tensor,
    labels: torch.Tensor,
    kept: torch.Tensor,
    q: float = 0.7,
    threshold: float = 0.5,
) -> torch.Tensor:
    """Return generalised cross-entropy where a label is kept, else a constant, shape (B,).

    The constant is the loss at the threshold; a sample that is not kept has no gradient.

    Parameters
    ----------
    logits, labels, q
        See :func:`generalised_cross_entropy`.
    kept
        Whether each label is learned from, shape (B,).
    threshold
        Probability at which the loss is cut off.

    Examples
    --------
    >>> kept = torch.tensor([True, False])
    >>> truncated_gce(torch.zeros(2, 4), torch.tensor([2, 2]), kept, q=1.0)
    tensor([0.7500, 0.5000])
    """
    losses = generalised_cross_entropy(logits, labels, q)
    return losses.where(kept, (1.0 - threshold**q) / q)
