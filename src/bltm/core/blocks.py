"""Large arrays in blocks of rows, so that what is computed from them stays small."""

from __future__ import annotations

from collections.abc import Iterator

# Probabilities in a block; a few copies of it are alive.
BLOCK_ENTRIES = 2**18


def block_rows(n_classes: int) -> int:
    """Return how many rows of probabilities make a block."""
    return max(1, BLOCK_ENTRIES // n_classes)


def blocks(n: int, rows: int) -> Iterator[slice]:
    """Yield slices that cover ``range(n)``.

    Examples
    --------
    >>> list(blocks(5, 3))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    for start in range(0, n, rows):
        yield slice(start, min(n, start + rows))
