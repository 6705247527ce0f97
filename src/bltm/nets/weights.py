"""Weights from a local file, checked name by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError

import torch
from torch import nn

from bltm.core.errors import InputError

HEAD = "fc."


def load_weights(net: nn.Module, path: str | Path) -> tuple[str, ...]:
    """Copy the weights of a ``.pth``, ``.pt`` or ``.safetensors`` file into ``net``.

    The classification head (``fc``) is left as it is when its shape differs from the file's. Any
    other difference in names or shapes is an error. Nothing in the file is executed.

    Returns
    -------
    tuple of str
        The names that were skipped.
    """
    path = Path(path)
    found = dict(_read(path))
    wanted = net.state_dict()
    head = {name for name in (*found, *wanted) if name.startswith(HEAD)}
    if any(name not in found or _differs(name, found, wanted) for name in head):
        skipped = tuple(sorted(head & set(found)))
    else:
        skipped, head = (), set()
    usable = {name: value for name, value in found.items() if name not in head}
    expected = {name: value for name, value in wanted.items() if name not in head}
    _check_names(path, usable, expected)
    net.load_state_dict(usable, strict=False)
    return skipped


def _read(path: Path) -> Mapping[str, torch.Tensor]:
    if not path.is_file():
        raise InputError("weights", f"there is no file {path}")
    if path.suffix not in (".pth", ".pt", ".safetensors"):
        raise InputError(
            "weights",
            f"cannot read {path.name}: its ending is {path.suffix or 'missing'}",
            "Give a .pth, .pt or .safetensors file.",
        )
    try:
        content = _read_safetensors(path) if path.suffix == ".safetensors" else _read_torch(path)
    except InputError:
        raise
    except (OSError, RuntimeError, ValueError, EOFError, UnpicklingError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InputError("weights", f"cannot read {path}: {reason}") from error
    return content


def _read_safetensors(path: Path) -> Mapping[str, torch.Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        content: dict[str, torch.Tensor] = load_file(path)
    except SafetensorError as error:
        raise ValueError(str(error)) from error
    return content


def _read_torch(path: Path) -> Mapping[str, torch.Tensor]:
    content = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(content, dict) or not all(
        isinstance(value, torch.Tensor) for value in content.values()
    ):
        raise InputError(
            "weights",
            f"{path} does not hold a state dict",
            "Save it with torch.save(net.state_dict(), path).",
        )
    return content


def _differs(
    name: str, found: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor]
) -> bool:
    return name not in wanted or found[name].shape != wanted[name].shape


def _check_names(
    path: Path, found: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor]
) -> None:
    # Files older than torch 0.4.1 have no num_batches_tracked; with a momentum it is not used.
    missing = [n for n in wanted if n not in found and not n.endswith("num_batches_tracked")]
    unknown = [n for n in found if n not in wanted]
    shapes = [
        f"{n} has {tuple(found[n].shape)}, the network {tuple(wanted[n].shape)}"
        for n in found
        if n in wanted and found[n].shape != wanted[n].shape
    ]
    problems = [
        f"{what}: {', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"
        for what, names in (
            ("missing in the file", missing),
            ("unknown to the network", unknown),
            ("of another shape", shapes),
        )
        if names
    ]
    if problems:
        raise InputError(
            "weights",
            f"{path} does not fit the network ({'; '.join(problems)})",
            "Use weights of the same architecture, stem and number of input channels.",
        )


def copy_fitting(source: nn.Module, target: nn.Module) -> None:
    """Copy weights and buffers of one network into another, where name and shape are the same."""
    own = target.state_dict()
    shared = {
        key: value
        for key, value in source.state_dict().items()
        if key in own and own[key].shape == value.shape
    }
    target.load_state_dict(own | shared)
