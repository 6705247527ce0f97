"""Rows, columns and matrices of both heads against loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bltm.core.errors import InputError
from bltm.core.matrix import check_transition, normalise_rows
from bltm.core.random import torch_stream
from bltm.losses import transition_nll
from bltm.nets import DenseHead, PartsHead, TransitionNetwork, heads, make_transition_network
from bltm.nets.heads import TransitionHead
from bltm.nets.redirect import RedirectedHead

N_VIEW = 2


def random_base(seed: int, n_classes: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n_classes, n_classes, generator=generator).softmax(-1)


def make_head(
    kind: str, n_features: int, n_classes: int, with_base: bool = True, seed: int = 0
) -> TransitionHead:
    base = random_base(seed, n_classes) if with_base else None
    with torch_stream(seed, kind):
        head: TransitionHead
        if kind == "dense":
            head = DenseHead(n_features, n_classes, base)
            torch.nn.init.normal_(head.residual.weight)
        elif kind == "redirected":
            inner = DenseHead(n_features - N_VIEW, n_classes, base)
            torch.nn.init.normal_(inner.residual.weight)
            head = RedirectedHead(inner, N_VIEW)
            torch.nn.init.normal_(head.weight)
            torch.nn.init.normal_(head.bias)
        else:
            head = PartsHead(n_features, n_classes, n_parts=3, base=base)
            torch.nn.init.normal_(head.parts)
    return head


def softmax(row: list[float]) -> list[float]:
    total = sum(math.exp(v) for v in row)
    return [math.exp(v) / total for v in row]


def slow_matrix(head: TransitionHead, features: list[float]) -> list[list[float]]:
    if isinstance(head, RedirectedHead):
        return slow_redirected(head, features)
    C, log_base = head.n_classes, head.log_base.tolist()

    def outputs(layer: torch.nn.Linear) -> list[float]:
        return [
            sum(w * f for w, f in zip(row, features, strict=True)) + b
            for row, b in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)
        ]

    if isinstance(head, DenseHead):
        r = outputs(head.residual)
        return [softmax([log_base[i][j] + r[i * C + j] for j in range(C)]) for i in range(C)]
    assert isinstance(head, PartsHead)
    mixture, parts = softmax(outputs(head.mixture)), head.parts.tolist()
    A = [
        [softmax([log_base[i][j] + part[i][j] for j in range(C)]) for i in range(C)]
        for part in parts
    ]
    return [
        [sum(w * a[i][j] for w, a in zip(mixture, A, strict=True)) for j in range(C)]
        for i in range(C)
    ]


def slow_redirected(head: RedirectedHead, features: list[float]) -> list[list[float]]:
    T = slow_matrix(head.inner, features[:-N_VIEW])
    view, weight, bias = features[-N_VIEW:], head.weight.tolist(), head.bias.tolist()
    for i, row in enumerate(T):
        wrong = [j for j in range(len(row)) if j != i]
        pulls = [
            row[j]
            * math.exp(bias[i][j] + sum(w * z for w, z in zip(weight[i][j], view, strict=True)))
            for j in wrong
        ]
        flips = 1.0 - row[i]
        for j, pull in zip(wrong, pulls, strict=True):
            row[j] = flips * pull / sum(pulls)
    return T


@pytest.mark.parametrize("with_base", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["dense", "parts", "redirected"])
def test_matrix_equals_the_loop(kind: str, dtype: torch.dtype, with_base: bool) -> None:
    head = make_head(kind, 3, 4, with_base).to(dtype)
    features = torch.randn(5, 3, dtype=dtype)
    expected = torch.tensor([slow_matrix(head, f) for f in features.tolist()], dtype=dtype)
    torch.testing.assert_close(head.matrix(features), expected)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["dense", "parts", "redirected"]),
    st.integers(0, 10_000),
    st.integers(1, 7),
    st.integers(2, 6),
    st.booleans(),
)
def test_rows_and_columns_are_those_of_the_matrix(
    kind: str, seed: int, n: int, n_classes: int, with_base: bool
) -> None:
    head = make_head(kind, 3, n_classes, with_base, seed).double()
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(n, 3, generator=generator, dtype=torch.float64)
    labels = torch.randint(n_classes, (n,), generator=generator)
    with torch.no_grad():
        T = head.matrix(features)
        check_transition(T.numpy())
        index = torch.arange(n)
        torch.testing.assert_close(head.rows(features, labels)[0], T[index, labels].log())
        torch.testing.assert_close(head.log_columns(features, labels), T[index, :, labels].log())
        torch.testing.assert_close(head.diagonal(features), torch.einsum("bii->bi", T))


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(["dense", "parts", "redirected"]),
    st.integers(0, 10_000),
    st.integers(1, 5),
    st.integers(2, 5),
    st.booleans(),
)
def test_revised_columns_and_noisy_probabilities_are_those_of_the_revised_matrix(
    kind: str, seed: int, n: int, n_classes: int, revised: bool
) -> None:
    head = make_head(kind, 3, n_classes, seed=seed).double()
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(n, 3, generator=generator, dtype=torch.float64)
    log_p = torch.randn(n, n_classes, generator=generator, dtype=torch.float64).log_softmax(-1)
    labels = torch.randint(n_classes, (n,), generator=generator)
    delta = torch.rand(n_classes, n_classes, generator=generator, dtype=torch.float64)

    def revise(T: torch.Tensor) -> torch.Tensor:
        return normalise_rows(T + delta)

    argument = revise if revised else None
    with torch.no_grad():
        T = revise(head.matrix(features)) if revised else head.matrix(features)
        torch.testing.assert_close(head.matrix(features, argument), T)
        columns = head.log_columns(features, labels, argument)
        torch.testing.assert_close(columns, T[torch.arange(n), :, labels].log())
        noisy = [[float(log_p[b].exp() @ T[b, :, j]) for j in range(n_classes)] for b in range(n)]
        found = head.log_noisy(features, log_p, argument)
        torch.testing.assert_close(found.exp(), torch.tensor(noisy, dtype=torch.float64))


@pytest.mark.parametrize("kind", ["dense", "parts"])
def test_blocks_give_what_one_piece_gives(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    head = make_head(kind, 3, 7)
    features, labels = torch.randn(11, 3), torch.randint(7, (11,))
    whole = head.rows(features, labels)[0], head.log_columns(features, labels)
    monkeypatch.setattr(heads, "BLOCK", 2 * 7 * 11)
    torch.testing.assert_close(head.rows(features, labels)[0], whole[0])
    torch.testing.assert_close(head.log_columns(features, labels), whole[1])


def test_dense_head_starts_at_its_base_and_penalises_nothing() -> None:
    base = random_base(0, 4)
    head = DenseHead(6, 4, base)
    features = torch.randn(3, 6)
    torch.testing.assert_close(head.matrix(features), base.expand(3, 4, 4))
    assert not head.rows(features, torch.tensor([0, 1, 3]))[1].any()


def test_dense_head_strain_is_the_squared_departure_of_own_and_other_rows() -> None:
    head = make_head("dense", 3, 4)
    assert isinstance(head, DenseHead)
    features, labels = torch.randn(5, 3), torch.randint(4, (5,))
    strain = head.rows(features, labels)[1]
    for b, label in enumerate(labels.tolist()):
        squares = [v**2 for v in head.residual(features[b]).tolist()]
        own = sum(squares[4 * label : 4 * label + 4])
        expected = torch.tensor([own, sum(squares) - own])
        torch.testing.assert_close(strain[b], expected, rtol=1e-4, atol=1e-5)


def test_dense_head_without_base_is_a_plain_linear_layer() -> None:
    head = DenseHead(6, 4)
    features = torch.randn(3, 6)
    logits = head.residual(features).view(3, 4, 4)
    torch.testing.assert_close(head.matrix(features), logits.softmax(-1))
    assert head.residual.weight.any()


def test_parts_head_starts_near_its_base_with_different_parts() -> None:
    base = random_base(0, 4)
    head = PartsHead(6, 4, base=base)
    features = torch.randn(3, 6)
    torch.testing.assert_close(head.matrix(features), base.expand(3, 4, 4), atol=0.05, rtol=0)
    rows, strain = head.rows(features, torch.tensor([0, 1, 3]))
    departure = (rows - base[[0, 1, 3]].log()).square().sum(1)
    torch.testing.assert_close(strain[:, 0], departure)
    torch.testing.assert_close(strain[:, 1], head.parts.square().sum((1, 2)).mean().expand(3))
    rows.sum().backward()
    gradients = head.parts.grad
    assert gradients is not None
    assert not torch.allclose(gradients[0], gradients[1])


@pytest.mark.parametrize("kind", ["dense", "parts"])
def test_zeros_in_the_base_stay_finite(kind: str) -> None:
    network = make_transition_network("mlp", (4,), 3, base=np.eye(3), head=kind)  # type: ignore[arg-type]
    features, labels = network.features(torch.randn(5, 4)), torch.tensor([0, 1, 2, 0, 1])
    assert network.log_rows(features, labels).isfinite().all()
    assert network.log_columns(features, labels).isfinite().all()


def test_gradient_of_eq_3_touches_only_the_row_of_the_bayes_label() -> None:
    head = make_head("dense", 3, 4)
    assert isinstance(head, DenseHead)
    bayes, noisy = torch.tensor([1, 1, 3]), torch.tensor([0, 1, 2])
    log_rows, _ = head.rows(torch.randn(3, 3), bayes)
    transition_nll(log_rows, noisy).mean().backward()
    gradient = head.residual.weight.grad
    assert gradient is not None
    touched = gradient.view(4, 4, 3).abs().sum((1, 2)) > 0
    assert touched.tolist() == [False, True, False, True]


@pytest.mark.parametrize("kind", ["dense", "parts"])
def test_network_trains_through_forward_and_uses_every_parameter(kind: str) -> None:
    network = make_transition_network("compact", (1, 8, 8), 3, head=kind)  # type: ignore[arg-type]
    x, bayes, noisy = torch.randn(8, 1, 8, 8), torch.arange(8) % 3, torch.arange(8) % 2
    log_rows, strain = network(x, bayes)
    (transition_nll(log_rows, noisy) + strain.sum(-1)).mean().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
    network.eval()
    features = network.features(x)
    torch.testing.assert_close(network(x, bayes)[0], network.log_rows(features, bayes))


@pytest.mark.parametrize("kind", ["dense", "parts"])
def test_base_travels_with_the_state(kind: str) -> None:
    saved = TransitionNetwork(torch.nn.Identity(), make_head(kind, 3, 4))
    loaded = TransitionNetwork(torch.nn.Identity(), make_head(kind, 3, 4, with_base=False, seed=1))
    loaded.load_state_dict(saved.state_dict())
    x = torch.randn(2, 3)
    torch.testing.assert_close(loaded.matrix(x), saved.matrix(x))


@pytest.mark.parametrize(("n_classes", "kind"), [(99, DenseHead), (100, PartsHead)])
def test_head_follows_the_number_of_classes(n_classes: int, kind: type) -> None:
    assert type(make_transition_network("mlp", (4,), n_classes).head) is kind


def test_unknown_head_and_transposed_base_are_refused() -> None:
    with pytest.raises(InputError, match="no head 'full'"):
        make_transition_network("mlp", (4,), 3, head="full")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="transpose"):
        make_transition_network("mlp", (4,), 2, base=np.array([[0.9, 0.4], [0.1, 0.6]]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dense", "parts"])
def test_trained_network_beats_the_best_class_dependent_matrix(kind: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(6000, 4, generator=generator)
    bayes = torch.randint(3, (6000,), generator=generator)
    sides = torch.tensor(
        [
            [[0.9, 0.1, 0.0], [0.4, 0.6, 0.0], [0.0, 0.3, 0.7]],
            [[0.5, 0.0, 0.5], [0.0, 0.9, 0.1], [0.2, 0.0, 0.8]],
        ]
    )
    T = sides[(x[:, 0] > 0).long()]
    noisy = torch.multinomial(T[torch.arange(6000), bayes], 1, generator=generator).squeeze(1)
    base = sides.mean(0)
    with torch_stream(0, "init"):
        network = make_transition_network("mlp", (4,), 3, base=base, head=kind)
    optimiser = torch.optim.Adam(network.parameters(), 3e-3)
    for _ in range(4):
        for index in torch.randperm(6000, generator=generator).split(100):
            optimiser.zero_grad()
            log_rows, strain = network(x[index], bayes[index])
            penalty = 1e-4 * strain[:, 0]
            (transition_nll(log_rows, noisy[index]) + penalty).mean().backward()
            optimiser.step()
    with torch.no_grad():
        error = (network.matrix(network.features(x)) - T).abs().mean()
    assert error < 0.5 * (base - T).abs().mean()


@pytest.mark.parametrize("kind", ["dense", "parts"])
@torch.no_grad()
def test_a_shrunk_head_departs_less_from_its_base(kind: str) -> None:
    features = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    base = random_base(0, 3)
    whole = make_head(kind, 4, 3).matrix(features)
    departures = []
    for share in (1.0, 0.5, 0.0):
        head = make_head(kind, 4, 3)
        head.shrink(share)
        departures.append(float((head.matrix(features) - base).abs().sum()))
        if share == 1.0:
            assert torch.equal(head.matrix(features), whole)
    assert departures[0] > departures[1] > departures[2]
    assert departures[2] == pytest.approx(0.0, abs=1e-4)


def test_half_of_a_dense_head_is_the_geometric_mean_with_its_base() -> None:
    features = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    head = make_head("dense", 4, 3)
    expected = normalise_rows((head.matrix(features) * random_base(0, 3)).sqrt())
    head.shrink(0.5)
    torch.testing.assert_close(head.matrix(features), expected)
