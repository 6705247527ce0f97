"""Noisy data sets: made once for a grid, shared by all its methods.

What a method may see (examples and noisy labels) and what only the benchmark knows (right labels,
the rows that noisy labels were drawn from, the test part) are apart from here on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from bltm.benchmark.spec import REAL, Cell
from bltm.benchmark.variants.truth import Truth
from bltm.core.errors import InputError
from bltm.core.files import array_hash, write_atomically
from bltm.core.random import stream
from bltm.core.records import FloatArray, IntArray
from bltm.data.datasets import DatasetBundle
from bltm.data.registry import load_dataset
from bltm.data.source import Source
from bltm.noise import NoisyLabels, make_noise
from bltm.transition.counting import counted_transition

RIGHT = "clean"
"""What the right labels are called in a bundle's label sets."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What methods are judged by, and never see.

    Attributes
    ----------
    clean
        Right labels of the training examples; None where nobody knows them.
    wrong
        Which given labels are wrong, shape (N,); None where nobody knows.
    row
        The row of T(x) that each noisy label was drawn from, shape (N, C); None for real noise.
    test
        Examples with right labels.
    noise
        Nominal, expected and realised rate, and the hash of the noisy labels.
    """

    clean: NDArray[Any] | None
    wrong: NDArray[np.bool_] | None
    row: FloatArray | None
    test: Source
    noise: dict[str, Any]


@dataclass(frozen=True, eq=False)
class NoisyCell:
    """A noisy data set.

    Attributes
    ----------
    train
        Examples with noisy labels; nothing that can be reached from here knows others.
    classes
        All classes.
    evaluate
        Returns what methods are judged by; called after a method has been fitted.
    truth
        Returns what oracles are given.
    """

    train: Source
    classes: NDArray[Any]
    evaluate: Callable[[], Evaluation]
    truth: Callable[[], Truth]


@dataclass(frozen=True, eq=False)
class _Noise:
    """Noisy labels as they are kept in a file."""

    y_noisy: IntArray
    row: FloatArray
    manifest: dict[str, Any]


def open_cell(cell: Cell, directory: Path) -> NoisyCell:
    """Return a noisy data set; its noise is made by whoever comes first and kept in the directory.

    Parameters
    ----------
    cell
        What to make.
    directory
        Where the noisy labels of cells are kept.
    """
    bundle = _bundle(cell.data)
    if bundle.test is None:
        raise InputError("data", f"'{cell.data}' has no test part to judge methods by")
    index = _chosen(cell, len(bundle.train))
    examples = bundle.train if index is None else bundle.train.take(index)
    if cell.noise == REAL:
        return _noisy_by_itself(bundle, examples, index)
    assert bundle.train.labels is not None
    assert examples.labels is not None
    classes = np.unique(bundle.train.labels)
    codes = np.searchsorted(classes, examples.labels)
    noise = _kept_noise(cell, examples, codes, len(classes), directory)

    def evaluate() -> Evaluation:
        assert bundle.test is not None
        rates = ("nominal_rate", "expected_rate", "realised_rate")
        found = {name: noise.manifest[name] for name in rates}
        found["sha256"] = noise.manifest["sha256"]["outputs"]["y_noisy"]
        return Evaluation(
            examples.labels, noise.y_noisy != codes, noise.row, bundle.test, noise=found
        )

    return NoisyCell(
        replace(examples, labels=classes[noise.y_noisy]),
        classes,
        evaluate,
        lambda: Truth(codes, _made_noise(cell, examples, codes, len(classes))),
    )


def _noisy_by_itself(bundle: DatasetBundle, examples: Source, index: IntArray | None) -> NoisyCell:
    assert bundle.train.labels is not None
    assert examples.labels is not None
    classes = np.unique(bundle.train.labels)
    clean = bundle.label_sets.get(RIGHT)
    if clean is not None and index is not None:
        clean = clean[index]
    wrong = None if clean is None else clean != examples.labels

    def evaluate() -> Evaluation:
        assert bundle.test is not None
        assert examples.labels is not None
        realised = None if wrong is None else float(wrong.mean())
        noise = {"realised_rate": realised, "sha256": array_hash(examples.labels)}
        return Evaluation(clean, wrong, None, bundle.test, noise=noise)

    def truth() -> Truth:
        if clean is None:
            raise InputError(
                "methods", f"nobody knows the right training labels of '{bundle.info.name}'"
            )
        assert examples.labels is not None
        right, given = (np.searchsorted(classes, labels) for labels in (clean, examples.labels))
        return Truth(right, counted=counted_transition(right, given, len(classes)))

    return NoisyCell(examples, classes, evaluate, truth)


@lru_cache(maxsize=1)
def _bundle(name: str) -> DatasetBundle:
    return load_dataset(name)


def _chosen(cell: Cell, n: int) -> IntArray | None:
    if cell.images is None or cell.images == n:
        return None
    if cell.images > n:
        raise InputError(
            "images", f"asks for {cell.images:,} of the {n:,} training examples of '{cell.data}'"
        )
    return np.sort(stream(cell.seed, "images").permutation(n)[: cell.images])


def _kept_noise(
    cell: Cell, examples: Source, codes: IntArray, n_classes: int, directory: Path
) -> _Noise:
    path = directory / f"{cell.id}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        if not path.exists():
            made = _made_noise(cell, examples, codes, n_classes)
            manifest = np.frombuffer(json.dumps(made.manifest()).encode(), dtype=np.uint8)
            arrays: dict[str, NDArray[Any]] = {"y_noisy": made.y_noisy, "row": made.row}
            arrays["manifest"] = manifest
            write_atomically(path, lambda temporary: _save(temporary, arrays))
    with np.load(path, allow_pickle=False) as kept:
        manifest = json.loads(kept["manifest"].tobytes())
        noise = _Noise(kept["y_noisy"], kept["row"], manifest)
    if manifest["sha256"]["inputs"]["y"] != array_hash(codes):
        raise InputError(
            "out", f"{path} was made from other data", "Delete it, or write to another folder."
        )
    return noise


def _made_noise(cell: Cell, examples: Source, codes: IntArray, n_classes: int) -> NoisyLabels:
    return make_noise(
        examples.inputs,
        codes,
        cell.noise,
        cell.rate,
        cell.seed,
        n_classes,
        **cell.noise_options,
    )


def _save(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
