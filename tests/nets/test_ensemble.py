"""Several networks that answer as one."""

import torch
from torch import nn

from bltm.nets.ensemble import Ensemble, last_member, together


def test_it_answers_with_the_mean_of_the_logits() -> None:
    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    x = torch.randn(5, 3)
    torch.testing.assert_close(Ensemble([first, second])(x), (first(x) + second(x)) / 2)


def test_networks_that_agree_are_no_surer_together() -> None:
    network, x = nn.Linear(3, 2), torch.randn(5, 3)
    torch.testing.assert_close(Ensemble([network, network])(x), network(x))


def test_a_mirrored_one_answers_for_both_views() -> None:
    first, second = (nn.Sequential(nn.Flatten(), nn.Linear(12, 2)) for _ in range(2))
    x = torch.randn(5, 1, 3, 4)
    seen = [network(view) for network in (first, second) for view in (x, x[..., [3, 2, 1, 0]])]
    torch.testing.assert_close(Ensemble([first, second], mirrored=True)(x), sum(seen) / 4)
    alone = together([first], mirrored=True)
    torch.testing.assert_close(alone(x), alone(x.flip(-1)))
    torch.testing.assert_close(alone(x), (seen[0] + seen[1]) / 2)


def test_one_network_is_no_ensemble() -> None:
    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    assert together([first]) is first
    assert last_member(first) is first
    both = together([first, second])
    assert isinstance(both, Ensemble)
    assert last_member(both) is second
