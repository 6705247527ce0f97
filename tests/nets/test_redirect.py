"""T*(x) whose flips are redirected by the input itself."""

from __future__ import annotations

import pytest
import torch

from bltm.nets.redirect import SIDE, Seeing, View, view_size
from bltm.nets.transition import make_transition_network


@pytest.mark.parametrize("shape", [(4,), (300,), (1, 28, 28), (3, 32, 32), (3, 5, 40), (2, 8, 8)])
def test_the_view_has_the_size_that_is_said(shape: tuple[int, ...]) -> None:
    x = torch.randn(3, *shape)
    seen = View(shape)(x)
    assert seen.shape == (3, view_size(shape))
    assert seen.shape[1] <= shape[0] * SIDE**2


def test_an_image_is_seen_as_the_means_of_its_fields() -> None:
    x = torch.randn(2, 3, 16, 16)
    fields = x.reshape(2, 3, 8, 2, 8, 2).mean((3, 5)).flatten(1)
    torch.testing.assert_close(View((3, 16, 16))(x), fields)


def test_the_view_is_scaled() -> None:
    view = View((2,))
    view.mean.copy_(torch.tensor([1.0, 0.0]))
    view.scale.copy_(torch.tensor([2.0, 0.5]))
    assert view(torch.tensor([[3.0, 1.0]])).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("shape", [(4,), (1, 12, 12)])
def test_a_network_that_may_be_redirected_says_what_it_said(shape: tuple[int, ...]) -> None:
    net = "mlp" if len(shape) == 1 else "compact"
    network = make_transition_network(net, shape, 3, torch.full((3, 3), 1 / 3)).eval()
    torch.nn.init.normal_(network.head.residual.weight)  # type: ignore[union-attr, arg-type]
    redirected = network.redirected(shape).eval()
    assert isinstance(redirected.trunk, Seeing)
    x = torch.randn(5, *shape)
    with torch.no_grad():
        features, before = redirected.features(x), network.matrix(network.features(x))
        torch.testing.assert_close(redirected.matrix(features), before)
        redirected.head.weight.normal_()  # type: ignore[union-attr, operator]
        moved = redirected.matrix(features)
        assert float((moved - before).abs().max()) > 0.05
        # How often labels go wrong stays as it was.
        torch.testing.assert_close(moved.diagonal(dim1=1, dim2=2), before.diagonal(dim1=1, dim2=2))
        redirected.head.shrink(0.0)
        torch.testing.assert_close(redirected.matrix(features), torch.full((5, 3, 3), 1 / 3))
