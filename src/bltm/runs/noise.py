"""Make a noisy copy of a data set, with everything that says how it was made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.core.errors import InputError
from bltm.core.files import write_atomically, write_json
from bltm.data.labels import encode_labels
from bltm.data.source import Source, open_source
from bltm.noise import make_noise
from bltm.runs.tables import check_output


def write_noisy(
    data: str,
    out: Path,
    *,
    model: str,
    rate: float,
    seed: int,
    options: dict[str, Any],
    label: str | None = None,
    overwrite: bool = False,
) -> str:
    """Write ``X``, ``y`` (noisy), ``y_true`` and ``rows``, and a manifest beside them.

    Parameters
    ----------
    data
        ``.npz`` file, table of numbers, or registered data set; its labels are taken as right.
    out
        The ``.npz`` file; the manifest is called ``<name>.manifest.json``.
    model, rate, seed, options
        As for ``make_noise``.
    label
        Column of the labels.
    overwrite
        Whether ``out`` may exist.
    """
    check_output(out, (".npz",), overwrite)
    source = open_source(data, label=label)
    X = _numbers(source)
    assert source.labels is not None
    codes, classes = encode_labels(source.labels, ids=source.ids)
    noisy = make_noise(X, codes, model, rate, seed, len(classes), **options)
    # Text as an array of fixed width: object arrays would need a pickle.
    names = np.array([str(name) for name in classes]) if classes.dtype == object else classes
    arrays: dict[str, NDArray[Any]] = {
        "X": X,
        "y": names[noisy.y_noisy],
        "y_true": names[codes],
        "rows": noisy.row,
    }
    manifest = {
        "data": data,
        "data_sha256": source.fingerprint,
        "classes": classes.tolist(),
        **noisy.manifest(),
    }
    write_atomically(out, lambda temporary: _save(temporary, arrays))
    beside = out.with_suffix(".manifest.json")
    write_json(beside, manifest)
    return (
        f"Wrote {len(codes):,} examples of {len(classes)} classes to {out}: "
        f"{100 * manifest['realised_rate']:.1f} % of the labels in y are wrong (asked for "
        f"{100 * rate:g} %), the right ones are in y_true. {beside} says how they were made."
    )


def _numbers(source: Source) -> NDArray[Any]:
    if source.kind in ("array", "images"):
        return np.asarray(source.inputs)
    if source.kind == "table":
        kinds = {str(name): column.dtype.kind for name, column in source.inputs.items()}
        inputs = source.inputs.drop(columns=[source.id_name], errors="ignore")
        text = [name for name in map(str, inputs.columns) if kinds[name] not in "iufb"]
        if not text:
            return np.asarray(inputs.to_numpy(dtype=np.float64))
        problem = f"column '{text[0]}' does not hold numbers"
    else:
        problem = "image files are not read here"
    raise InputError("data", problem, "Save the inputs as arrays X and y in an .npz file.")


def _save(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
