"""The audit of a run: its files, its report, and what to say of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bltm import __version__
from bltm.audit import Audit, Thresholds, audit, write_audit
from bltm.core.errors import InputError
from bltm.core.evidence import Evidence
from bltm.core.files import read_json
from bltm.report.html import ReportContent, write_report
from bltm.report.shown import Shown
from bltm.runs.artifacts import read_evidence
from bltm.runs.config import RunConfig
from bltm.runs.directory import AUDIT, CONFIG, HISTORY, METADATA, POSTERIORS, RunDirectory, State

REPORT = "report.html"
TOP = 9
"""Likely labels that are kept for each example: as many as there are keys to choose them."""

# Settings that say nothing of how labels were judged.
_SMALL_PRINT = ("bltm", "data_sha256")


@dataclass(frozen=True)
class AuditOptions:
    """How labels are judged, and what is written.

    Attributes
    ----------
    thresholds
        From which probability on a label is relabelled, reviewed or dropped.
    in_sample
        True for the classifier that saw the labels, None for others where there are any.
    report
        Whether to write the HTML report.
    """

    thresholds: Thresholds = field(default_factory=Thresholds)
    in_sample: bool | None = None
    report: bool = True


def audit_run(
    run: Path, out: Path | None = None, options: AuditOptions | None = None, *, brief: bool = False
) -> str:
    """Judge the labels of a finished run, write the files and return the findings in words.

    Parameters
    ----------
    run
        Directory of the run.
    out
        Where the files go; by default into the run.
    options
        How to judge, and what to write.
    brief
        Whether to say only which labels to look at; all of it is in the report.
    """
    options = options or AuditOptions()
    _require_finished(run)
    evidence = read_evidence(run / POSTERIORS)
    found = _judged(evidence, run, options)
    out = run if out is None else out
    write_audit(found, out)
    # A fit has said itself how many labels seem to be wrong.
    lines = list(found.summary.words[1:4] if brief else found.summary.words)
    if options.report:
        notes = write_run_report(run, out / REPORT, found)
        lines += notes
    written = ", ".join(AUDIT if options.report else AUDIT[:-1])
    lines.append(f"Files: {out}/ has {written}.")
    if options.report:
        lines.append(f"Next: open {out / REPORT} in a browser and decide about the suspects.")
    return "\n".join(lines)


def report_run(run: Path, out: Path) -> str:
    """Write the report of a run anew and say where it is."""
    _require_finished(run)
    found = _judged(read_evidence(run / POSTERIORS), run, AuditOptions())
    notes = write_run_report(run, out, found)
    return "\n".join([*notes, f"{out} opens in any browser, without a network."])


def audit_arrays(
    labels: Path,
    probs: Path,
    out: Path,
    *,
    transition: Path | None = None,
    classes: list[str] | None = None,
    options: AuditOptions | None = None,
) -> str:
    """Judge labels by ready posteriors of any model; all are ``.npy`` files.

    Parameters
    ----------
    labels, probs
        Given labels (N,), and class probabilities (N, C).
    out
        Directory for the files.
    transition
        T, of shape (C, C) or (N, C, C), if the probabilities are those of right labels.
    classes
        The classes in the order of the columns.
    options
        How to judge, and what to write.
    """
    options = options or AuditOptions()
    given, predicted = _array("labels", labels), _array("probs", probs)
    matrix = None if transition is None else _array("transition", transition)
    found = audit(
        given,
        predicted,
        matrix,
        classes=classes,
        in_sample=options.in_sample,
        thresholds=options.thresholds,
        top_k=TOP,
    )
    write_audit(found, out)
    if options.report:
        content = ReportContent(
            title="Label audit",
            audit=found,
            data=str(labels),
            config={"labels": str(labels), "probs": str(probs)},
            versions=_versions(),
        )
        write_report(content, out / REPORT)
    written = ", ".join(AUDIT if options.report else AUDIT[:-1])
    return "\n".join([*found.summary.words, f"Files: {out}/ has {written}."])


def write_run_report(run: Path, path: Path, found: Audit) -> list[str]:
    """Write the report of a run; return what a user should know of it."""
    config = RunConfig.from_json(read_json(run / CONFIG))
    shown, notes = _shown(config, found)
    content = ReportContent(
        title=f"Label audit of {Path(config.data).name}",
        audit=found,
        method=config.method,
        data=config.data,
        seed=config.seed,
        config={
            name: value
            for name, value in config.to_json().items()
            if name not in _SMALL_PRINT and value not in (None, {}, [])
        },
        versions=_run_versions(run),
        pictures=shown.pictures if shown and shown.are_pictures else None,
        table_rows=shown.table_rows if shown and shown.are_rows else None,
        history=_history(run),
    )
    write_report(content, path)
    return notes


def _judged(evidence: Evidence, run: Path, options: AuditOptions) -> Audit:
    seed = RunConfig.from_json(read_json(run / CONFIG)).seed
    return audit(
        evidence,
        in_sample=options.in_sample,
        thresholds=options.thresholds,
        top_k=TOP,
        seed=seed,
    )


def _shown(config: RunConfig, found: Audit) -> tuple[Shown | None, list[str]]:
    """Return the examples as they can be shown, or a note on why they cannot."""
    try:
        source = config.open_source()
    except (InputError, OSError) as error:
        return None, [f"note: the report shows no examples, for the data cannot be read: {error}"]
    if config.data_sha256 and source.fingerprint != config.data_sha256:
        return None, ["note: the report shows no examples, for the data has changed since the fit."]
    return Shown(source, found.ids.tolist()), []


def _require_finished(run: Path) -> None:
    if RunDirectory(run).state is not State.FINISHED:
        raise InputError(
            "run", f"'{run}' is not a finished run", "Give the --out of a 'bltm fit' that ended."
        )


def _history(run: Path) -> list[dict[str, Any]]:
    text = (run / HISTORY).read_text(encoding="utf-8") if (run / HISTORY).exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def _run_versions(run: Path) -> dict[str, str]:
    metadata = read_json(run / METADATA)
    versions = {name: str(metadata[name]) for name in ("bltm", "torch") if name in metadata}
    return dict(versions) | {"report by bltm": __version__}


def _versions() -> dict[str, str]:
    return {"bltm": __version__, "numpy": np.__version__}


def _array(name: str, path: Path) -> Any:
    if not path.is_file():
        raise InputError(name, f"there is no file '{path}'", "Give a .npy file.")
    try:
        return np.load(path, allow_pickle=False)
    except ValueError as error:
        raise InputError(name, f"'{path}' is no .npy file of plain values: {error}") from error
