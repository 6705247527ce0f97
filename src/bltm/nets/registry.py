"""Networks by name, and networks that the user makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from torch import nn

from bltm.core.errors import InputError
from bltm.nets.base import Network
from bltm.nets.compact import CompactNet
from bltm.nets.mlp import MLP
from bltm.nets.resnet import ResNet
from bltm.nets.weights import load_weights

NetFactory = Callable[[int], nn.Module]

SMALL_SIDE = 64
FACTORY_FEATURES = 128


def _resnet(depth: int, input_shape: Sequence[int], n_outputs: int, *, padding: int = 1) -> ResNet:
    stem: Literal["small", "imagenet"]
    stem = "small" if min(input_shape[1:]) <= SMALL_SIDE else "imagenet"
    return ResNet(depth, input_shape, n_outputs, stem=stem, padding=padding)


NETS: dict[str, Callable[[Sequence[int], int], Network]] = {
    "mlp": MLP,
    "compact": CompactNet,
    "resnet18": partial(_resnet, 18),
    "resnet34": partial(_resnet, 34),
    "resnet50": partial(_resnet, 50),
    # The authors' networks: a stem without padding takes two pixels off each side.
    "resnet18-unpadded": partial(_resnet, 18, padding=0),
    "resnet34-unpadded": partial(_resnet, 34, padding=0),
}


def net_name(net: str, input_shape: Sequence[int]) -> str:
    """Return the name that ``"auto"`` stands for, after checking that the network fits the input.

    Examples
    --------
    >>> net_name("auto", (4,)), net_name("auto", (1, 28, 28)), net_name("auto", (3, 224, 224))
    ('mlp', 'compact', 'resnet18')
    """
    image = len(input_shape) == 3
    if net == "auto":
        if not image:
            return "mlp"
        return "compact" if min(input_shape[1:]) <= SMALL_SIDE else "resnet18"
    if net not in NETS:
        raise InputError(
            "net",
            f"there is no network {net!r}",
            f"Known are {', '.join(['auto', *NETS])}; or give a function of the number of outputs.",
        )
    if not image and net != "mlp":
        raise InputError(
            "net",
            f"{net!r} is for images, but one input has shape {tuple(input_shape)}",
            'Use net="mlp" for tables and embeddings.',
        )
    return net


def make_net(
    net: str | NetFactory,
    input_shape: Sequence[int],
    n_outputs: int,
    weights: str | Path | None = None,
) -> nn.Module:
    """Build a network with ``n_outputs`` logits.

    Parameters
    ----------
    net
        A name in ``NETS``, ``"auto"`` (MLP for tables, the compact net for images of up to 64
        pixels, ResNet-18 above), or a function that is called with the number of outputs.
    input_shape
        Shape of one input.
    n_outputs
        Number of logits.
    weights
        File with weights to start from; see :func:`load_weights`.

    Examples
    --------
    >>> type(make_net("auto", (4,), 3)).__name__
    'MLP'
    >>> make_net(lambda n_outputs: nn.Linear(4, n_outputs), (4,), 3)
    Linear(in_features=4, out_features=3, bias=True)
    """
    module = (
        NETS[net_name(net, input_shape)](input_shape, n_outputs)
        if isinstance(net, str)
        else _call_factory(net, n_outputs)
    )
    if weights is not None:
        load_weights(module, weights)
    return module


def make_trunk(
    net: str | NetFactory, input_shape: Sequence[int], weights: str | Path | None = None
) -> tuple[nn.Module, int]:
    """Build the feature extractor of a transition network; return it with its width d.

    Networks of this package lose their head. A user's function is asked for 128 outputs, which
    serve as features.

    Examples
    --------
    >>> trunk, n_features = make_trunk("mlp", (4,))
    >>> n_features
    128
    """
    n_outputs = 1 if isinstance(net, str) else FACTORY_FEATURES
    module = make_net(net, input_shape, n_outputs)
    n_features = FACTORY_FEATURES
    if isinstance(net, str) and isinstance(module, Network):
        module.fc = nn.Identity()
        n_features = module.n_features
    if weights is not None:
        load_weights(module, weights)
    return module, n_features


def _call_factory(factory: object, n_outputs: int) -> nn.Module:
    if not callable(factory):
        raise InputError(
            "net",
            f"needs a name or a function of the number of outputs, got {type(factory).__name__}",
        )
    module = factory(n_outputs)
    if not isinstance(module, nn.Module):
        raise InputError(
            "net",
            f"the function given returned {type(module).__name__}, not a torch.nn.Module",
            "It is called with the number of outputs and returns a new network.",
        )
    return module
