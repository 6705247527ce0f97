"""T and T(x) without their revision, and their diagonals, of all kinds of transitions."""

import pytest
import torch
from torch import nn

from bltm.core.matrix import normalise_rows
from bltm.engine.conclusion import conclude_corrected
from bltm.engine.parts_transition import PartsTransition
from bltm.engine.transition_model import (
    ClassTransition,
    Corrected,
    Transition,
    TransitionModel,
    column_of_given_label,
)
from bltm.nets.transition import make_transition_network
from bltm.transition.revision import Revision

from .helpers import tiny_job


def some_matrix(seed: int, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return normalise_rows(torch.rand(*shape, 3, 3, generator=generator) + 2 * torch.eye(3))


def make(kind: str, revision: Revision | None) -> Transition:
    if kind == "class":
        return ClassTransition(some_matrix(0), revision)
    if kind == "parts":
        parts = torch.rand(2, 4, generator=torch.Generator().manual_seed(1))
        return PartsTransition(nn.Identity(), parts, some_matrix(2, 2), revision)
    torch.manual_seed(0)
    return TransitionModel(make_transition_network("mlp", (4,), 3), revision).eval()


@pytest.mark.parametrize("kind", ["class", "parts", "network"])
@torch.no_grad()
def test_unrevised_and_diagonal(kind: str) -> None:
    x = torch.rand(5, 4, generator=torch.Generator().manual_seed(3))
    revision = Revision(3)
    for parameter in revision.parameters():
        nn.init.normal_(parameter, std=0.2, generator=torch.Generator().manual_seed(4))
    plain, revised = make(kind, None), make(kind, revision)
    assert (plain(x) - revised(x)).abs().max() > 0.01
    torch.testing.assert_close(revised.unrevised(x), plain(x))
    torch.testing.assert_close(plain.unrevised(x), plain(x))
    for transition in (plain, revised):
        torch.testing.assert_close(transition.diagonal(x), torch.einsum("bii->bi", transition(x)))


def test_the_noise_rate_is_that_of_t_before_its_revision() -> None:
    revision = Revision(3)
    with torch.no_grad():
        for parameter in revision.parameters():
            parameter.copy_(torch.eye(3))
    job = tiny_job(90)
    rates = []
    for each in (None, revision):
        transition = ClassTransition(some_matrix(0), each).requires_grad_(False)
        columns = column_of_given_label(job, transition)
        corrected = Corrected(job.new_classifier("f"), transition, columns)
        rates.append(conclude_corrected(job, corrected).findings["noise_rate"])
    assert rates[0] == pytest.approx(rates[1], abs=1e-5)
    assert 0.1 < rates[0] < 0.9
