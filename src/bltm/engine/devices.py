"""Devices, precision and processes, through Lightning Fabric.

Only the command line launches processes. An estimator that is fitted inside a process group that
exists (``torchrun``, the command line, the user's own ``init_process_group``) joins it.
"""

from __future__ import annotations

import os
from typing import Any, cast

import torch
import torch.distributed as dist
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from lightning_fabric.strategies.ddp import DDPStrategy
from lightning_fabric.strategies.single_device import SingleDeviceStrategy

from bltm.core.errors import InputError

PRECISIONS = ("32-true", "bf16-mixed", "16-mixed")


class ExistingGroup(LightningEnvironment):
    """The process group that the user's program has already set up."""

    @property
    def creates_processes_externally(self) -> bool:
        """Return True: there is nothing to launch."""
        return True

    def world_size(self) -> int:
        """Return the number of processes."""
        return dist.get_world_size()

    def global_rank(self) -> int:
        """Return the number of this process."""
        return dist.get_rank()

    def local_rank(self) -> int:
        """Return the number of this process on its machine."""
        return int(os.environ.get("LOCAL_RANK", dist.get_rank()))

    def set_world_size(self, size: int) -> None:
        """Do nothing: the group is as it is."""

    def set_global_rank(self, rank: int) -> None:
        """Do nothing: the group is as it is."""


def split_device(device: str) -> tuple[str, list[int] | int]:
    """Return Fabric's accelerator and devices for a name such as "cpu" or "cuda:1".

    Examples
    --------
    >>> split_device("cpu")
    ('cpu', 1)
    """
    if device == "auto":
        available = [torch.cuda.is_available(), torch.backends.mps.is_available(), True]
        return ("cuda", "mps", "cpu")[available.index(True)], 1
    name, _, number = device.partition(":")
    if name not in ("cpu", "cuda", "mps") or (number and not number.isdigit()):
        raise InputError(
            "device", f"unknown: {device!r}", "Use 'auto', 'cpu', 'cuda', 'cuda:0' or 'mps'."
        )
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("device", "CUDA is not available here", "Use device='cpu'.")
    if name == "mps" and not torch.backends.mps.is_available():
        raise InputError("device", "MPS is not available here", "Use device='cpu'.")
    return name, [int(number)] if number and name != "cpu" else 1


def make_fabric(
    device: str = "auto", precision: str = "32-true", devices: int = 1, num_nodes: int = 1
) -> Fabric:
    """Return the Fabric that a fit runs on, joined to the process group if there is one.

    Parameters
    ----------
    device
        "auto", "cpu", "cuda", "cuda:1" or "mps".
    precision
        As Fabric names it: "32-true", "bf16-mixed", "16-mixed".
    devices, num_nodes
        How many processes the command line launches; 1 for an estimator.
    """
    accelerator, numbers = split_device(device)
    check_precision(precision)
    common: dict[str, Any] = {"accelerator": accelerator, "precision": precision}
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        strategy = DDPStrategy(cluster_environment=ExistingGroup())
        per_node = int(os.environ.get("LOCAL_WORLD_SIZE", dist.get_world_size()))
        nodes = dist.get_world_size() // per_node
        fabric = Fabric(strategy=strategy, devices=per_node, num_nodes=nodes, **common)
    elif devices * num_nodes > 1 or int(os.environ.get("WORLD_SIZE", "1")) > 1:
        per_node = max(devices, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
        fabric = Fabric(strategy="ddp", devices=per_node, num_nodes=num_nodes, **common)
    else:
        fabric = Fabric(devices=numbers, **common)
    fabric.launch()
    return fabric


def check_precision(name: str) -> None:
    """Refuse a number format that is unknown, or in which inputs would not fit the weights."""
    if name not in PRECISIONS:
        raise InputError("precision", f"unknown: {name!r}", f"Use one of {', '.join(PRECISIONS)}.")


def alone(fabric: Fabric) -> Fabric:
    """Return a Fabric of this process alone, for work that the other processes do not share."""
    if fabric.world_size == 1:
        return fabric
    return Fabric(strategy=SingleDeviceStrategy(fabric.device))


def all_sum(fabric: Fabric, values: torch.Tensor) -> torch.Tensor:
    """Return the sum over all processes."""
    return cast(torch.Tensor, fabric.all_reduce(values, reduce_op="sum"))
