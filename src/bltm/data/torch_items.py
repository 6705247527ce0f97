"""Items of torch data sets: read by index, as raw tensors of one shape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from bltm.core.errors import InputError
from bltm.data.convert import as_images, tensor_values
from bltm.data.examples import MEMORY_BUDGET
from bltm.data.labels import label_array
from bltm.data.source import Source

IntArray = NDArray[np.int64]


class RawItems(Dataset[torch.Tensor]):
    """The inputs of a data set as raw tensors: vectors, or images as (H, W, channels)."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, row: int) -> torch.Tensor:
        return torch.from_numpy(raw_input(self._dataset[row]).copy())


def raw_input(item: Any) -> NDArray[Any]:
    """Return the input of an item ``x`` or ``(x, y)``: a vector or (H, W, channels) pixels.

    Examples
    --------
    >>> raw_input((torch.zeros(3, 8, 6), 1)).shape
    (8, 6, 3)
    """
    value = item[0] if isinstance(item, tuple | list) else item
    if isinstance(value, torch.Tensor):
        array, channels_first = tensor_values(value), True
    else:
        array, channels_first = _pixels_or_numbers(value), False
    if array.dtype.kind not in "iufb":
        raise InputError(
            "X", f"has items of type {type(value).__name__}", "Items are x or (x, y), x numbers."
        )
    if array.ndim in (2, 3):
        array = as_images(array[None], channels_first=channels_first)[0][0]
    elif array.ndim > 3:
        raise InputError("X", f"has items of shape {array.shape}", "Items are vectors or images.")
    else:
        array = array.reshape(-1)
    return array if array.dtype == np.uint8 else array.astype(np.float32)


def item_shape(dataset: Any) -> tuple[int, ...]:
    """Return the shape of the raw items, going by the first one."""
    if len(dataset) == 0:
        raise InputError("X", "is an empty data set", "Give at least one example.")
    return raw_input(dataset[0]).shape


def in_memory(source: Source, budget: int = MEMORY_BUDGET) -> Source | None:
    """Return the data set read out as arrays, or None when it is larger than ``budget`` bytes."""
    if "in_memory" not in source.cache:
        first = raw_input(source.inputs[0]) if len(source) else np.empty(0, dtype=np.float32)
        if first.nbytes * len(source) > budget:
            return None
        values, labels = _read(source.inputs, np.arange(len(source)))
        source.cache["in_memory"] = Source(
            kind="array" if values.ndim == 2 else "images",
            inputs=values,
            labels=labels,
            ids=source.ids,
        )
    return cast(Source, source.cache["in_memory"])


def read_labels(source: Source) -> NDArray[Any] | None:
    """Return the labels that items ``(x, y)`` carry; None for items that are only inputs."""
    if len(source) == 0 or not _has_label(source.inputs[0]):
        return None
    held = in_memory(source)
    if held is not None:
        return held.labels
    return _as_labels(_label(source.inputs[row]) for row in range(len(source)))


def read_items(dataset: Any, index: IntArray) -> NDArray[Any]:
    """Return the raw inputs of some rows, stacked."""
    return _read(dataset, index)[0]


def sample_items(dataset: Any, count: int = 32) -> list[NDArray[Any]]:
    """Return raw inputs spread evenly over a data set."""
    index = np.unique(np.linspace(0, len(dataset) - 1, min(count, len(dataset))).astype(int))
    return [raw_input(dataset[int(row)]) for row in index]


def _read(dataset: Any, index: IntArray) -> tuple[NDArray[Any], NDArray[Any] | None]:
    first = raw_input(dataset[int(index[0])]) if len(index) else np.empty(0, dtype=np.float32)
    values = np.empty((len(index), *first.shape), dtype=first.dtype)
    labels: list[Any] = []
    for position, row in enumerate(index.tolist()):
        item = dataset[row]
        value = raw_input(item)
        if value.shape != first.shape or value.dtype != first.dtype:
            raise InputError(
                "X",
                f"item {row} is {value.dtype} of shape {value.shape}, the first one "
                f"{first.dtype} of shape {first.shape}",
                "Give items of one shape and type.",
            )
        values[position] = value
        if _has_label(item):
            labels.append(_label(item))
    return values, _as_labels(labels) if len(labels) == len(index) > 0 else None


def _has_label(item: Any) -> bool:
    return isinstance(item, tuple | list) and len(item) > 1


def _label(item: Any) -> Any:
    label = item[1]
    return label.item() if isinstance(label, torch.Tensor | np.generic) else label


def _as_labels(labels: Iterable[Any]) -> NDArray[Any]:
    return label_array(np.array(list(labels)))


def _pixels_or_numbers(value: Any) -> NDArray[Any]:
    if hasattr(value, "getexif"):
        from bltm.data.decode import GREY_MODES, flatten

        return flatten(value, 1 if value.mode in GREY_MODES else 3)
    return np.asarray(value)
