"""A compact convolutional net for small images, fast on a few CPU cores."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from bltm.nets.base import Network

# Multiples of 16, which vectorised kernels want.
WIDTHS = (16, 32, 64)
# A layer halves the image only while this many pixels are left on the shorter side.
SMALLEST_HALVED = 8
POOLED = 2


class CompactNet(Network):
    """Three convolutions with batch normalisation, pooled to 2×2 and flattened.

    The first looks at 5×5 pixels and is max-pooled before it is normalised, which costs a quarter;
    the others have 3×3 kernels and a stride. Images of 8×8 keep a map of 4×4.

    Parameters
    ----------
    input_shape
        ``(channels, height, width)`` of one image.
    n_outputs
        Number of logits.

    Examples
    --------
    >>> net = CompactNet((1, 28, 28), 10)
    >>> net(torch.zeros(2, 1, 28, 28)).shape, net.n_features
    (torch.Size([2, 10]), 256)
    """

    def __init__(self, input_shape: Sequence[int], n_outputs: int) -> None:
        super().__init__()
        channels, side = input_shape[0], min(input_shape[1:])
        layers: list[nn.Module] = [nn.Conv2d(channels, WIDTHS[0], 5, padding=2, bias=False)]
        if side >= SMALLEST_HALVED:
            layers.append(nn.MaxPool2d(2))
            side //= 2
        layers += [nn.BatchNorm2d(WIDTHS[0]), nn.ReLU(inplace=True)]
        for before, width in zip(WIDTHS[:-1], WIDTHS[1:], strict=True):
            stride = 2 if side >= SMALLEST_HALVED else 1
            layers += [
                nn.Conv2d(before, width, 3, stride=stride, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
            ]
            side = -(-side // stride)
        self.convolutions = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(POOLED)
        self.n_features = WIDTHS[-1] * POOLED**2
        self.fc = nn.Linear(self.n_features, n_outputs)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """Return the pooled maps, shape (B, n_features)."""
        maps: torch.Tensor = self.pool(self.convolutions(x))
        return maps.flatten(1)
