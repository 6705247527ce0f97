"""Apply a network to examples, in batches, without gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import nn

from bltm.core.records import Examples, IntArray
from bltm.engine.batches import in_batches
from bltm.engine.devices import all_sum

BATCH = 512
# Products of fewer rows are summed in another order, which shows in the last digits.
LEAST_ROWS = 16


@torch.inference_mode()
def stream_outputs(
    module: nn.Module,
    examples: Examples,
    index: IntArray,
    device: torch.device,
    apply: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
    batch_size: int = BATCH,
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield indices and outputs batch by batch, with the module in evaluation mode.

    The output for a row of a table does not depend on how many others it is computed with: a small
    batch is filled up with copies of its last row. An image is not worth computing several times.

    Parameters
    ----------
    module
        The network; it is moved to the device and keeps its mode.
    examples, index
        Which inputs.
    device
        Where to compute.
    apply
        Computes the output from inputs and indices; calls the module by default.
    batch_size
        How many at a time.
    """
    # Each part on its own: a frozen network inside one that trains must stay as it is.
    modes = [(part, part.training) for part in module.modules()]
    module.to(device).eval()
    batches = in_batches(torch.from_numpy(np.ascontiguousarray(index)), batch_size)
    least = LEAST_ROWS if len(examples.shape) == 1 else 1
    filled = [_filled(batch, least) for batch in batches]
    try:
        for batch, rows, x in zip(batches, filled, examples.batches(filled, device), strict=True):
            output = module(x) if apply is None else apply(x, rows)
            yield batch, output[: len(batch)].detach()
    finally:
        for part, training in modes:
            part.training = training


def _filled(batch: torch.Tensor, least: int) -> torch.Tensor:
    """Return the indices, the last one repeated where there are fewer than ``least``."""
    if not 0 < len(batch) < least:
        return batch
    return torch.cat([batch, batch[-1:].expand(least - len(batch))])


def predict(
    module: nn.Module,
    examples: Examples,
    index: IntArray,
    fabric: Fabric,
    apply: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
    batch_size: int = BATCH,
) -> torch.Tensor:
    """Return the outputs for some examples on the CPU, in the order of ``index``.

    Each process computes a share, and all of them get the whole.
    """
    place = np.arange(len(index))[fabric.global_rank :: fabric.world_size]
    whole, done = torch.zeros(0), 0
    for _, output in stream_outputs(
        module, examples, index[place], fabric.device, apply, batch_size
    ):
        if done == 0:
            # Filled in place: a list of batches to join at the end would scatter the heap.
            whole = torch.zeros(len(index), *output.shape[1:])
        whole[torch.from_numpy(place[done : done + len(output)])] = output.float().cpu()
        done += len(output)
    if fabric.world_size == 1:
        return whole
    return all_sum(fabric, whole.to(fabric.device)).cpu()
