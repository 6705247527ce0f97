"""Named random streams: every draw in the package comes from one seed and a name.

A stream is a pure function of ``(seed, *names)``. Nothing has to be carried along or saved: a run
that is resumed asks for the same names and gets the same numbers. Global random state (NumPy's,
Python's, torch's) is never read and is left as it was found.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


def derived_seed(seed: int, *names: str | int) -> int:
    """Return a 63-bit integer that depends on the seed and all names.

    Examples
    --------
    >>> derived_seed(0, "warm_up") == derived_seed(0, "warm_up")
    True
    >>> derived_seed(0, "warm_up") == derived_seed(0, "transition")
    False
    """
    text = "\x1f".join([str(int(seed)), *(f"{type(n).__name__}:{n}" for n in names)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Return the NumPy generator of the stream ``(seed, *names)``.

    Examples
    --------
    >>> bool(stream(1, "noise").random() == stream(1, "noise").random())
    True
    """
    return np.random.default_rng(derived_seed(seed, *names))


@contextmanager
def torch_stream(seed: int, *names: str | int) -> Iterator[None]:
    """Put a named stream into torch's global generators for the length of a block.

    Layers such as dropout, and the initialisation of modules, can only draw from the global
    generators. The caller's state is put back afterwards, also after an error.

    Examples
    --------
    >>> import torch
    >>> before = torch.get_rng_state()
    >>> with torch_stream(3, "init"):
    ...     weight = torch.randn(2)
    >>> bool((torch.get_rng_state() == before).all())
    True
    """
    import torch

    value = derived_seed(seed, *names)
    cuda = list(torch.cuda.default_generators)  # empty until CUDA is initialised
    # The generators are seeded directly: torch.manual_seed would also queue a call for every
    # device that is not initialised yet, at each step.
    generators = [torch.default_generator, *cuda]
    states = [generator.get_state() for generator in generators]
    try:
        for generator in generators:
            generator.manual_seed(value)
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)
