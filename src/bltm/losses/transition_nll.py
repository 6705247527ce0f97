"""The loss of the transition network."""

from __future__ import annotations

import torch


def transition_nll(log_rows: torch.Tensor, noisy_labels: torch.Tensor) -> torch.Tensor:
    """Return ``-log T*(x)[y*, ỹ]`` for each sample, shape (B,): one term of Eq. 3.

    Parameters
    ----------
    log_rows
        ``log T*(x)[y*, :]``, the row of each sample's Bayes label, shape (B, C).
    noisy_labels
        The labels given, shape (B,).

    Examples
    --------
    >>> transition_nll(torch.tensor([[0.25, 0.75]]).log(), torch.tensor([0])).exp().round()
    tensor([4.])
    """
    return -log_rows.gather(1, noisy_labels.unsqueeze(1)).squeeze(1)
