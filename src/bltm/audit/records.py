"""What an audit hands back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.audit.findings import (
    Calibration,
    Certificate,
    ClassRate,
    ConfusedPair,
    Diagnosis,
    NullCheck,
    Rate,
)
from bltm.audit.thresholds import VERDICTS, Thresholds
from bltm.audit.transitions import TransitionRows

__all__ = [
    "Audit",
    "AuditSummary",
    "Calibration",
    "Certificate",
    "ClassRate",
    "ConfusedPair",
    "Diagnosis",
    "NullCheck",
    "Rate",
    "plain",
]

Floats = NDArray[np.float32]
Codes = NDArray[np.int32]
# A larger average matrix is given by its largest entries.
WHOLE_MATRIX_CLASSES = 100
LARGEST_ENTRIES = 1000


@dataclass(frozen=True, eq=False)
class AuditSummary:
    """What an audit says of a data set; see ``docs/audit.md``.

    ``disagreement`` is the share of the labels in question that differ from the likeliest class.
    """

    n: int
    used: int
    kind: str
    source: str
    classes: list[Any]
    noise_rate: Rate
    disagreement: float
    by_given: tuple[ClassRate, ...]
    by_right: tuple[ClassRate, ...]
    average_transition: NDArray[np.float64]
    pairs: tuple[ConfusedPair, ...]
    verdicts: Mapping[str, int]
    thresholds: Thresholds
    calibration: Calibration | None
    null_check: NullCheck | None
    diagnosis: Diagnosis
    certificate: Certificate | None
    words: list[str]

    def to_json(self) -> dict[str, Any]:
        """Return plain values; of a matrix of many classes the largest entries off its diagonal."""
        values = {field.name: plain(getattr(self, field.name)) for field in fields(self)}
        if len(self.classes) > WHOLE_MATRIX_CLASSES:
            values["average_transition"] = None
        values["average_transition_largest"] = self._largest_entries()
        return values

    def _largest_entries(self) -> list[dict[str, Any]]:
        flips = self.average_transition.copy()
        np.fill_diagonal(flips, 0.0)
        order = np.argsort(-flips, axis=None, kind="stable")[:LARGEST_ENTRIES]
        rows, columns = np.unravel_index(order, flips.shape)
        return [
            {
                "right": plain(self.classes[i]),
                "given": plain(self.classes[j]),
                "probability": float(flips[i, j]),
            }
            for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
            if flips[i, j] > 0
        ]


@dataclass(frozen=True, eq=False)
class Audit:
    """What is known of each of N labels, in the order of the data.

    Attributes
    ----------
    ids, id_name
        The user's name of each example, and what these names are called.
    classes
        The C classes.
    labels, suggested
        Given and suggested labels as codes, shape (N,).
    p_wrong
        Probability that the given label is wrong, shape (N,); zero for trusted labels.
    p_right
        ``1 - p_wrong``, exact where it is tiny: what :meth:`ranking` sorts by.
    top, top_probs
        The k most probable right labels and their probabilities, shape (N, k).
    t_row
        Row of T(x) of the suggested label, indexed like an array of shape (N, C), or None.
    verdict
        Codes in ``VERDICTS``, shape (N,).
    collected
        0: no label was inferred; 1: the given one was; 2: another one was. Shape (N,).
    support
        Positions of collected examples that speak for the suggestion, -1 for none, shape (N, 3),
        or None.
    trusted, used
        Labels known to be right; examples that had part in training or validation. Shape (N,).
    held_out
        Examples that a fit held out for validation, shape (N,); None where nothing was fitted.
    kind
        "probability", or "score" where ``p_wrong`` only ranks.
    source
        How it was computed, in words.
    summary
        What is said of the data set.
    """

    ids: NDArray[Any]
    id_name: str
    classes: list[Any]
    labels: Codes
    suggested: Codes
    p_wrong: Floats
    p_right: Floats
    top: Codes
    top_probs: Floats
    t_row: Floats | TransitionRows | None
    verdict: NDArray[np.int8]
    collected: NDArray[np.int8]
    support: NDArray[np.int64] | None
    trusted: NDArray[np.bool_]
    used: NDArray[np.bool_]
    held_out: NDArray[np.bool_] | None
    kind: str
    source: str
    summary: AuditSummary

    def __len__(self) -> int:
        return len(self.labels)

    def ranking(self) -> NDArray[np.int64]:
        """Return positions of all examples, the most suspicious label first."""
        order: NDArray[np.int64] = np.argsort(self.p_right, kind="stable")
        return order

    def positions(self, verdict: str) -> NDArray[np.int64]:
        """Return the positions of one verdict, the most suspicious label first."""
        order = self.ranking()
        found: NDArray[np.int64] = order[self.verdict[order] == VERDICTS.index(verdict)]
        return found


def plain(value: Any) -> Any:
    """Return a value made of what JSON knows; numbers that are not finite become None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)
