"""Every network runs on every input it is meant for, and is features plus one linear layer."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from bltm.core.random import torch_stream
from bltm.nets import MLP, CompactNet, Network, ResNet, make_net

IMAGES = [(1, 8, 8), (3, 9, 13), (1, 28, 28), (3, 32, 32), (3, 64, 64), (1, 80, 72)]


def build(name: str, shape: tuple[int, ...], n_outputs: int = 5) -> Network:
    with torch_stream(0, name):
        net = make_net(name, shape, n_outputs)
    assert isinstance(net, Network)
    return net


def batch(shape: tuple[int, ...], n: int = 4) -> torch.Tensor:
    x = torch.randn(n, *shape, generator=torch.Generator().manual_seed(1))
    return x.contiguous(memory_format=torch.channels_last) if len(shape) == 3 else x


def check_runs(net: Network, x: torch.Tensor) -> None:
    net.train()
    logits = net(x)
    assert logits.shape == (len(x), 5)
    logits.square().sum().backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name
    net.eval()
    with torch.no_grad():
        features = net.features(x)
        assert features.shape == (len(x), net.n_features)
        torch.testing.assert_close(net.fc(features), net(x))


@pytest.mark.parametrize("shape", IMAGES)
def test_compact_net_runs_on_images_of_any_size(shape: tuple[int, ...]) -> None:
    check_runs(build("compact", shape).to(memory_format=torch.channels_last), batch(shape))


@pytest.mark.parametrize("shape", [(1,), (4,), (300,), *IMAGES[:2]])
def test_mlp_runs_on_tables_and_flattens_images(shape: tuple[int, ...]) -> None:
    check_runs(build("mlp", shape), batch(shape))


@pytest.mark.parametrize("name", ["resnet18", "resnet34", "resnet50", "resnet18-unpadded"])
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (3, 72, 80)])
def test_resnets_run_on_small_and_large_images(name: str, shape: tuple[int, ...]) -> None:
    check_runs(build(name, shape), batch(shape))


def test_mlp_treats_each_example_alone() -> None:
    net = MLP((7,), 3).train()
    x = batch((7,), 6)
    one_by_one = torch.cat([net(x[i : i + 1]) for i in range(6)])
    torch.testing.assert_close(one_by_one, net(x))


def test_mlp_without_hidden_layers_is_linear() -> None:
    net = MLP((7,), 3, hidden=())
    assert net.n_features == 7
    x = batch((7,))
    torch.testing.assert_close(net(x), nn.functional.linear(x, net.fc.weight, net.fc.bias))


def test_compact_net_keeps_a_map_of_small_images() -> None:
    net = CompactNet((1, 8, 8), 10)
    maps = net.convolutions(batch((1, 8, 8)))
    assert min(maps.shape[2:]) == 4


@pytest.mark.parametrize("name", ["mlp", "compact", "resnet18"])
def test_initialisation_is_a_function_of_the_stream(name: str) -> None:
    first, second = build(name, (1, 8, 8)), build(name, (1, 8, 8))
    for key, value in first.state_dict().items():
        assert torch.equal(value, second.state_dict()[key]), key


@pytest.mark.parametrize(("padding", "side"), [(1, 28), (0, 26)])
def test_small_stem_keeps_resolution_up_to_its_padding(padding: int, side: int) -> None:
    net = ResNet(18, (1, 28, 28), 10, stem="small", padding=padding)
    maps = net.maxpool(net.conv1(batch((1, 28, 28))))
    assert maps.shape[2:] == (side, side)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "side"), [("mlp", None), ("compact", 8)])
def test_net_learns_digits_quickly(name: str, side: int | None) -> None:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    x = torch.tensor((pixels - 4.88) / 6.02, dtype=torch.float32)
    x = x if side is None else x.view(-1, 1, side, side)
    y = torch.tensor(labels)
    net = build(name, tuple(x.shape[1:]), 10)
    optimiser = torch.optim.Adam(net.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 5e-3, total_steps=10 * 11)
    generator = torch.Generator().manual_seed(0)
    train, test = torch.randperm(len(x), generator=generator).split([1408, len(x) - 1408])
    for _ in range(10):
        for index in train[torch.randperm(1408, generator=generator)].view(11, 128):
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(x[index]), y[index]).backward()
            optimiser.step()
            schedule.step()
    net.eval()
    with torch.no_grad():
        accuracy = (net(x[test]).argmax(1) == y[test]).float().mean()
    assert accuracy > 0.95
