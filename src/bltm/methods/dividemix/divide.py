"""Divide: which labels are clean, told from the losses of the networks (sections 3.1 and 3.2).

Each network models its losses as a mixture of two normal distributions; w is the probability of
the one with the lower mean. The *other* network learns from this division.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from torch import nn

from bltm.core.records import IntArray
from bltm.engine.job import Job
from bltm.engine.predict import predict
from bltm.losses import cross_entropy

Losses = NDArray[np.float64]


@dataclass(frozen=True)
class LossMixture:
    """Two normal distributions over the losses of examples, scaled to [0, 1].

    Attributes
    ----------
    lowest, highest
        The losses that are scaled to 0 and 1.
    mixture
        None where the losses are all the same, or not finite: then every label counts as clean.
    """

    lowest: float
    highest: float
    mixture: GaussianMixture | None

    @classmethod
    def fit(cls, losses: Losses, seed: int) -> Self:
        """Fit the mixture to the losses of the training examples.

        Examples
        --------
        >>> mixture = LossMixture.fit(np.array([0.1, 0.2, 0.1, 5.0, 5.2]), seed=0)
        >>> mixture.clean_probability(np.array([0.15, 5.1])).round(3)
        array([1., 0.], dtype=float32)
        """
        lowest, highest = float(losses.min()), float(losses.max())
        if not 0.0 < highest - lowest < math.inf:
            return cls(lowest, highest, None)
        mixture = GaussianMixture(2, max_iter=10, tol=1e-2, reg_covar=5e-4, random_state=seed)
        unfitted = cls(lowest, highest, mixture)
        with warnings.catch_warnings():
            # Ten iterations are the method's; few examples may share two losses between them.
            warnings.simplefilter("ignore", ConvergenceWarning)
            mixture.fit(unfitted._scaled(losses))
        return unfitted

    def clean_probability(self, losses: Losses) -> NDArray[np.float32]:
        """Return w, the probability of the component with the lower mean, for each loss."""
        if self.mixture is None:
            return np.ones(len(losses), dtype=np.float32)
        lower = self.mixture.means_[:, 0].argmin()
        w: NDArray[np.float32] = self.mixture.predict_proba(self._scaled(losses))[:, lower].astype(
            np.float32
        )
        return w

    def _scaled(self, losses: Losses) -> Losses:
        scaled = (losses - self.lowest) / (self.highest - self.lowest)
        # Beyond are only examples that the mixture was not fitted to.
        return scaled.clip(0.0, 1.0)[:, None]


def losses_of(job: Job, network: nn.Module, index: IntArray) -> Losses:
    """Return the cross-entropy of each example's given label, with the network in evaluation mode.

    Without augmentation, and in the order of ``index``.
    """
    logits = predict(network, job.data.examples, index, job.bench.fabric)
    labels = torch.from_numpy(job.data.labels[index])
    return cross_entropy(logits, labels).double().numpy()


def clean_probabilities(
    job: Job, network: nn.Module, index: IntArray, threshold: float, seed: int
) -> NDArray[np.float32]:
    """Return w for some examples, by the losses that a network has on the training split.

    Trusted labels are clean. Where no label would be, all are: there would be nothing to learn.
    """
    losses = losses_of(job, network, index)
    training = np.isin(index, job.split.train)
    w = LossMixture.fit(losses[training], seed).clean_probability(losses)
    w[job.data.trusted[index]] = 1.0
    if not (w[training] > threshold).any():
        w[:] = 1.0
    return w


def deal(
    clean: IntArray, noisy: IntArray, steps: int, n_noisy: int, rng: np.random.Generator
) -> list[torch.Tensor]:
    """Deal the examples of a division to the batches of an epoch, clean ones first in each.

    Parameters
    ----------
    clean, noisy
        Indices of both parts.
    steps
        Number of batches, all of one size but for one example of each part.
    n_noisy
        How many noisy examples are used; where there are fewer they come again.
    rng
        Draws the order.

    Examples
    --------
    >>> batches = deal(np.arange(4), np.arange(4, 7), 2, 2, np.random.default_rng(0))
    >>> [len(batch) for batch in batches]
    [3, 3]
    >>> [bool(batch[2] >= 4) for batch in batches]
    [True, True]
    """
    # A handful of clean examples goes round, so that each batch has one.
    labelled = _in_turn(clean, max(len(clean), steps), rng).tensor_split(steps)
    unlabelled = _in_turn(noisy, n_noisy, rng).tensor_split(steps)
    return [torch.cat(parts) for parts in zip(labelled, unlabelled, strict=True)]


def _in_turn(index: IntArray, count: int, rng: np.random.Generator) -> torch.Tensor:
    """Return ``count`` of the indices: all in random order, then all in another, and so on."""
    rounds = math.ceil(count / len(index)) if len(index) else 0
    order = rng.random((rounds, len(index))).argsort(axis=1)
    return torch.from_numpy(index[order].reshape(-1)[:count])
