"""Residual networks with torchvision's parameter names.

References
----------
He, Zhang, Ren, Sun (2016), Deep Residual Learning for Image Recognition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import nn

from bltm.nets.base import Network


def _conv(n_in: int, n_out: int, kernel: int, stride: int = 1, padding: int = 0) -> nn.Conv2d:
    return nn.Conv2d(n_in, n_out, kernel, stride=stride, padding=padding, bias=False)


class BasicBlock(nn.Module):
    """Two 3×3 convolutions around a shortcut (ResNet-18 and -34)."""

    expansion = 1

    def __init__(self, n_in: int, width: int, stride: int, downsample: nn.Module | None) -> None:
        super().__init__()
        self.conv1 = _conv(n_in, width, 3, stride, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = _conv(width, width, 3, 1, 1)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = downsample

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's output."""
        shortcut = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        result: torch.Tensor = self.relu(self.bn2(self.conv2(out)) + shortcut)
        return result


class Bottleneck(nn.Module):
    """1×1, 3×3 (which carries the stride) and 1×1 convolutions around a shortcut (ResNet-50)."""

    expansion = 4

    def __init__(self, n_in: int, width: int, stride: int, downsample: nn.Module | None) -> None:
        super().__init__()
        self.conv1 = _conv(n_in, width, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _conv(width, width, 3, stride, 1)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = _conv(width, width * self.expansion, 1)
        self.bn3 = nn.BatchNorm2d(width * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's output."""
        shortcut = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        result: torch.Tensor = self.relu(self.bn3(self.conv3(out)) + shortcut)
        return result


BLOCKS: dict[int, tuple[type[BasicBlock] | type[Bottleneck], tuple[int, int, int, int]]] = {
    18: (BasicBlock, (2, 2, 2, 2)),
    34: (BasicBlock, (3, 4, 6, 3)),
    50: (Bottleneck, (3, 4, 6, 3)),
}


class ResNet(Network):
    """ResNet-18, -34 or -50.

    Parameters
    ----------
    depth
        18, 34 or 50.
    input_shape
        ``(channels, height, width)`` of one image.
    n_outputs
        Number of logits.
    stem
        ``"imagenet"`` has a 7×7 convolution of stride 2 and a max-pool, for large images;
        ``"small"`` has a 3×3 convolution of stride 1 and no pooling.
    padding
        Padding of the small stem. The authors of the paper used 0.

    Examples
    --------
    >>> net = ResNet(18, (1, 28, 28), 10, stem="small")
    >>> net.n_features, sum(p.numel() for p in net.parameters())
    (512, 11172810)
    """

    def __init__(
        self,
        depth: int,
        input_shape: Sequence[int],
        n_outputs: int,
        stem: Literal["small", "imagenet"] = "imagenet",
        padding: int = 1,
    ) -> None:
        super().__init__()
        block, counts = BLOCKS[depth]
        small = stem == "small"
        self.conv1 = (
            _conv(input_shape[0], 64, 3, 1, padding)
            if small
            else _conv(input_shape[0], 64, 7, 2, 3)
        )
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.Identity() if small else nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = _stage(block, 64, 64, counts[0], 1)
        self.layer2 = _stage(block, 64 * block.expansion, 128, counts[1], 2)
        self.layer3 = _stage(block, 128 * block.expansion, 256, counts[2], 2)
        self.layer4 = _stage(block, 256 * block.expansion, 512, counts[3], 2)
        self.n_features = 512 * block.expansion
        self.fc = nn.Linear(self.n_features, n_outputs)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """Return the globally averaged maps of the last stage, shape (B, n_features)."""
        maps: torch.Tensor = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        maps = self.layer4(self.layer3(self.layer2(self.layer1(maps))))
        return maps.mean(dim=(2, 3))


def _stage(
    block: type[BasicBlock] | type[Bottleneck], n_in: int, width: int, count: int, stride: int
) -> nn.Sequential:
    n_out = width * block.expansion
    downsample = None
    if stride != 1 or n_in != n_out:
        downsample = nn.Sequential(_conv(n_in, n_out, 1, stride), nn.BatchNorm2d(n_out))
    first = block(n_in, width, stride, downsample)
    return nn.Sequential(first, *(block(n_out, width, 1, None) for _ in range(count - 1)))
