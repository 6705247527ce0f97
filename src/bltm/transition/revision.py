"""Revision of T by one offset that all instances share (the "-V" of the paper's tables).

References
----------
Xia et al. (2019), Are Anchor Points Really Indispensable in Label-Noise Learning?
"""

from __future__ import annotations

import torch
from torch import nn

from bltm.core.matrix import log_entries, normalise_rows


class Revision(nn.Module):
    """``T ↦ rownorm(max(T + ΔT, 0))`` with a C×C offset ΔT that is zero at first.

    Rows are normalised over the last axis, with and without a batch axis in front.

    Examples
    --------
    >>> T = torch.tensor([[0.9, 0.1], [0.3, 0.7]])
    >>> bool(torch.equal(Revision(2)(T), T))
    True
    """

    def __init__(self, n_classes: int) -> None:
        super().__init__()
        self.delta = nn.Parameter(torch.zeros(n_classes, n_classes))

    def forward(self, T: torch.Tensor) -> torch.Tensor:
        """Return the revised matrices; ``T`` is (C, C) or (B, C, C)."""
        return normalise_rows((T + self.delta).clamp_min(0.0))

    def log_columns(self, T: torch.Tensor, noisy_labels: torch.Tensor) -> torch.Tensor:
        """Return ``log T[b, :, ỹ_b]`` of the revised matrices, shape (B, C)."""
        revised = self(T).expand(len(noisy_labels), -1, -1)
        index = noisy_labels.view(-1, 1, 1).expand(-1, revised.shape[1], 1)
        return log_entries(revised.gather(2, index).squeeze(2))
