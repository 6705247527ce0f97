"""Corrected labels: read from a table, put in the place of those that were given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from bltm.audit.corrections import apply_corrections, read_corrections
from bltm.core.errors import InputError
from bltm.data.source import Source
from bltm.runs.artifacts import read_evidence
from bltm.runs.directory import POSTERIORS, RunDirectory, State
from bltm.runs.tables import TABLE_SUFFIXES, check_output, write_table


def relabelled(source: Source, path: Path) -> Source:
    """Return a source with the labels of a table, by id; examples that it lacks keep theirs."""
    if source.labels is None:
        raise InputError("labels", "the data has no labels that could be replaced")
    corrections = read_corrections(path, source.id_name)
    classes = np.unique(source.labels)
    labels = apply_corrections(source.ids, source.labels, classes, corrections)
    return replace(source, labels=labels).with_notes(
        f"Took {len(corrections):,} labels from '{path}'."
    )


def apply_to_run(run: Path, corrected: Path, out: Path, *, overwrite: bool = False) -> str:
    """Write the labels of a run's training examples with corrections, one row for each.

    Parameters
    ----------
    run
        Directory of a finished run.
    corrected
        Table with ids and labels, such as the report exports.
    out
        Table to write: .csv, .tsv or .parquet.
    overwrite
        Whether a table that exists may be replaced.
    """
    if RunDirectory(run).state is not State.FINISHED:
        raise InputError("run", f"'{run}' is not a finished run", "Give one of 'bltm fit --out'.")
    check_output(out, TABLE_SUFFIXES, overwrite)
    evidence = read_evidence(run / POSTERIORS)
    classes = np.asarray(evidence.classes)
    given = classes[evidence.labels]
    corrections = read_corrections(corrected, evidence.id_name)
    labels = apply_corrections(np.asarray(evidence.ids, dtype=object), given, classes, corrections)
    write_table(pd.DataFrame({evidence.id_name: evidence.ids, "label": labels}), out)
    changed = int((labels != given).sum())
    return (
        f"{out} has {len(labels):,} labels, {changed:,} of them changed by {len(corrections):,} "
        "corrections."
    )
