"""Label new data with the model of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from bltm.core.errors import InputError
from bltm.data.source import Source, open_source
from bltm.methods.persistence import load
from bltm.runs.artifacts import read_evidence
from bltm.runs.directory import CONFIG, POSTERIORS, RunDirectory, State
from bltm.runs.tables import TABLE_SUFFIXES, check_output, write_table


@dataclass(frozen=True)
class PredictOptions:
    """How new data is read and where to compute; None takes what the run was fitted with."""

    image: str | None = None
    id: str | None = None
    device: str = "auto"
    overwrite: bool = False


def predict_run(run: Path, data: str, out: Path, options: PredictOptions) -> str:
    """Write label and probabilities of each example; return what was done, in words.

    Columns of the result: the id under its own name, ``label``, and ``probability_<class>`` for
    each class. Columns of the new data are matched by name; others are left alone.
    """
    check_output(out, TABLE_SUFFIXES, options.overwrite)
    directory = RunDirectory(run)
    if directory.state is State.ABSENT:
        raise InputError("run", f"there is no directory '{run}'", "Fit one with 'bltm fit'.")
    if directory.state is State.UNFINISHED:
        raise InputError(
            "run",
            f"'{run}' is not finished",
            "Repeat its 'bltm fit' command with --resume.",
        )
    model = load(run, device=options.device)
    source = _open(directory, data, options)
    probs = model.predict_proba_source(source)
    labels = model.classes_[probs.argmax(axis=1)]
    columns = {_id_name(source): source.ids, "label": labels}
    for name, column in zip(model.classes_.tolist(), probs.T, strict=True):
        columns[f"probability_{name}"] = column
    write_table(pd.DataFrame(columns), out)
    found, counts = np.unique(labels.astype(str), return_counts=True)
    most = ", ".join(f"{found[i]} ({counts[i]:,})" for i in np.argsort(-counts, kind="stable")[:10])
    return f"Wrote labels of {len(source):,} examples to {out}: {most}."


def _open(directory: RunDirectory, data: str, options: PredictOptions) -> Source:
    """Open new data as the training data was opened."""
    if not (directory.path / CONFIG).exists():
        return open_source(data, image=options.image, id=options.id, for_prediction=True)
    config = directory.config()
    image = config.image if options.image is None else options.image
    id_column = config.id if options.id is None else options.id
    source = open_source(data, label=config.label, image=image, id=id_column, for_prediction=True)
    if id_column is None and source.kind == "table":
        # Ids were recognised in the training data; a single row gives nothing to recognise.
        known = read_evidence(directory.path / POSTERIORS).id_name
        if known != source.id_name and known in source.inputs.columns:
            return open_source(data, label=config.label, id=known, for_prediction=True)
    return source


def _id_name(source: Source) -> str:
    return "id" if source.id_name == "label" else source.id_name
