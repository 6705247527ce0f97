"""Python objects and ``.npz`` files as sources."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset, IterableDataset

from bltm.core.errors import InputError
from bltm.data.labels import label_array
from bltm.data.source import Kind, Source

if TYPE_CHECKING:
    import pandas as pd

CHANNELS = (1, 3, 4)


def from_object(X: Any, y: Any = None, *, for_prediction: bool = False) -> Source:
    """Return the source of a Python object; see ``as_source``."""
    labels = None if y is None else label_array(y)
    name = str(getattr(y, "name", None) or "label")
    if isinstance(X, Source):
        return X if y is None else replace(X, labels=labels, label_name=name)
    if isinstance(X, Dataset):
        source = _from_dataset(X, labels, for_prediction)
    elif isinstance(X, torch.Tensor):
        source = _from_array(tensor_values(X), labels, channels_first=True)
    elif hasattr(X, "iloc") and hasattr(X, "columns"):
        from bltm.data.read_tables import from_frame

        source = from_frame(X, labels=labels)
    elif hasattr(X, "toarray"):
        raise InputError("X", "is a sparse matrix", "Sparse data is not supported: X.toarray().")
    else:
        source = _from_array(np.asarray(X), labels, channels_first=False)
    return replace(source, label_name=name)


def tensor_values(tensor: torch.Tensor) -> NDArray[Any]:
    """Return a tensor's values as an array; NumPy has no bfloat16."""
    plain = tensor.detach().cpu()
    values: NDArray[Any] = (plain.float() if plain.dtype == torch.bfloat16 else plain).numpy()
    return values


def from_npz(path: Path, *, for_prediction: bool = False) -> Source:
    """Read the arrays ``X`` and ``y`` of an ``.npz`` file, and no others."""
    try:
        with np.load(path, allow_pickle=False) as file:
            if "X" not in file or not (for_prediction or "y" in file):
                raise InputError(
                    str(path),
                    f"needs the arrays X and y, has {', '.join(file.files) or 'none'}",
                    "Save it with numpy.savez(path, X=..., y=...).",
                )
            X, y = file["X"], None if for_prediction else file["y"]
            ignored = sorted(set(file.files) - {"X", "y"})
    except (zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            str(path),
            f"cannot be read as .npz ({error})",
            "Arrays of Python objects are refused; save text with dtype=str.",
        ) from error
    source = from_object(X, y)
    return source.with_notes(*([f"Not used: {', '.join(ignored)}."] if ignored else []))


def _from_array(values: NDArray[Any], labels: Any, *, channels_first: bool) -> Source:
    if values.dtype.kind == "c":
        raise InputError("X", "Complex data not supported", "Give real numbers.")
    if values.ndim == 2:
        return _from_matrix(values, labels)
    if values.ndim not in (3, 4):
        raise InputError(
            "X",
            f"needs 2 dimensions (numbers), 3 (grey images) or 4 (images), got shape "
            f"{values.shape}",
            "Reshape your data: X.reshape(-1, 1) for one number per example, X.reshape(1, -1) "
            "for one example.",
        )
    if values.dtype.kind not in "iufb":
        raise InputError("X", f"images need numbers, got {values.dtype}", "Convert the pixels.")
    images, notes = as_images(values, channels_first=channels_first)
    return _numbered("images", images, labels, notes)


def _from_matrix(values: NDArray[Any], labels: Any) -> Source:
    if values.dtype.kind not in "iufb":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            import pandas as pd

            from bltm.data.read_tables import from_frame

            frame: pd.DataFrame = pd.DataFrame(values.astype(object)).infer_objects()
            return from_frame(frame, labels=labels)
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise InputError(
            "X", "contains infinity", "Replace it; NaN stands for a value that is missing."
        )
    return _numbered("array", values, labels, [])


def as_images(values: NDArray[Any], *, channels_first: bool) -> tuple[NDArray[Any], list[str]]:
    """Return images as (N, H, W, channels) with 1 or 3 channels, and what was assumed.

    Parameters
    ----------
    values
        Shape (N, H, W), (N, H, W, channels) or (N, channels, H, W).
    channels_first
        Which of the two holds when both are possible.
    """
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError("X", "has pixels that are NaN or infinite", "Replace them.")
    if values.ndim == 3:
        return values[..., None], ["Took the three-dimensional array for grey images."]
    first, last = values.shape[1] in CHANNELS, values.shape[3] in CHANNELS
    if not first and not last:
        raise InputError(
            "X",
            f"images need 1, 3 or 4 channels, got shape {values.shape}",
            "Put the channels first or last: (N, H, W, 3) or (N, 3, H, W).",
        )
    use_first = channels_first if first and last else first
    images = values.transpose(0, 2, 3, 1) if use_first else values
    notes = [f"Took axis {1 if use_first else 3} of {values.shape} for the channels."]
    if images.shape[3] == 4:
        images = _on_white(images)
        notes.append("Put transparent pixels on white.")
    return images, notes


def _on_white(images: NDArray[Any]) -> NDArray[Any]:
    whole = images.dtype.kind != "f" or images.max(initial=0) > 1
    white = 255.0 if whole else 1.0
    result = np.empty((*images.shape[:3], 3), dtype=images.dtype)
    for start in range(0, len(images), 1024):
        part = images[start : start + 1024].astype(np.float64)
        alpha = part[..., 3:] / white
        mixed = alpha * part[..., :3] + (1.0 - alpha) * white
        result[start : start + 1024] = np.rint(mixed) if whole else mixed
    return result


def _from_dataset(dataset: Dataset[Any], labels: Any, for_prediction: bool) -> Source:
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
        raise InputError(
            "X",
            f"{type(dataset).__name__} cannot be read by index",
            "Give a map-style Dataset with __len__ and __getitem__.",
        )
    source = _numbered("dataset", dataset, labels, [])
    if labels is None and not for_prediction:
        from bltm.data.torch_items import read_labels

        return replace(source, labels=read_labels(source))
    return source


def _numbered(kind: Kind, inputs: Any, labels: Any, notes: list[str]) -> Source:
    return Source(
        kind=kind,
        inputs=inputs,
        labels=labels,
        ids=np.arange(len(inputs), dtype=np.int64),
        notes=tuple(notes),
    )
