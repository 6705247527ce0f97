"""Numbers for inputs: equal inputs have equal numbers, in an order that is a matter of content.

The number of an input is the rank of a 64-bit hash of it. Sorting by it puts the same examples in
the same order however they were given; that inputs of equal hash are equal is verified.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bltm.data.source import Source

if TYPE_CHECKING:
    import pandas as pd

IntArray = NDArray[np.int64]
HashArray = NDArray[np.uint64]

# Image files up to this many bytes in all are compared by content, beyond it by path.
CONTENT_BUDGET = 1 << 30
_CHUNK_BYTES = 1 << 22
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def group_rows(source: Source) -> IntArray:
    """Return a number for each example, shape (N,); equal inputs have equal numbers.

    Labels, ids and the order of the examples have no influence. Arrays, images in memory and
    tables are compared by value (``-0.0`` equals ``0.0``, missing values equal each other), image
    files byte by byte as long as that is cheap, and otherwise by path. A torch ``Dataset`` is
    compared by value when it fits in memory and by position when it does not.

    Examples
    --------
    >>> from bltm.data import as_source
    >>> a, b, c = group_rows(as_source(np.array([[1.0, 0.0], [1.0, -0.0], [2.0, 0.0]])))
    >>> bool(a == b), bool(a == c)
    (True, False)
    """
    if source.kind == "table":
        frame = comparable_table(source)
        numeric = all(getattr(kind, "kind", "O") in "iufb" for kind in frame.dtypes)
        # A table of numbers and the array of the same numbers must be put in the same order.
        hashes = hash_rows(frame.to_numpy(np.float64)) if numeric else hash_table(frame)
        return _rank(hashes, _frame_equality(frame), lambda row: repr(frame.iloc[row].tolist()))
    if source.kind == "files":
        return _rank_text(_file_keys(source))
    if source.kind == "dataset":
        from bltm.data.torch_items import in_memory

        held = in_memory(source)
        return _rank_text(source.ids.astype(str)) if held is None else group_rows(held)
    rows = source.inputs.reshape(len(source), -1)
    return _rank(hash_rows(rows), _row_equality(rows), lambda row: _canonical(rows[row]).tobytes())


def hash_rows(rows: NDArray[Any]) -> HashArray:
    """Return a 64-bit hash of each row of a two-dimensional array of numbers.

    Equal numbers have equal hashes, whatever their type; only bytes, which are pixels, stand apart.
    """
    kind = rows.dtype if rows.dtype == np.uint8 else np.dtype(np.float64)
    n_words = -(-rows.shape[1] * kind.itemsize // 8)
    multipliers = _odd_numbers(n_words)
    result = np.empty(len(rows), dtype=np.uint64)
    step = max(1, _CHUNK_BYTES // max(1, n_words * 8))
    for start in range(0, len(rows), step):
        words = _words(_canonical(rows[start : start + step].astype(kind, copy=False)), n_words)
        # Small whole numbers in float64 differ in their high bits only, and a product passes
        # differences on to higher bits only: without the two folds the hash would be poor.
        words ^= words >> np.uint64(32)
        words *= multipliers
        words ^= words >> np.uint64(29)
        words *= _MIX_1
        result[start : start + step] = words.sum(axis=1, dtype=np.uint64)
    return _finalise(result)


def hash_table(frame: pd.DataFrame) -> HashArray:
    """Return a 64-bit hash of each row of a table, whatever its index."""
    from pandas.util import hash_pandas_object

    if frame.shape[1] == 0:
        return np.zeros(len(frame), dtype=np.uint64)
    try:
        hashes = hash_pandas_object(frame, index=False)
    except TypeError:  # lists and other values that cannot be hashed
        hashes = hash_pandas_object(frame.astype(str), index=False)
    return hashes.to_numpy().astype(np.uint64)


def comparable_table(source: Source) -> pd.DataFrame:
    """Return the columns that make an input what it is: no ids, and only one kind of zero."""
    frame: pd.DataFrame = source.inputs
    frame = frame.loc[:, [name for name in frame.columns if str(name) != source.id_name]].copy()
    for name in frame.columns:
        if getattr(frame[name].dtype, "kind", "O") == "f":
            frame[name] = frame[name] + 0.0
    return frame


def _canonical(rows: NDArray[Any]) -> NDArray[Any]:
    if rows.dtype.kind != "f":
        return rows
    plain: NDArray[Any] = rows + rows.dtype.type(0)
    plain[np.isnan(plain)] = np.nan
    return plain


def _words(rows: NDArray[Any], n_words: int) -> HashArray:
    flat = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), -1)
    if flat.shape[1] % 8:
        padded = np.zeros((len(rows), n_words * 8), dtype=np.uint8)
        padded[:, : flat.shape[1]] = flat
        flat = padded
    return flat.view(np.uint64).copy()


def _odd_numbers(count: int) -> HashArray:
    numbers = _finalise(np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    return numbers | np.uint64(1)


def _finalise(values: HashArray) -> HashArray:
    values = (values ^ (values >> np.uint64(30))) * _MIX_1
    values = (values ^ (values >> np.uint64(27))) * _MIX_2
    return values ^ (values >> np.uint64(31))


def _rank(
    hashes: HashArray,
    equal: Callable[[IntArray, IntArray], NDArray[np.bool_]],
    key: Callable[[int], Any],
) -> IntArray:
    """Return the rank of each hash, but tell apart different rows that share one."""
    order = np.argsort(hashes, kind="stable")
    new = np.ones(len(order), dtype=bool)
    new[1:] = hashes[order][1:] != hashes[order][:-1]
    same = np.flatnonzero(~new)
    clash = same[~equal(order[same], order[same - 1])]
    for start in np.unique(np.flatnonzero(new)[np.cumsum(new)[clash] - 1]):
        stop = start + 1
        while stop < len(order) and not new[stop]:
            stop += 1
        keys = {int(row): key(int(row)) for row in order[start:stop]}
        order[start:stop] = sorted(keys, key=lambda row: (keys[row], row))
        new[start + 1 : stop] = [
            keys[int(order[i])] != keys[int(order[i - 1])] for i in range(start + 1, stop)
        ]
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(new) - 1
    return numbers


def _row_equality(
    rows: NDArray[Any],
) -> Callable[[IntArray, IntArray], NDArray[np.bool_]]:
    step = max(1, _CHUNK_BYTES // max(1, rows.shape[1] * rows.dtype.itemsize))

    def equal(left: IntArray, right: IntArray) -> NDArray[np.bool_]:
        result = np.empty(len(left), dtype=bool)
        for start in range(0, len(left), step):
            a, b = rows[left[start : start + step]], rows[right[start : start + step]]
            match = a == b
            if rows.dtype.kind == "f":
                match |= np.isnan(a) & np.isnan(b)
            result[start : start + step] = match.all(axis=1)
        return result

    return equal


def _frame_equality(
    frame: pd.DataFrame,
) -> Callable[[IntArray, IntArray], NDArray[np.bool_]]:
    def equal(left: IntArray, right: IntArray) -> NDArray[np.bool_]:
        result = np.ones(len(left), dtype=bool)
        for position in range(frame.shape[1] if len(left) else 0):
            codes = _codes(frame.iloc[:, position])
            result &= codes[left] == codes[right]
        return result

    return equal


def _codes(column: pd.Series[Any]) -> IntArray:
    """Return a number for each value of a column; missing ones get -1."""
    import pandas as pd

    try:
        return np.asarray(pd.factorize(column)[0], dtype=np.int64)
    except TypeError:  # lists and other values that cannot be hashed
        return np.asarray(pd.factorize(column.astype(str))[0], dtype=np.int64)


def _file_keys(source: Source) -> NDArray[Any]:
    sizes = source.inputs.sizes()
    if (sizes < 0).any() or sizes.sum() > CONTENT_BUDGET:
        return np.asarray(source.inputs.names)
    digests = [
        hashlib.blake2b(source.inputs.path(row).read_bytes(), digest_size=16).hexdigest()
        for row in range(len(source))
    ]
    return np.array(digests, dtype=object)


def _rank_text(keys: NDArray[Any]) -> IntArray:
    digests = [hashlib.blake2b(str(key).encode(), digest_size=16).digest() for key in keys]
    return np.unique(np.array(digests, dtype="S16"), return_inverse=True)[1].astype(np.int64)
