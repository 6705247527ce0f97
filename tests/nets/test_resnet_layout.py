"""ResNets have the parameter names and shapes of torchvision's."""

from __future__ import annotations

import pytest
import torch

from bltm.nets import ResNet


def published_layout(depth: int) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of torchvision's ResNet for ImageNet, from the published tables."""
    counts = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}[depth]
    expansion = 4 if depth == 50 else 1
    layout: dict[str, tuple[int, ...]] = {"conv1.weight": (64, 3, 7, 7)}

    def norm(name: str, width: int) -> None:
        for part in ("weight", "bias", "running_mean", "running_var"):
            layout[f"{name}.{part}"] = (width,)
        layout[f"{name}.num_batches_tracked"] = ()

    norm("bn1", 64)
    n_in = 64
    for stage, (count, width) in enumerate(zip(counts, (64, 128, 256, 512), strict=True), start=1):
        n_out = width * expansion
        for k in range(count):
            block = f"layer{stage}.{k}"
            if depth == 50:
                convolutions = [(width, n_in, 1), (width, width, 3), (n_out, width, 1)]
            else:
                convolutions = [(width, n_in, 3), (width, width, 3)]
            for c, (outputs, inputs, kernel) in enumerate(convolutions, start=1):
                layout[f"{block}.conv{c}.weight"] = (outputs, inputs, kernel, kernel)
                norm(f"{block}.bn{c}", outputs)
            if k == 0 and n_in != n_out:
                layout[f"{block}.downsample.0.weight"] = (n_out, n_in, 1, 1)
                norm(f"{block}.downsample.1", n_out)
            n_in = n_out
    layout["fc.weight"], layout["fc.bias"] = (1000, n_in), (1000,)
    return layout


@pytest.mark.parametrize(
    ("depth", "n_parameters", "n_entries"),
    [(18, 11_689_512, 122), (34, 21_797_672, 218), (50, 25_557_032, 320)],
)
def test_layout_is_torchvisions(depth: int, n_parameters: int, n_entries: int) -> None:
    with torch.device("meta"):
        net = ResNet(depth, (3, 224, 224), 1000, stem="imagenet")
    found = {name: tuple(value.shape) for name, value in net.state_dict().items()}
    assert len(found) == n_entries
    assert found == published_layout(depth)
    assert sum(parameter.numel() for parameter in net.parameters()) == n_parameters


def test_some_entries_of_resnet18_by_hand() -> None:
    with torch.device("meta"):
        shapes = {k: tuple(v.shape) for k, v in ResNet(18, (3, 224, 224), 7).state_dict().items()}
    assert shapes["layer1.0.conv1.weight"] == (64, 64, 3, 3)
    assert shapes["layer2.0.conv1.weight"] == (128, 64, 3, 3)
    assert shapes["layer4.0.downsample.0.weight"] == (512, 256, 1, 1)
    assert shapes["layer4.1.bn2.running_var"] == (512,)
    assert shapes["fc.weight"] == (7, 512)
    assert "layer1.0.downsample.0.weight" not in shapes


@pytest.mark.parametrize("channels", [1, 3, 5])
def test_small_stem_takes_any_number_of_channels(channels: int) -> None:
    with torch.device("meta"):
        net = ResNet(34, (channels, 32, 32), 10, stem="small")
    assert tuple(net.conv1.weight.shape) == (64, channels, 3, 3)
    assert net.conv1.stride == (1, 1)


def test_strides_sit_where_torchvision_has_them() -> None:
    with torch.device("meta"):
        basic, bottleneck = (
            ResNet(18, (3, 224, 224), 10),
            ResNet(50, (3, 224, 224), 10),
        )
    modules = dict(basic.named_modules()), dict(bottleneck.named_modules())
    for stage in (2, 3, 4):
        assert modules[0][f"layer{stage}.0.conv1"].stride == (2, 2)
        assert modules[0][f"layer{stage}.0.downsample.0"].stride == (2, 2)
        assert modules[1][f"layer{stage}.0.conv1"].stride == (1, 1)
        assert modules[1][f"layer{stage}.0.conv2"].stride == (2, 2)
    assert modules[1]["layer1.0.downsample.0"].stride == (1, 1)
