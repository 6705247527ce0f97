"""Named streams: pure functions of seed and names that leave global state alone."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bltm.core.random import derived_seed, stream, torch_stream

REPEATABLE = settings(derandomize=True, deadline=None)


def global_state() -> tuple[Any, ...]:
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002
    return (
        random.getstate(),
        (kind, tuple(keys), *rest),
        tuple(torch.get_rng_state().tolist()),
    )


def test_same_names_same_numbers():
    np.testing.assert_array_equal(stream(7, "a", 1).random(50), stream(7, "a", 1).random(50))


def test_order_of_requests_does_not_matter():
    alone = stream(7, "b").random(5)
    stream(7, "a").random(1000)
    np.testing.assert_array_equal(stream(7, "b").random(5), alone)


DISTINCT = [
    (0,),
    (0, "a"),
    (0, "b"),
    (0, "a", "b"),
    (0, "b", "a"),
    (0, "ab"),
    (0, 1),
    (0, "1"),
    (0, 1, 2),
    (0, 12),
    (1, "a"),
    (-1, "a"),
    (2**64, "a"),
]


def test_different_seeds_and_names_give_different_streams():
    seeds = [derived_seed(*names) for names in DISTINCT]
    assert len(set(seeds)) == len(DISTINCT)
    assert len({float(stream(*names).random()) for names in DISTINCT}) == len(DISTINCT)


@REPEATABLE
@given(seed=st.integers(-(2**70), 2**70), name=st.text(max_size=5), number=st.integers())
def test_derived_seed_is_a_63_bit_integer(seed: int, name: str, number: int):
    value = derived_seed(seed, name, number)
    assert 0 <= value < 2**63
    assert value == derived_seed(seed, name, number)


def test_derived_seed_does_not_change_between_versions():
    assert derived_seed(0, "warm_up") == 1996703407774662355


def test_streams_of_neighbouring_seeds_and_names_are_uncorrelated():
    draws = np.stack(
        [stream(seed, "epoch", k).standard_normal(2000) for seed in (0, 1) for k in range(10)]
    )
    correlation = np.corrcoef(draws)[np.triu_indices(20, k=1)]
    assert np.abs(correlation).max() < 4.5 / np.sqrt(2000)


def test_numpy_seed_types_are_the_same_seed():
    assert derived_seed(np.int64(5), "a") == derived_seed(5, "a")


def test_streams_leave_global_state_alone():
    before = global_state()
    stream(0, "a").random(10)
    with torch_stream(0, "a"):
        torch.randn(10)
    assert global_state() == before


def test_torch_stream_is_determined_by_its_names_and_not_by_global_state():
    with torch_stream(3, "init"):
        first = torch.randn(4)
    torch.randn(17)
    with torch_stream(3, "init"):
        second = torch.randn(4)
    with torch_stream(3, "other"):
        third = torch.randn(4)
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


def test_torch_stream_restores_the_state_after_an_error():
    @torch_stream(3, "init")
    def break_down() -> None:
        torch.randn(4)
        raise RuntimeError("stop")

    before = global_state()
    with pytest.raises(RuntimeError, match="stop"):
        break_down()
    assert global_state() == before


def test_torch_streams_nest():
    with torch_stream(0, "outer"):
        expected = torch.randn(2), torch.randn(2)
    with torch_stream(0, "outer"):
        first = torch.randn(2)
        with torch_stream(0, "inner"):
            torch.randn(5)
        second = torch.randn(2)
    assert torch.equal(first, expected[0])
    assert torch.equal(second, expected[1])
