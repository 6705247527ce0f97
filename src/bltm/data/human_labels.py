"""CIFAR-10N and CIFAR-100N: the training images of CIFAR with labels that people gave them.

Wei et al., *Learning with Noisy Labels Revisited: A Study Using Real-World Human Annotations*, ICLR
2022. The labels are a method's training labels; what the images show stays in ``label_sets``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.core.errors import InputError
from bltm.data.cifar import load_cifar10, load_cifar100
from bltm.data.datasets import Parts
from bltm.data.download import RemoteFile, damaged
from bltm.data.releases import FileSet, Places, Release, checked, obtain

Labels = NDArray[np.int64]

ADDRESS = "https://github.com/UCSC-REAL/cifar-10-100n/raw/main/data/"
# The authors publish no checksums. Whether a file is right shows in its clean labels.
_LABELS_10 = RemoteFile(
    "CIFAR-10_human.pt",
    "873e69c39cb9b5e97fb6bae2d60bb59b38a5cbc31d2b868f7903dcb2b9dd2310",
    strict=False,
)
_LABELS_100 = RemoteFile(
    "CIFAR-100_human.pt",
    "bd2d80409754d420292d622e15e25248ba21e37d27429efac49c8da723f44394",
    strict=False,
)
CIFAR10N = FileSet("cifar10n", (Release("human labels", (_LABELS_10,), ADDRESS, folder="CIFAR-N"),))
CIFAR100N = FileSet(
    "cifar100n", (Release("human labels", (_LABELS_100,), ADDRESS, folder="CIFAR-N"),)
)

KEYS_10 = {
    "clean": "clean_label",
    "aggre": "aggre_label",
    "random1": "random_label1",
    "random2": "random_label2",
    "random3": "random_label3",
    "worse": "worse_label",
}
KEYS_100 = {"clean": "clean_label", "noisy": "noisy_label"}


def load_cifar10n(places: Places, labels: str) -> Parts:
    """Load CIFAR-10 with one set of human labels.

    Parameters
    ----------
    places
        Where the files are.
    labels
        ``"random1"``, ``"random2"``, ``"random3"`` (one annotator each), ``"aggre"`` (the majority
        of the three) or ``"worse"`` (a wrong one, if there is any).
    """
    return _load(load_cifar10(places), CIFAR10N, places, KEYS_10, labels, 10)


def load_cifar100n(places: Places) -> Parts:
    """Load CIFAR-100 with human labels of its 100 classes."""
    return _load(load_cifar100(places), CIFAR100N, places, KEYS_100, "noisy", 100)


def _load(
    parts: Parts, files: FileSet, places: Places, keys: dict[str, str], labels: str, n_classes: int
) -> Parts:
    found = checked(obtain(files, places), places)
    path = found.paths[0]
    content = read_label_file(path)
    sets = {name: _label_set(path, content, key, n_classes) for name, key in keys.items()}
    assert parts.train.labels is not None
    _require_same(path, sets["clean"], parts.train.labels)
    train = replace(parts.train, labels=sets.pop(labels)).with_notes(*found.notes)
    return Parts(train, parts.test, {**parts.label_sets, **sets})


def read_label_file(path: Path) -> dict[str, Any]:
    """Return the dictionary in a file that ``torch.save`` wrote.

    Beside what torch itself takes for harmless, only what makes arrays of integers is allowed.
    """
    import torch

    reconstruct = np.ndarray(0).__reduce__()[0]
    allowed: list[Any] = [
        (reconstruct, "numpy.core.multiarray._reconstruct"),
        (reconstruct, "numpy._core.multiarray._reconstruct"),
        (np.ndarray, "numpy.ndarray"),
        (np.dtype, "numpy.dtype"),
        *(type(np.dtype(f"{kind}{size}")) for kind in "iu" for size in (1, 2, 4, 8)),
    ]
    # What the user allowed before must still be allowed afterwards.
    allowed = [entry for entry in allowed if entry not in torch.serialization.get_safe_globals()]
    try:
        with torch.serialization.safe_globals(allowed):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    # What is raised for nonsense is not limited to any list.
    except Exception as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(
            str(path),
            f"is no file of labels that can be read safely ({reason[0]})",
            "Fetch it again from the original address.",
        ) from error
    if not isinstance(content, dict):
        raise damaged(path, f"it holds {type(content).__name__} instead of a dictionary")
    return content


def _label_set(path: Path, content: dict[str, Any], key: str, n_classes: int) -> Labels:
    if key not in content:
        raise damaged(path, f"it has no '{key}', only {', '.join(map(str, content))}")
    values = np.asarray(content[key])
    if values.dtype.kind not in "iu" or values.size != len(values):
        raise damaged(path, f"'{key}' holds {values.dtype} of shape {values.shape}")
    labels = values.reshape(-1).astype(np.int64)
    if labels.min(initial=0) < 0 or labels.max(initial=0) >= n_classes:
        raise damaged(path, f"'{key}' holds numbers that are no classes")
    return labels


def _require_same(path: Path, clean: Labels, official: NDArray[Any]) -> None:
    if len(clean) != len(official):
        raise InputError(
            str(path),
            f"has labels of {len(clean)} images, but there are {len(official)} training images",
            "Use the files of one and the same data set.",
        )
    different = int((clean != official).sum())
    if different:
        raise InputError(
            str(path),
            f"its clean labels differ from those of the images in {different} of {len(clean)} "
            "places, so it belongs to other images or to another order of them",
            "Use CIFAR in its official order, and the labels as they are published.",
        )
