"""A bound on what a classifier may leave out: each class keeps a least share of the examples.

Forward correction has solutions in which a class is never predicted, because its labels are
explained as those of other classes that went wrong. Once that is so, the loss has hardly a gradient
towards the class: it is weighted with the class's probability.
"""

from __future__ import annotations

import torch


def lost_classes(probs: torch.Tensor, mean: torch.Tensor, least: torch.Tensor) -> torch.Tensor:
    """Return ``Σ_j l_j max(0, log (l_j / m_j))`` for each sample, shape (B,).

    That is a divergence of the least shares l from the mean prediction m, of the classes that fall
    short. Each sample has its own gradient, and the mean of these is that of the divergence: so
    batches can be summed in parts, and weighted.

    Parameters
    ----------
    probs
        Of the classifier, shape (B, C).
    mean
        Their mean over the batch, of all its parts and as weighted, or over more batches than this
        one, shape (C,); no gradient.
    least
        The least share of each class, shape (C,).

    Examples
    --------
    The second class falls short of a fifth by half:

    >>> f = torch.tensor([[0.8, 0.2], [1.0, 0.0]])
    >>> lost_classes(f, f.mean(0), torch.tensor([0.2, 0.2])).mean() / 0.2 == torch.tensor(2.0).log()
    tensor(True)
    """
    ratio = least / mean.clamp_min(1e-8)
    value = least @ ratio.log().clamp_min(0.0)
    return value - (probs - probs.detach()) @ torch.where(ratio > 1.0, ratio, 0.0)
