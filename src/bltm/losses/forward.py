"""Forward correction: the loss of a classifier whose labels went through T.

References
----------
Patrini et al. (2017), Making Deep Neural Networks Robust to Label Noise.
"""

from __future__ import annotations

import torch

from bltm.core.matrix import log_entries


def forward_nll(logits: torch.Tensor, log_columns: torch.Tensor) -> torch.Tensor:
    """Return ``-log (f(x) · T*(x))_ỹ`` for each sample, shape (B,): one term of Eq. 5.

    Parameters
    ----------
    logits
        Of the classifier, shape (B, C).
    log_columns
        ``log T*(x)[:, ỹ]``, the column of each sample's noisy label, shape (B, C).

    Examples
    --------
    With ``p = (1/2, 1/2)`` and the column ``(3/4, 1/4)`` the noisy label has probability 1/2:

    >>> forward_nll(torch.zeros(1, 2), torch.tensor([[0.75, 0.25]]).log()).exp().round()
    tensor([2.])
    """
    return -(logits.log_softmax(-1) + log_columns).logsumexp(-1)


def noisy_log_probs(logits: torch.Tensor, T: torch.Tensor) -> torch.Tensor:
    """Return ``log (f(x) · T)``, the noisy posterior of Eq. 4, shape (B, C).

    Parameters
    ----------
    logits
        Of the classifier, shape (B, C).
    T
        One matrix (C, C), or one for each sample (B, C, C).

    Examples
    --------
    >>> T = torch.tensor([[0.9, 0.1], [0.3, 0.7]])
    >>> noisy_log_probs(torch.zeros(1, 2), T).exp()
    tensor([[0.6000, 0.4000]])
    """
    return (logits.log_softmax(-1).unsqueeze(-1) + log_entries(T)).logsumexp(-2)
