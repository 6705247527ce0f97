"""Collect what the user wants of T*(x) while it streams by, so that N×C×C is never held."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from bltm.core.errors import InputError
from bltm.engine.transition_model import Transition

LARGEST = 2 * 1024**3
# Entries of T*(x) that a batch may have: 64 MB.
BLOCK = 1 << 24


class TopTransitions(NamedTuple):
    """The most probable noisy labels of each row, and their probabilities, each (..., k)."""

    labels: NDArray[Any]
    probs: NDArray[np.float32]


def row_of(
    transition: Transition, labels: NDArray[np.int64]
) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return the function from inputs and indices to the row of each example's label."""
    codes = torch.from_numpy(labels)

    def rows(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return transition.rows(x, codes[index].to(x.device))

    return rows


def gather_transitions(
    batches: Iterable[tuple[torch.Tensor, torch.Tensor]],
    n: int,
    classes: NDArray[Any],
    rows: NDArray[np.int64] | None,
    top_k: int | None,
) -> NDArray[np.float32] | TopTransitions:
    """Return matrices, rows or the top of either from batches of (indices, T*(x) or its rows)."""
    n_classes = len(classes)
    width = n_classes if top_k is None else top_k
    if not 1 <= width <= n_classes:
        raise InputError("top_k", f"must lie in 1..{n_classes}, got {top_k}")
    if rows is not None and len(rows) != n:
        raise InputError("rows", f"has length {len(rows)} but there are {n} examples")
    shape = (n, width) if rows is not None else (n, n_classes, width)
    if 4 * np.prod(shape, dtype=np.int64) > LARGEST:
        raise InputError(
            "rows",
            f"the result would have shape {shape}, {4 * np.prod(shape) / 1024**3:.1f} GiB",
            "Ask for rows='predicted', for top_k=..., or for fewer examples at a time.",
        )
    probs = np.zeros(shape, dtype=np.float32)
    codes = np.zeros(shape, dtype=np.int64) if top_k is not None else None
    for index, T in batches:
        where = index.numpy()
        if codes is None:
            probs[where] = T.cpu().numpy()
        else:
            best = T.topk(width, dim=-1)
            probs[where], codes[where] = best.values.cpu().numpy(), best.indices.cpu().numpy()
    return probs if codes is None else TopTransitions(classes[codes], probs)
