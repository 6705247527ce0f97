"""Determinant-based mutual information of labels and predictions.

Let U be the joint distribution of right labels and predictions. Labels that went through a
transition T, whatever the input, have the joint distribution ``Tᵀ U``, and its determinant is
``det T · det U``: noise changes ``log |det|`` by a constant, and no gradient.

References
----------
Xu et al. (2019), L_DMI: A Novel Information-theoretic Loss Function for Training Deep Nets Robust
to Label Noise.
"""

from __future__ import annotations

import torch


def label_joint(
    logits: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the joint distribution of given labels (rows) and predictions, shape (C, C).

    Parameters
    ----------
    logits
        Shape (B, C).
    labels
        Shape (B,).
    weights
        Weight of each sample, shape (B,); all ones by default.

    Examples
    --------
    >>> label_joint(torch.zeros(2, 2), torch.tensor([0, 0]))
    tensor([[0.5000, 0.5000],
            [0.0000, 0.0000]])
    """
    probs = logits.softmax(-1)
    if weights is None:
        weights = torch.ones_like(probs[:, 0])
    empty = torch.zeros(probs.shape[1], probs.shape[1], dtype=probs.dtype, device=probs.device)
    # A product of matrices would be rounded to half of the digits under mixed precision.
    return empty.index_add(0, labels, probs * weights[:, None]) / weights.sum()


def dmi_loss(joint: torch.Tensor) -> torch.Tensor:
    """Return ``-log |det U|`` of a joint distribution U, a scalar that couples the batch.

    By the logarithm itself: ``det U`` of ten classes is about 1e-10, and any constant that is added
    before the logarithm drowns it and its gradient. Classes whose label occurs nowhere in U take no
    part, neither as labels nor as predictions.

    Parameters
    ----------
    joint
        See :func:`label_joint`, shape (C, C).

    Returns
    -------
    Tensor
        Infinite where U is singular.

    Examples
    --------
    >>> dmi_loss(torch.diag(torch.tensor([0.5, 0.5, 0.0]))).exp().round()
    tensor(4.)
    """
    given = joint.detach().sum(1) > 0
    logabsdet: torch.Tensor = torch.linalg.slogdet(joint[given][:, given]).logabsdet
    return -logabsdet
