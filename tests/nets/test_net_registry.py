"""Networks by name, by factory, and what is refused."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from bltm.core.errors import InputError
from bltm.nets import MLP, NETS, CompactNet, Network, ResNet, make_net, make_trunk


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ((4,), MLP),
        ((1, 8, 8), CompactNet),
        ((3, 64, 300), CompactNet),
        ((3, 65, 65), ResNet),
    ],
)
def test_auto_follows_the_input(shape: tuple[int, ...], kind: type) -> None:
    assert type(make_net("auto", shape, 3)) is kind


@pytest.mark.parametrize(("side", "kernel"), [(64, 3), (65, 7)])
def test_resnet_stem_follows_the_image_size(side: int, kernel: int) -> None:
    net = make_net("resnet34", (3, side, side + 5), 3)
    assert isinstance(net, ResNet)
    assert net.conv1.kernel_size == (kernel, kernel)
    assert isinstance(net.maxpool, nn.Identity) == (kernel == 3)


@pytest.mark.parametrize("name", NETS)
def test_trunk_gives_features_and_holds_no_head(name: str) -> None:
    shape = (1, 16, 16)
    trunk, n_features = make_trunk(name, shape)
    assert not [key for key in trunk.state_dict() if key.startswith("fc")]
    trunk.eval()
    x = torch.randn(2, *shape)
    assert trunk(x).shape == (2, n_features)
    assert isinstance(trunk, Network)
    torch.testing.assert_close(trunk(x), trunk.features(x))


def test_trunk_takes_the_state_of_a_classifier_of_the_same_name() -> None:
    classifier = make_net("compact", (1, 8, 8), 10)
    trunk, _ = make_trunk("compact", (1, 8, 8))
    state = {k: v for k, v in classifier.state_dict().items() if not k.startswith("fc.")}
    trunk.load_state_dict(state)
    assert isinstance(classifier, Network)
    x = torch.randn(3, 1, 8, 8)
    torch.testing.assert_close(trunk.eval()(x), classifier.eval().features(x))


def test_factory_is_called_with_the_number_of_outputs() -> None:
    asked: list[int] = []

    def factory(n_outputs: int) -> nn.Module:
        asked.append(n_outputs)
        return nn.Linear(4, n_outputs)

    assert isinstance(make_net(factory, (4,), 3), nn.Linear)
    trunk, n_features = make_trunk(factory, (4,))
    assert asked == [3, 128]
    assert n_features == 128
    assert trunk(torch.zeros(2, 4)).shape == (2, 128)


def test_factory_that_returns_a_network_of_ours_keeps_its_head() -> None:
    trunk, n_features = make_trunk(lambda n: MLP((4,), n, hidden=(8,)), (4,))
    assert n_features == 128
    assert trunk(torch.zeros(2, 4)).shape == (2, 128)


def test_wrong_networks_are_refused() -> None:
    with pytest.raises(InputError, match=r"no network 'vgg'.*auto, mlp, compact, resnet18"):
        make_net("vgg", (4,), 3)
    with pytest.raises(InputError, match="is for images"):
        make_net("compact", (4,), 3)
    with pytest.raises(InputError, match="returned int"):
        make_net(lambda n: n, (4,), 3)  # type: ignore[arg-type,return-value]
    with pytest.raises(InputError, match="got NoneType"):
        make_trunk(None, (4,))  # type: ignore[arg-type]
