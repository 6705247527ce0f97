"""Cross-entropy."""

from __future__ import annotations

import torch
from torch.nn import functional


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return ``-log p_y`` for each sample, shape (B,).

    Examples
    --------
    >>> cross_entropy(torch.zeros(1, 4), torch.tensor([2])).exp().round()
    tensor([4.])
    """
    return functional.cross_entropy(logits, labels, reduction="none")
