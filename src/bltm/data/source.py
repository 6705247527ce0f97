"""One record for every kind of data, before it is encoded for a network.

``open_source`` reads files and registered data sets, ``as_source`` takes Python objects; both
return a ``Source``. Whatever was recognised, left out or changed on the way is in its ``notes``.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bltm.core.errors import InputError
from bltm.core.files import array_hash

Kind = Literal["array", "images", "table", "files", "dataset"]
Unreadable = Literal["raise", "skip"]


@dataclass(frozen=True)
class Frame:
    """The part of an image that is looked at: the centre, ``side`` by ``side`` pixels.

    Before it is cut out, the image is scaled until its short side has ``short_side`` pixels.
    """

    side: int
    short_side: int


@dataclass(frozen=True)
class ImageFiles:
    """Image files below one folder.

    Attributes
    ----------
    root
        The folder.
    names
        Paths relative to it.
    frame
        What of each image is looked at, unless the user wants another size; None for all of it,
        whatever its proportions.
    """

    root: Path
    names: NDArray[Any]
    frame: Frame | None = None

    def __len__(self) -> int:
        return len(self.names)

    def path(self, row: int) -> Path:
        """Return where the image of a row is."""
        return self.root / str(self.names[row])

    def sizes(self) -> NDArray[np.int64]:
        """Return the size in bytes of each file, -1 where there is none."""
        root = str(self.root)
        sizes = (_size(os.path.join(root, name)) for name in self.names)
        return np.fromiter(sizes, dtype=np.int64, count=len(self.names))


@dataclass(frozen=True, eq=False)
class Source:
    """Raw examples, with or without labels.

    Attributes
    ----------
    kind
        ``"array"`` (2-d numbers), ``"images"`` (in memory, shape (N, H, W, channels)), ``"table"``
        (a DataFrame), ``"files"`` (image files) or ``"dataset"`` (a torch ``Dataset``).
    inputs
        The N inputs, in the form that ``kind`` says.
    labels
        Given labels as the user wrote them, shape (N,); None where there are none.
    ids
        Stable name of each example, shape (N,).
    id_name, label_name
        What the user calls the two; a table column called ``id_name`` is never learned from.
    notes
        What was recognised, left out or changed, in plain words.

    Examples
    --------
    >>> source = as_source(np.eye(3), ["cat", "dog", "cat"])
    >>> source.kind, len(source), source.ids.tolist()
    ('array', 3, [0, 1, 2])
    """

    kind: Kind
    inputs: Any
    labels: NDArray[Any] | None
    ids: NDArray[Any]
    id_name: str = "row"
    label_name: str = "label"
    notes: tuple[str, ...] = ()
    # Decoded images and read-out data sets, so that fitting and encoding read the files once.
    cache: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        for name, values in (("labels", self.labels), ("ids", self.ids)):
            if values is not None and len(values) != len(self.inputs):
                raise InputError(
                    name,
                    f"has length {len(values)} but there are {len(self.inputs)} examples",
                    "Give one for each example.",
                )

    def __len__(self) -> int:
        return len(self.inputs)

    @cached_property
    def fingerprint(self) -> str:
        """Return the SHA-256 of the content: inputs, labels and ids, in their order.

        Of image files it covers path and size, of a torch ``Dataset`` its length, its labels and
        items spread evenly over it.
        """
        digest = hashlib.sha256(self.kind.encode())
        for part in (*_content(self), self.ids, self.labels):
            digest.update(b"none" if part is None else array_hash(part).encode())
        return digest.hexdigest()

    def take(self, rows: ArrayLike) -> Source:
        """Return the examples of these rows (indices or a mask), in that order."""
        index = np.asarray(rows)
        index = np.flatnonzero(index) if index.dtype == bool else index.astype(np.int64)
        labels = None if self.labels is None else self.labels[index]
        return replace(self, inputs=_take(self, index), labels=labels, ids=self.ids[index])

    def with_notes(self, *notes: str) -> Source:
        """Return the source with more notes."""
        return replace(self, notes=(*self.notes, *notes))


def as_source(X: Any, y: Any = None, *, for_prediction: bool = False) -> Source:
    """Turn Python objects into a source.

    Parameters
    ----------
    X
        NumPy array or torch tensor (2-d: numbers, NaN is a missing value; 3-d: grey images;
        4-d: images with channels last or first), pandas DataFrame, map-style torch ``Dataset``
        with items ``x`` or ``(x, y)``, or a ``Source``.
    y
        Labels, one for each example. A ``Dataset`` may bring its own.
    for_prediction
        Do not read labels from a ``Dataset``.

    Examples
    --------
    >>> as_source(np.zeros((4, 8, 8), np.uint8)).inputs.shape
    (4, 8, 8, 1)
    """
    from bltm.data.convert import from_object

    return from_object(X, y, for_prediction=for_prediction)


def open_source(
    path: str | Path,
    *,
    label: str | None = None,
    image: str | None = None,
    id: str | None = None,
    classes: Sequence[Any] | None = None,
    for_prediction: bool = False,
    unreadable: Unreadable = "raise",
) -> Source:
    """Open a file, a folder of images or a registered data set.

    Parameters
    ----------
    path
        ``.csv``, ``.tsv``, ``.parquet`` or ``.npz`` (arrays ``X`` and ``y``), a folder with a
        folder of images for each class, or the name of a registered data set, where
        ``"digits:test"`` is the test part of ``digits``. A path that exists goes before a name.
    label
        Column of the labels. Without it a column called label, labels, target, class or y is taken.
    image
        Column of image paths, relative to the table's folder.
    id
        Column that names the examples; never learned from.
    classes
        All classes there are, if some may be absent; other labels are errors.
    for_prediction
        Labels are not needed and not read.
    unreadable
        ``"skip"`` leaves out images that cannot be decoded, with a warning; it reads each
        file once more.
    """
    from bltm.data.labels import encode_labels

    source = _dispatch(Path(path), str(path), label, image, id, for_prediction)
    if source.kind == "files":
        from bltm.data.read_images import require_files, without_unreadable

        if unreadable == "skip":
            source = without_unreadable(source)
        elif image is not None:
            require_files(source)
    if classes is not None and source.labels is not None:
        encode_labels(source.labels, classes, ids=source.ids, missing="drop", warn=False)
    return source


def _dispatch(
    path: Path, name: str, label: str | None, image: str | None, id: str | None, predict: bool
) -> Source:
    if path.is_dir():
        from bltm.data.read_images import read_folder

        return read_folder(path, for_prediction=predict)
    if not path.exists():
        from bltm.data.registry import DATASETS, open_registered

        if name.partition(":")[0] in DATASETS:
            source = open_registered(name)
            return replace(source, labels=None) if predict else source
        raise InputError(
            "data",
            f"there is no file or folder '{path}', and no registered data set of that name",
            f"Registered are {', '.join(sorted(DATASETS))}.",
        )
    suffix = path.suffix.lower()
    if suffix == ".npz":
        from bltm.data.convert import from_npz

        return from_npz(path, for_prediction=predict)
    if suffix in (".csv", ".tsv", ".parquet"):
        from bltm.data.read_tables import read_table

        return read_table(path, label=label, image=image, id=id, for_prediction=predict)
    raise InputError(
        "data",
        f"'{path}' is of a kind that cannot be read",
        "Give a .csv, .tsv, .parquet or .npz file or a folder of images.",
    )


def _take(source: Source, index: NDArray[np.int64]) -> Any:
    if source.kind == "table":
        return source.inputs.iloc[index]
    if source.kind == "files":
        return replace(source.inputs, names=source.inputs.names[index])
    if source.kind == "dataset":
        from torch.utils.data import Subset

        return Subset(source.inputs, index.tolist())
    return source.inputs[index]


def _content(source: Source) -> tuple[NDArray[Any], ...]:
    if source.kind == "table":
        from bltm.data.groups import hash_table

        names = np.array([str(name) for name in source.inputs.columns], dtype=object)
        return names, hash_table(source.inputs)
    if source.kind == "files":
        return source.inputs.names, source.inputs.sizes()
    if source.kind == "dataset":
        from bltm.data.torch_items import sample_items

        return tuple(sample_items(source.inputs))
    return (source.inputs,)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1
