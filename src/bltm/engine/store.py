"""Where finished stages and the state of the running one are kept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from bltm.core.files import write_atomically, write_text


@dataclass(frozen=True)
class Artifact:
    """Tensors by name and plain values: all that a stage leaves behind."""

    tensors: dict[str, torch.Tensor]
    values: dict[str, Any] = field(default_factory=dict)

    def part(self, name: str) -> dict[str, torch.Tensor]:
        """Return the tensors called ``name/...``, by the rest of their names."""
        prefix = f"{name}/"
        return {k[len(prefix) :]: t for k, t in self.tensors.items() if k.startswith(prefix)}


def named_weights(modules: Mapping[str, nn.Module]) -> dict[str, torch.Tensor]:
    """Return the weights and buffers of modules as ``module/key``."""
    return {
        f"{name}/{key}": value
        for name, module in modules.items()
        for key, value in module.state_dict().items()
    }


class Store:
    """Keeps nothing on disk: stages are computed anew. The base of the store that does."""

    persistent = False

    def __init__(self) -> None:
        self.history: list[dict[str, Any]] = []

    def load(self, name: str) -> Artifact | None:
        """Return what was saved under a name, or None."""
        return None

    def save(self, name: str, artifact: Artifact) -> None:
        """Keep an artifact under a name, replacing an older one as a whole."""

    def discard(self, name: str) -> None:
        """Forget an artifact."""

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a line to the history."""
        self.history.append(dict(record))

    def rewind(self, stage: str, epoch: int) -> None:
        """Drop history of a stage after an epoch: it is about to be made again."""
        self.history = [
            line for line in self.history if line["stage"] != stage or line["epoch"] <= epoch
        ]


class DirectoryStore(Store):
    """Keeps artifacts as safetensors files and the history as JSON lines.

    Parameters
    ----------
    directory
        Holds one file for each artifact.
    history
        The file of the history.
    writes
        False for all but the first of several processes; they read the same files.
    """

    persistent = True

    def __init__(self, directory: Path, history: Path, writes: bool = True) -> None:
        super().__init__()
        self.directory, self.history_path, self.writes = directory, history, writes
        if history.exists():
            self.history = list(read_lines(history.read_text(encoding="utf-8").splitlines()))

    def load(self, name: str) -> Artifact | None:
        """Return what was saved under a name, or None."""
        path = self._path(name)
        return read_artifact(path) if path.exists() else None

    def save(self, name: str, artifact: Artifact) -> None:
        """Write an artifact to a temporary name, sync and rename it."""
        if self.writes:
            write_artifact(self._path(name), artifact)

    def discard(self, name: str) -> None:
        """Delete an artifact."""
        if self.writes:
            self._path(name).unlink(missing_ok=True)

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a line to the history, in memory and in the file."""
        super().append(record)
        if self.writes:
            with self.history_path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")

    def rewind(self, stage: str, epoch: int) -> None:
        """Drop history that is about to be made again, in memory and in the file."""
        super().rewind(stage, epoch)
        if self.writes:
            write_text(self.history_path, "".join(json.dumps(x) + "\n" for x in self.history))

    def _path(self, name: str) -> Path:
        return self.directory / f"{name.replace('/', '.')}.safetensors"


def write_artifact(path: Path, artifact: Artifact) -> None:
    """Write tensors and values as one safetensors file."""
    # Shared storage is refused by the format, and its layout is always row-major.
    tensors = {
        name: t.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, t in artifact.tensors.items()
    }
    values = json.dumps(artifact.values)
    write_atomically(path, lambda temporary: save_file(tensors, temporary, {"values": values}))


def read_artifact(path: Path) -> Artifact:
    """Read a file written by :func:`write_artifact`."""
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        values = json.loads((file.metadata() or {}).get("values", "{}"))
    return Artifact(tensors, values)


def read_lines(lines: Iterable[str]) -> Iterable[dict[str, Any]]:
    """Parse JSON lines, leaving out a last one that was cut off by a crash."""
    for line in lines:
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue
