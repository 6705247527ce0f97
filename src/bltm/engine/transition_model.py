"""T*(x) as methods use it: a frozen network, perhaps revised by an offset that all x share."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from bltm.engine.batches import in_batches
from bltm.engine.job import Job
from bltm.engine.predict import BATCH, predict
from bltm.nets.transition import TransitionNetwork
from bltm.transition.revision import Revision


class TransitionModel(nn.Module):
    """A transition network with an optional revision; maps inputs to T*(x), shape (B, C, C)."""

    def __init__(self, network: TransitionNetwork, revision: Revision | None = None) -> None:
        super().__init__()
        self.network, self.revision = network, revision

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return T*(x), shape (B, C, C)."""
        return self.network.matrix(self.network.features(x), self.revision)

    def rows(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return row ``labels[b]`` of T*(x_b), shape (B, C)."""
        return self.network.head.matrix_rows(self.network.features(x), labels, self.revision)

    def log_noisy(self, x: torch.Tensor, log_probs: torch.Tensor) -> torch.Tensor:
        """Return log P(noisy label | x) for given log P(Bayes label | x), both (B, C)."""
        return self.network.log_noisy(self.network.features(x), log_probs, self.revision)


@dataclass(frozen=True)
class Corrected:
    """A classifier of Bayes labels, the T*(x) it was trained through, and of that the columns.

    ``columns`` is log T*(x)[:, noisy label] of all N examples, shape (N, C).
    """

    classifier: nn.Module
    transition: TransitionModel
    columns: torch.Tensor


def transition_features(job: Job, network: TransitionNetwork) -> torch.Tensor:
    """Return the frozen network's features of all N examples, shape (N, d).

    The head makes any row or column of T*(x) from them, so T*(x) itself is never held for all.
    """
    index = torch.arange(len(job.data)).numpy()
    return predict(
        network, job.data.examples, index, job.bench.fabric, lambda x, _: network.features(x)
    )


@torch.no_grad()
def column_of_given_label(
    job: Job, model: TransitionModel, features: torch.Tensor | None = None
) -> torch.Tensor:
    """Return log T*(x)[:, noisy label] of all N examples, shape (N, C): all that Eq. 5 needs.

    A trusted label cannot have come from another class: its column is the identity's.

    Parameters
    ----------
    job, model
        The fit, and T*(x).
    features
        The frozen network's features of all examples, where they are known.
    """
    labels = torch.from_numpy(job.data.labels)
    network = model.network

    def columns(features: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        given = labels[index].to(features.device)
        return network.log_columns(features, given, model.revision)

    index = torch.arange(len(job.data))
    if features is None:
        result = predict(
            model,
            job.data.examples,
            index.numpy(),
            job.bench.fabric,
            lambda x, batch: columns(network.features(x), batch),
        )
    else:
        result = torch.cat(
            [
                columns(features[batch].to(job.bench.device), batch).cpu()
                for batch in in_batches(index, BATCH)
            ]
        )
    trusted = torch.from_numpy(job.data.trusted)
    result[trusted] = torch.eye(job.data.n_classes).log()[labels[trusted]]
    return result
