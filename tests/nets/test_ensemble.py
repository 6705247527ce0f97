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


def test_one_network_is_no_ensemble() -> None:
    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    assert together([first]) is first
    assert last_member(first) is first
    both = together([first, second])
    assert isinstance(both, Ensemble)
    assert last_member(both) is second
