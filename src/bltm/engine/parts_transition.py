"""T(x) as a mixture of part matrices, for any x: a frozen network, the parts, the matrices."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bltm.core.errors import CoverageWarning
from bltm.core.records import IntArray, Posterior
from bltm.engine.class_transition import absent_classes, checked_matrix, doubted_examples
from bltm.engine.job import Job
from bltm.engine.predict import predict
from bltm.engine.transition_model import Transition
from bltm.nets.registry import make_trunk
from bltm.nets.weights import copy_fitting
from bltm.transition.anchors import anchor_indices, anchor_rows
from bltm.transition.parts import (
    coefficients,
    factorise,
    fit_part_matrices,
    mixed_log_columns,
    mixed_log_noisy,
    mixed_rows,
)
from bltm.transition.revision import Revision

# Anchors of a class are taken at so many percentiles in this range as there are parts.
LOWEST, HIGHEST = 97.0, 99.0


class PartsTransition(Transition):
    """``T(x) = Σ_k w_k(x) A_k``, where w(x) says how the features of x are made of parts.

    Parameters
    ----------
    trunk
        A network that is not trained any more; maps inputs to features (B, d).
    parts
        Shape (r, d), non-negative.
    matrices
        Shape (r, C, C), rows that sum to one.
    revision
        An offset that all instances share. It is applied to each part: as long as it clips no
        entry at zero this is the same as revising their mixture.

    Examples
    --------
    >>> matrices = torch.stack([torch.eye(2), torch.full((2, 2), 0.5)])
    >>> transition = PartsTransition(nn.Identity(), torch.eye(2), matrices)
    >>> transition.rows(torch.tensor([[1.0, 1.0]]), torch.tensor([1]))
    tensor([[0.2500, 0.7500]])
    """

    parts: torch.Tensor
    matrices: torch.Tensor

    def __init__(
        self,
        trunk: nn.Module,
        parts: torch.Tensor,
        matrices: torch.Tensor,
        revision: Revision | None = None,
    ) -> None:
        super().__init__()
        self.trunk = trunk
        self.register_buffer("parts", parts.float())
        self.register_buffer("matrices", matrices.float())
        self.revision = revision

    @property
    def unrevised(self) -> Transition:
        """Return T(x) as it was before a revision."""
        return PartsTransition(self.trunk, self.parts, self.matrices)

    def coefficients(self, x: torch.Tensor) -> torch.Tensor:
        """Return w(x), shape (B, r)."""
        return coefficients(self.trunk(x).float(), self.parts)

    @property
    def revised_matrices(self) -> torch.Tensor:
        """Return the part matrices, revised where there is a revision, shape (r, C, C)."""
        revised: torch.Tensor = (
            self.matrices if self.revision is None else self.revision(self.matrices)
        )
        return revised

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return T(x), shape (B, C, C)."""
        return torch.einsum("bk,kij->bij", self.coefficients(x), self.revised_matrices)

    def rows(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return row ``labels[b]`` of T(x_b), shape (B, C)."""
        return mixed_rows(self.coefficients(x), self.revised_matrices, labels)

    def log_columns(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the log of column ``labels[b]`` of T(x_b), shape (B, C)."""
        return mixed_log_columns(self.coefficients(x), self.revised_matrices, labels)

    def log_noisy(self, x: torch.Tensor, log_probs: torch.Tensor) -> torch.Tensor:
        """Return log P(noisy label | x) for given log P(right label | x), both (B, C)."""
        return mixed_log_noisy(self.coefficients(x), self.revised_matrices, log_probs)


@dataclass(frozen=True)
class Parts:
    """Parts of the features, shape (r, d), and their matrices, shape (r, C, C)."""

    parts: NDArray[np.float32]
    matrices: NDArray[np.float32]


def find_parts_transition(
    job: Job, stage: str, network: nn.Module, posterior: Posterior, n_parts: int
) -> PartsTransition:
    """Factorise the features of the training examples and fit the part matrices.

    Parameters
    ----------
    job, stage
        The fit, and the name of this step in it.
    network
        Trained on the noisy labels; its features are factorised.
    posterior
        Its noisy posteriors.
    n_parts
        Number of parts r.
    """
    trunk = frozen_trunk(job, stage, network)

    def compute() -> Parts:
        index = job.split.train
        features = predict(trunk, job.data.examples, index, job.bench.fabric)
        parts = factorise(features, n_parts, job.bench.stream(stage, "start"))
        doubted = ~job.data.trusted[index]
        weights = coefficients(features, parts).numpy()[doubted]
        matrices = _part_matrices(job, posterior, doubted_examples(job), weights)
        return Parts(parts.numpy(), matrices)

    found = job.bench.record(stage, Parts, compute)
    transition = PartsTransition(
        trunk, torch.from_numpy(found.parts), torch.from_numpy(found.matrices)
    )
    return transition.to(job.bench.device).requires_grad_(False).eval()


def frozen_trunk(job: Job, stage: str, network: nn.Module) -> nn.Module:
    """Return the trained network without its head, in evaluation mode.

    A network of the user's own has no head that could be taken off. It is made with 128 outputs,
    and keeps the trained weights where they fit; the others are random.
    """
    trunk = job.bench.new(f"{stage}/trunk", lambda: make_trunk(job.net, job.data.examples.shape)[0])
    copy_fitting(network, trunk)
    return trunk.requires_grad_(False).eval()


def _part_matrices(
    job: Job, posterior: Posterior, index: IntArray, weights: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return part matrices from anchors among the examples of an index with their coefficients."""
    n_parts = weights.shape[1]
    if len(index) == 0:
        return np.repeat(checked_matrix(job)[None], n_parts, axis=0).astype(np.float32)
    probs = posterior.probs[index]
    anchors = anchor_indices(probs, np.linspace(LOWEST, HIGHEST, n_parts).tolist())
    matrices = fit_part_matrices(weights[anchors].astype(np.float64), anchor_rows(probs, anchors))
    absent = absent_classes(job)
    matrices[:, absent] = np.eye(job.data.n_classes)[absent]
    _warn_of_repeated_anchors(job, anchors, absent)
    return matrices.astype(np.float32)


def _warn_of_repeated_anchors(job: Job, anchors: IntArray, absent: IntArray) -> None:
    n_parts = anchors.shape[1]
    repeated = [i for i, row in enumerate(anchors.tolist()) if len(set(row)) < n_parts]
    open_classes = np.setdiff1d(repeated, absent)
    if len(open_classes) == 0:
        return
    names = [str(name) for name in job.data.classes[open_classes[:5]]]
    more = f" and {len(open_classes) - 5} more" if len(open_classes) > 5 else ""
    warnings.warn(
        f"The {n_parts} anchor points of class {', '.join(names)}{more} repeat and do not "
        "determine a row for each of the parts; what is left open stays at the mean of the "
        "anchors. Fewer parts (n_parts) or more examples determine them.",
        CoverageWarning,
        stacklevel=2,
    )
