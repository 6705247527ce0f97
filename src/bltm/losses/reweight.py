"""Importance reweighting: cross-entropy on noisy labels, weighted to estimate that on right ones.

References
----------
Liu, Tao (2016), Classification with Noisy Labels by Importance Reweighting.
Xia et al. (2019), Are Anchor Points Really Indispensable in Label-Noise Learning?
"""

from __future__ import annotations

import math

import torch

from bltm.losses.cross_entropy import cross_entropy

MOST = 10.0
"""Largest weight. ``β = p_y / (pT)_y`` never exceeds ``1 / T_yy``, so a larger one comes from a
diagonal entry below a tenth: an error of the estimate rather than a rate of noise."""


def importance_weights(
    logits: torch.Tensor, log_columns: torch.Tensor, labels: torch.Tensor, most: float = MOST
) -> torch.Tensor:
    """Return ``β = p_ỹ / (p · T)_ỹ``, at most ``most``, for each sample, shape (B,).

    Parameters
    ----------
    logits
        Of the classifier, shape (B, C).
    log_columns
        ``log T(x)[:, ỹ]``, the column of each sample's noisy label, shape (B, C).
    labels
        Noisy labels ỹ, shape (B,).
    most
        Largest weight.

    Examples
    --------
    With ``p = (1/2, 1/2)`` and the column ``(3/4, 1/2)`` the weight is ``(1/2) / (5/8)``:

    >>> column = torch.tensor([[0.75, 0.5]]).log()
    >>> importance_weights(torch.zeros(1, 2), column, torch.tensor([0]))
    tensor([0.8000])
    """
    log_probs = logits.log_softmax(-1)
    clean = log_probs.gather(1, labels.unsqueeze(1)).squeeze(1)
    noisy = (log_probs + log_columns).logsumexp(-1)
    return (clean - noisy).clamp_max(math.log(most)).exp()


def reweighted_cross_entropy(
    logits: torch.Tensor,
    log_columns: torch.Tensor,
    labels: torch.Tensor,
    detach: bool = True,
    most: float = MOST,
) -> torch.Tensor:
    """Return ``-β log p_ỹ`` for each sample, shape (B,).

    Parameters
    ----------
    logits, log_columns, labels, most
        As for :func:`importance_weights`.
    detach
        Whether β is a constant, as in Reweight; a T that is learned gets its gradient through β.

    Examples
    --------
    With T the identity this is cross-entropy:

    >>> column = torch.tensor([[1.0, 0.0]]).log()
    >>> reweighted_cross_entropy(torch.zeros(1, 2), column, torch.tensor([0])).exp()
    tensor([2.])
    """
    weights = importance_weights(logits, log_columns, labels, most)
    return (weights.detach() if detach else weights) * cross_entropy(logits, labels)
