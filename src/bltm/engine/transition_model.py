"""T and T(x) as methods use them: one interface for a matrix, a network, and revisions of both."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from bltm.core.matrix import log_entries
from bltm.engine.batches import in_batches
from bltm.engine.job import Job
from bltm.engine.predict import BATCH
from bltm.nets.transition import TransitionNetwork
from bltm.transition.revision import Revision


class Transition(nn.Module):
    """Maps inputs to matrices ``T[b, i, j] = P(noisy = j | right = i, x_b)``, shape (B, C, C)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return T(x), shape (B, C, C)."""
        raise NotImplementedError

    def rows(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return row ``labels[b]`` of T(x_b), shape (B, C)."""
        T: torch.Tensor = self(x)
        return T[torch.arange(len(T), device=T.device), labels]

    @property
    def unrevised(self) -> Transition:
        """Return T(x) as it was before a revision."""
        return self

    def diagonal(self, x: torch.Tensor) -> torch.Tensor:
        """Return the diagonal of T(x_b), shape (B, C)."""
        T: torch.Tensor = self(x)
        return T.diagonal(dim1=1, dim2=2)

    def log_columns(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the log of column ``labels[b]`` of T(x_b), shape (B, C)."""
        T: torch.Tensor = self(x)
        return log_entries(T[torch.arange(len(T), device=T.device), :, labels])

    def log_noisy(self, x: torch.Tensor, log_probs: torch.Tensor) -> torch.Tensor:
        """Return log P(noisy label | x) for given log P(right label | x), both (B, C)."""
        return (log_probs.unsqueeze(-1) + log_entries(self(x))).logsumexp(-2)


class ClassTransition(Transition):
    """One matrix T for all x, perhaps revised.

    Examples
    --------
    >>> transition = ClassTransition(torch.tensor([[0.9, 0.1], [0.3, 0.7]]))
    >>> transition.rows(torch.zeros(1, 4), torch.tensor([1]))
    tensor([[0.3000, 0.7000]])
    """

    T: torch.Tensor

    def __init__(self, T: torch.Tensor, revision: Revision | None = None) -> None:
        super().__init__()
        self.register_buffer("T", T.float())
        self.revision = revision

    @property
    def unrevised(self) -> Transition:
        """Return T as it was before a revision."""
        return ClassTransition(self.T)

    @property
    def matrix(self) -> torch.Tensor:
        """Return T, revised where there is a revision, shape (C, C)."""
        revised: torch.Tensor = self.T if self.revision is None else self.revision(self.T)
        return revised

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return T for each input, shape (B, C, C)."""
        return self.matrix.expand(len(x), -1, -1)

    def log_columns(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the log of column ``labels[b]`` of T, shape (B, C)."""
        return log_entries(self.matrix).T[labels]

    def log_noisy(self, x: torch.Tensor, log_probs: torch.Tensor) -> torch.Tensor:
        """Return log P(noisy label | x) for given log P(right label | x), both (B, C)."""
        return (log_probs.unsqueeze(-1) + log_entries(self.matrix)).logsumexp(-2)


class TransitionModel(Transition):
    """A transition network with an optional revision; maps inputs to T*(x), shape (B, C, C)."""

    def __init__(self, network: TransitionNetwork, revision: Revision | None = None) -> None:
        super().__init__()
        self.network, self.revision = network, revision

    @property
    def unrevised(self) -> Transition:
        """Return T*(x) as it was before a revision."""
        return TransitionModel(self.network)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return T*(x), shape (B, C, C)."""
        return self.network.matrix(self.network.features(x), self.revision)

    def rows(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return row ``labels[b]`` of T*(x_b), shape (B, C)."""
        return self.network.head.matrix_rows(self.network.features(x), labels, self.revision)

    def diagonal(self, x: torch.Tensor) -> torch.Tensor:
        """Return the diagonal of T*(x_b), shape (B, C)."""
        return self.network.head.diagonal(self.network.features(x), self.revision)

    def log_columns(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the log of column ``labels[b]`` of T*(x_b), shape (B, C)."""
        return self.network.log_columns(self.network.features(x), labels, self.revision)

    def log_noisy(self, x: torch.Tensor, log_probs: torch.Tensor) -> torch.Tensor:
        """Return log P(noisy label | x) for given log P(Bayes label | x), both (B, C)."""
        return self.network.log_noisy(self.network.features(x), log_probs, self.revision)


@dataclass(frozen=True)
class Corrected:
    """A classifier of right labels, the T(x) it was trained through, and of that the columns.

    ``columns`` is log T(x)[:, noisy label] of all N examples, shape (N, C).
    """

    classifier: nn.Module
    transition: Transition
    columns: torch.Tensor


def transition_features(job: Job, network: TransitionNetwork) -> torch.Tensor:
    """Return the frozen network's features of all N examples, shape (N, d).

    The head makes any row or column of T*(x) from them, so T*(x) itself is never held for all.
    """
    return job.outputs(network, lambda x, _: network.features(x))


@torch.no_grad()
def column_of_given_label(
    job: Job, model: Transition, features: torch.Tensor | None = None
) -> torch.Tensor:
    """Return log T(x)[:, noisy label] of all N examples, shape (N, C): all that Eq. 5 needs.

    A trusted label cannot have come from another class: its column is the identity's.

    Parameters
    ----------
    job, model
        The fit, and T(x).
    features
        The frozen transition network's features of all examples, where they are known.
    """
    labels = torch.from_numpy(job.data.labels)
    index = torch.arange(len(job.data))
    if features is None:
        result = job.outputs(
            model, lambda x, batch: model.log_columns(x, labels[batch].to(x.device))
        )
    else:
        assert isinstance(model, TransitionModel)
        device = job.bench.device
        result = torch.cat(
            [
                model.network.log_columns(
                    features[batch].to(device), labels[batch].to(device), model.revision
                ).cpu()
                for batch in in_batches(index, BATCH)
            ]
        )
    trusted = torch.from_numpy(job.data.trusted)
    result[trusted] = torch.eye(job.data.n_classes).log()[labels[trusted]]
    return result
