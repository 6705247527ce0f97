"""Examples that are ready for a network: in memory, or read when they are needed."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import torch
from torch.utils.data import DataLoader, Dataset

from bltm.core.errors import InputError

# Decoded images and torch data sets up to this size are held in memory.
MEMORY_BUDGET = 1 << 30
# Data in memory up to this size is copied to an accelerator once, and gathered there.
DEVICE_BUDGET = 1 << 30


class Resident:
    """One tensor with an example per row; on an accelerator it is copied there if small enough."""

    def __init__(self, values: torch.Tensor, notes: tuple[str, ...] = ()) -> None:
        self.values, self.notes = values, notes
        self._copies: dict[torch.device, torch.Tensor] = {}

    def __len__(self) -> int:
        return len(self.values)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_copies": {}}

    def gather(
        self, index_batches: Iterable[torch.Tensor], device: torch.device
    ) -> Iterator[torch.Tensor]:
        """Yield the raw rows of each batch of indices on ``device``."""
        store = self._near(device)
        for index in index_batches:
            yield store.index_select(0, index.to(store.device)).to(device)

    def _near(self, device: torch.device) -> torch.Tensor:
        if device.type == "cpu" or self.values.nbytes > DEVICE_BUDGET:
            return self.values
        if device not in self._copies:
            self._copies[device] = self.values.to(device)
        return self._copies[device]


class VectorExamples(Resident):
    """Encoded rows of numbers, shape (N, d), float32.

    Examples
    --------
    >>> examples = VectorExamples(torch.eye(3))
    >>> next(examples.batches([torch.tensor([2, 0])], torch.device("cpu"))).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape ``(d,)`` of one input."""
        return tuple(self.values.shape[1:])

    def batches(
        self, index_batches: Iterable[torch.Tensor], device: torch.device
    ) -> Iterator[torch.Tensor]:
        """Yield one tensor of rows for each batch of indices."""
        return self.gather(index_batches, device)


class ImageExamples(Resident):
    """Images as stored, shape (N, H, W, channels), made ready on the device batch by batch.

    Parameters
    ----------
    values
        Pixels, uint8 or float32.
    scale, shift
        One number per channel: the network sees ``pixel * scale + shift``.
    """

    def __init__(
        self,
        values: torch.Tensor,
        scale: torch.Tensor,
        shift: torch.Tensor,
        notes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(values, notes)
        self.scale, self.shift = scale, shift

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape ``(channels, height, width)`` of one input."""
        _, height, width, channels = self.values.shape
        return channels, height, width

    def batches(
        self, index_batches: Iterable[torch.Tensor], device: torch.device
    ) -> Iterator[torch.Tensor]:
        """Yield normalised images in ``channels_last`` layout for each batch of indices."""
        ready = normaliser(self.scale, self.shift, device)
        for pixels in self.gather(index_batches, device):
            yield ready(pixels)


class LazyExamples:
    """Examples that are read when they are needed, by worker processes if there are any.

    Parameters
    ----------
    items
        Data set whose items are raw tensors of one shape.
    shape
        Shape of one network input.
    ready
        Makes from ``device`` the function that turns a stack of raw items into network inputs.
    workers
        Worker processes that read ahead; None chooses, 0 reads in this process.
    """

    def __init__(
        self,
        items: Dataset[torch.Tensor],
        shape: tuple[int, ...],
        ready: Callable[[torch.device], Callable[[torch.Tensor], torch.Tensor]],
        workers: int | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.items, self.shape, self.notes = items, shape, notes
        self.workers = default_workers() if workers is None else workers
        self._ready = ready

    def __len__(self) -> int:
        return len(self.items)  # type: ignore[arg-type]

    def batches(
        self, index_batches: Iterable[torch.Tensor], device: torch.device
    ) -> Iterator[torch.Tensor]:
        """Yield one tensor of inputs for each batch of indices, in their order."""
        ready = self._ready(device)
        loader = DataLoader(
            _Guarded(self.items),
            batch_sampler=cast(Any, _IndexLists(index_batches)),
            num_workers=self.workers,
            collate_fn=_stack,
            # Without a generator the loader would draw its seed from the global one.
            generator=torch.Generator(),
            pin_memory=device.type == "cuda",
        )
        for raw in loader:
            if isinstance(raw, InputError):
                raise raw
            yield ready(raw.to(device, non_blocking=True))


class _Guarded(Dataset[Any]):
    """Hands errors on as items: torch cannot raise our errors anew from a worker process."""

    def __init__(self, items: Dataset[torch.Tensor]) -> None:
        self._items = items

    def __getitem__(self, row: int) -> torch.Tensor | InputError:
        try:
            return self._items[row]
        except InputError as error:
            return error


def _stack(items: list[torch.Tensor | InputError]) -> torch.Tensor | InputError:
    tensors: list[torch.Tensor] = []
    for item in items:
        if isinstance(item, InputError):
            return item
        tensors.append(item)
    shapes = sorted({tuple(tensor.shape) for tensor in tensors})
    if len(shapes) > 1:
        return InputError("X", f"has items of the shapes {shapes}", "Give items of one shape.")
    return torch.stack(tensors)


class _IndexLists:
    def __init__(self, index_batches: Iterable[torch.Tensor]) -> None:
        self._index_batches = index_batches

    def __iter__(self) -> Iterator[list[int]]:
        return (index.tolist() for index in self._index_batches)


def normaliser(
    scale: torch.Tensor, shift: torch.Tensor, device: torch.device
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the function from raw (B, H, W, channels) pixels to network inputs on ``device``."""
    factor, offset = (v.to(device=device, dtype=torch.float32) for v in (scale, shift))

    def ready(pixels: torch.Tensor) -> torch.Tensor:
        # The permuted view of (B, H, W, channels) is what torch calls channels_last.
        return torch.mul(pixels, factor).add_(offset).permute(0, 3, 1, 2)

    return ready


def default_workers() -> int:
    """Return how many processes read data that is not in memory.

    None where processes start by importing the main module again (Windows, macOS): there a script
    without a main guard would run twice.
    """
    method = multiprocessing.get_start_method(allow_none=True)
    by_default_forks = sys.platform.startswith("linux") and sys.version_info < (3, 14)
    forks = method == "fork" if method else by_default_forks
    return min(4, os.cpu_count() or 1) if forks else 0
