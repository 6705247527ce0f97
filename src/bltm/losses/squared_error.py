"""The squared error of predicted probabilities."""

from __future__ import annotations

import torch


def squared_error(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return ``Σ_k (p_k - s_k)² / C`` for each sample, shape (B,).

    Bounded, so that guessed labels that are wrong do not weigh as much as by cross-entropy.

    Parameters
    ----------
    logits
        Shape (B, C).
    targets
        Soft labels s, rows that sum to one, shape (B, C).

    Examples
    --------
    >>> squared_error(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))
    tensor([0.2500])
    """
    return (logits.softmax(-1) - targets).square().mean(-1)
