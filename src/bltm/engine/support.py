"""The collected examples that are most like an example: what speaks for its suggested label."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from bltm.core.records import Collected, IntArray
from bltm.engine.job import Job
from bltm.engine.predict import predict
from bltm.nets.base import Network
from bltm.nets.ensemble import last_member

NEAREST = 3
MOST = 20_000
"""Collected examples that are looked at; of more a random choice."""


def nearest_support(
    job: Job, classifier: nn.Module, collected: Collected, labels: NDArray[np.int64]
) -> IntArray | None:
    """Return the nearest collected examples with the label that is suggested, shape (N, 3).

    Near is what the classifier's last features have a small angle for. An example does not support
    itself; -1 stands where there are too few others.

    Parameters
    ----------
    job, classifier
        The fit, and its classifier, of an ensemble the last; one without features of its own gives
        None.
    collected
        Examples with inferred labels.
    labels
        The suggested label of each of the N examples.
    """
    network = last_member(classifier)
    if not isinstance(network, Network):
        return None
    chosen = np.arange(len(collected))
    if len(chosen) > MOST:
        chosen = np.sort(job.bench.stream("support").permutation(len(chosen))[:MOST])
    bank_index = torch.from_numpy(collected.indices[chosen])
    bank_labels = torch.from_numpy(collected.bayes_labels[chosen]).to(job.bench.device)
    wanted = torch.from_numpy(labels)

    def directions(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return functional.normalize(network.features(x), dim=1)

    if len(chosen) == 0:
        return np.full((len(job.data), NEAREST), -1, dtype=np.int64)
    bank = predict(network, job.data.examples, bank_index.numpy(), job.bench.fabric, directions).to(
        job.bench.device
    )
    positions = bank_index.to(job.bench.device)

    def nearest(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        likeness = directions(x, index) @ bank.T
        own = index.to(x.device)[:, None]
        other = (bank_labels[None] != wanted[index].to(x.device)[:, None]) | (positions == own)
        likeness = likeness.masked_fill(other, -torch.inf)
        best = likeness.topk(min(NEAREST, len(bank)), dim=1)
        found = torch.where(best.values.isfinite(), best.indices, -1)
        return functional.pad(found, (0, NEAREST - found.shape[1]), value=-1)

    # Places in the bank come as floats, which are exact for so few.
    places = job.outputs(network, nearest).numpy().astype(np.int64)
    return np.where(places < 0, -1, bank_index.numpy()[places])
