"""Noise models by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bltm.core.errors import InputError
from bltm.noise.class_conditional import (
    asymmetric_noise,
    matrix_noise,
    pair_noise,
    symmetric_noise,
)
from bltm.noise.instance import instance_noise
from bltm.noise.pmd import pmd_noise
from bltm.noise.record import NoisyLabels

NOISE_MODELS: dict[str, Callable[..., NoisyLabels]] = {
    "instance": instance_noise,
    "symmetric": symmetric_noise,
    "pair": pair_noise,
    "asymmetric": asymmetric_noise,
    "matrix": matrix_noise,
    "pmd": pmd_noise,
}


def make_noise(
    x: Any,
    y: ArrayLike,
    model: str,
    rate: float | None,
    seed: int,
    n_classes: int | None = None,
    **options: Any,
) -> NoisyLabels:
    """Make noisy labels from clean ones.

    Make the noise on the whole training set before any split.

    Parameters
    ----------
    x
        Features or images of the n examples; may be None for models that do not look at them.
    y
        Clean labels as codes 0..C-1, shape (n,).
    model
        A key of ``NOISE_MODELS``.
    rate
        Nominal noise rate; None where an option says it (``matrix``; ``pmd`` with a factor).
    seed
        The same seed, inputs and options give the same labels. Global random state is not touched.
    n_classes
        Number of classes C; by default the largest label plus one.
    **options
        The keyword arguments of the model's own function.

    Examples
    --------
    >>> noisy = make_noise(None, [0, 1, 2, 3] * 25, "pair", rate=0.2, seed=0)
    >>> noisy.T[0].tolist()
    [0.8, 0.2, 0.0, 0.0]
    """
    if model not in NOISE_MODELS:
        raise InputError(
            "model", f"has no noise model {model!r}", f"Choose from: {', '.join(NOISE_MODELS)}."
        )
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise InputError("seed", f"must be an integer, got {seed!r}", "Use a value such as 0.")
    valid = option_names(model)
    for name in options:
        if name not in valid:
            raise InputError(
                name,
                f"is not an option of noise model {model!r}",
                f"Its options are: {', '.join(valid)}.",
            )
    missing = [name for name, required in valid.items() if required and name not in options]
    if missing:
        raise InputError(missing[0], f"is needed by noise model {model!r} and was not given")
    return NOISE_MODELS[model](x, y, rate, seed, n_classes, **options)


def option_names(model: str) -> dict[str, bool]:
    """Return the options of a noise model, and whether each must be given.

    Examples
    --------
    >>> option_names("asymmetric")
    {'mapping': True, 'draws': False}
    """
    parameters = inspect.signature(NOISE_MODELS[model]).parameters.values()
    return {p.name: p.default is p.empty for p in parameters if p.kind is p.KEYWORD_ONLY}
