"""Multi-layer perceptron for tables and embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import nn

from bltm.nets.base import Network


class MLP(Network):
    """Linear layers with ReLU; inputs of any shape are flattened.

    There is no normalisation inside: none across the batch, so that a batch of one works and
    processes that share a batch compute what one process would; and none across the layer, which
    fits wrong labels sooner without gaining on right ones. Inputs should be standardised.

    Parameters
    ----------
    input_shape
        Shape of one input.
    n_outputs
        Number of logits.
    hidden
        Widths of the hidden layers.

    Examples
    --------
    >>> net = MLP((4,), 3)
    >>> net(torch.zeros(2, 4)).shape, net.n_features
    (torch.Size([2, 3]), 128)
    """

    def __init__(
        self, input_shape: Sequence[int], n_outputs: int, hidden: Sequence[int] = (128, 128)
    ) -> None:
        super().__init__()
        widths = [prod(input_shape), *hidden]
        layers: list[nn.Module] = []
        for width_in, width_out in zip(widths[:-1], widths[1:], strict=True):
            layers += [nn.Linear(width_in, width_out), nn.ReLU()]
        self.hidden = nn.Sequential(*layers)
        self.n_features = widths[-1]
        self.fc = nn.Linear(self.n_features, n_outputs)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """Return the last hidden layer, shape (B, n_features)."""
        hidden: torch.Tensor = self.hidden(x.flatten(1))
        return hidden
