"""A compact convolutional net for small images, fast on a few CPU cores."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from bltm.nets.base import Network

WIDTHS = (32, 64, 128)


class CompactNet(Network):
    """Three convolutions with batch normalisation, pooled to 2×2.

    A layer halves the image only while at least 8 pixels are left on the shorter side, so that
    8×8 images keep a 4×4 map. Widths are multiples of 16, which vectorised kernels want.

    Parameters
    ----------
    input_shape
        ``(channels, height, width)`` of one image.
    n_outputs
        Number of logits.

    Examples
    --------
    >>> net = CompactNet((1, 28, 28), 10)
    >>> net(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """

    def __init__(self, input_shape: Sequence[int], n_outputs: int) -> None:
        super().__init__()
        channels, side = input_shape[0], min(input_shape[1:])
        layers: list[nn.Module] = []
        for width in WIDTHS:
            stride = 2 if side >= 8 else 1
            layers += [
                nn.Conv2d(channels, width, 3, stride=stride, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
            ]
            channels, side = width, -(-side // stride)
        self.convolutions = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.n_features = channels * 4
        self.fc = nn.Linear(self.n_features, n_outputs)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """Return the pooled maps, shape (B, n_features)."""
        maps: torch.Tensor = self.pool(self.convolutions(x))
        return maps.flatten(1)
