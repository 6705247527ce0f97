"""Which examples a person is asked about, and what the page needs to know of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bltm.audit.cells import cell
from bltm.audit.corrections import LABEL_COLUMNS

if TYPE_CHECKING:
    from bltm.audit import Audit

KEEP = 0
# Keys 1 to 9 choose among the likeliest classes.
CHOICES = 9
# Bars of a row of T; more would not be read.
BARS = 6
# With few or no labels to look at, those nearest to the threshold are shown.
FEWEST = 24


@dataclass(frozen=True, eq=False)
class Suspects:
    """The examples in a report.

    Attributes
    ----------
    indices
        Positions of the suspects in the data, most suspicious first.
    supporting
        Positions of other examples that support a suggestion, those of the first suspects first.
    flagged
        Number of examples whose verdict is another than to keep the label.
    """

    indices: NDArray[np.int64]
    supporting: NDArray[np.int64]
    flagged: int

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def all(self) -> NDArray[np.int64]:
        """Return suspects, then supporting examples: the items of the page."""
        return np.concatenate([self.indices, self.supporting])


def choose_suspects(audit: Audit, most: int) -> Suspects:
    """Return the examples to decide about, at most so many."""
    order = audit.ranking()
    to_keep = audit.verdict[order] == KEEP
    flagged = order[~to_keep]
    others = order[to_keep & ~audit.trusted[order]]
    chosen = np.concatenate([flagged, others[: max(0, FEWEST - len(flagged))]])[:most]
    supporting = np.empty(0, dtype=np.int64)
    if audit.support is not None and len(chosen):
        near = audit.support[chosen].ravel()
        near = near[(near >= 0) & ~np.isin(near, chosen)]
        _, first = np.unique(near, return_index=True)
        supporting = near[np.sort(first)]
    return Suspects(chosen.astype(np.int64), supporting, len(flagged))


def payload(audit: Audit, suspects: Suspects) -> dict[str, Any]:
    """Return what the script of the page reads, pictures and rows excepted.

    Lists under ``items`` speak of suspects and, after them, of supporting examples.
    """
    chosen = suspects.indices
    top, probabilities = _choices(audit, chosen)
    return {
        "key": audit_key(audit),
        "idName": str(audit.id_name),
        "classes": [str(name) for name in audit.classes],
        "kind": audit.kind,
        "written": _written(audit, suspects),
        "items": {
            "index": suspects.all.tolist(),
            "id": [str(audit.ids[i]) for i in suspects.all],
            "given": audit.labels[suspects.all].tolist(),
        },
        "suggested": audit.suggested[chosen].tolist(),
        "p": _rounded(audit.p_wrong[chosen]),
        "verdict": audit.verdict[chosen].tolist(),
        "collected": audit.collected[chosen].tolist(),
        "top": top,
        "topP": probabilities,
        "t": _transition_rows(audit, chosen),
        "support": _support(audit, suspects),
    }


def _written(audit: Audit, suspects: Suspects) -> dict[str, Any]:
    """Return how names are written in the exported file, where that is not how they are shown.

    It is as in ``audit.csv``, so that corrected labels find their examples.
    """
    id_name = cell(str(audit.id_name))
    if id_name in LABEL_COLUMNS:
        id_name += "_"
    others = [name + "_" if name == id_name else name for name in ("given_label", "decision")]
    ids = [audit.ids[i] for i in suspects.indices]
    return {
        "header": [id_name, others[0], "label", others[1]],
        "ids": {n: cell(name) for n, name in enumerate(ids) if cell(name) != str(name)},
        "classes": {n: cell(c) for n, c in enumerate(audit.classes) if cell(c) != str(c)},
    }


def audit_key(audit: Audit) -> str:
    """Return a name for the audit, under which the browser keeps the review.

    Decisions belong to ids and given labels; an audit of other labels starts anew.
    """
    digest = hashlib.sha256()
    digest.update(np.ascontiguousarray(audit.labels, dtype=np.int64).tobytes())
    for names in (audit.classes, audit.ids):
        for name in names:
            digest.update(f"{name}\x1f".encode("utf-8", "surrogatepass"))
    digest.update(np.ascontiguousarray(audit.suggested, dtype=np.int64).tobytes())
    return digest.hexdigest()[:16]


def largest(row: Sequence[float] | NDArray[Any], most: int, also: int) -> list[tuple[int, float]]:
    """Return positions and values of the largest entries, one of them that at ``also``.

    Examples
    --------
    >>> largest([0.1, 0.6, 0.05, 0.25], 2, also=2)
    [(1, 0.6), (2, 0.05)]
    """
    values = np.asarray(row, dtype=np.float64)
    order = np.argsort(-values, kind="stable")[:most].tolist()
    if also not in order:
        order[-1] = also
    return [(int(i), round(float(values[i]), 4)) for i in order]


def _choices(
    audit: Audit, chosen: NDArray[np.int64]
) -> tuple[list[list[int]], list[list[float | None]]]:
    """Return the classes behind the keys, and their probabilities where these are known.

    An audit may keep fewer than there are keys. The given label is the next then, for its
    probability is known; others follow in their own order.
    """
    most = min(CHOICES, len(audit.classes))
    codes: list[list[int]] = []
    values: list[list[float | None]] = []
    for i in chosen:
        known = [int(code) for code in audit.top[i, :most]]
        probabilities: list[float | None] = list(_rounded(audit.top_probs[i, :most]))
        given = int(audit.labels[i])
        if len(known) < most and given not in known:
            known.append(given)
            probabilities.append(round(1.0 - float(audit.p_wrong[i]), 4))
        # Twice as many as there are keys hold enough that are not known.
        others = [code for code in range(min(2 * most, len(audit.classes))) if code not in known]
        added = others[: most - len(known)]
        codes.append([*known, *added])
        values.append([*probabilities, *[None] * len(added)])
    return codes, values


def _transition_rows(audit: Audit, chosen: NDArray[np.int64]) -> list[list[list[float]]] | None:
    if audit.t_row is None:
        return None
    return [
        [[code, value] for code, value in largest(row, BARS, also=int(given))]
        for row, given in zip(audit.t_row[chosen], audit.labels[chosen], strict=True)
    ]


def _support(audit: Audit, suspects: Suspects) -> list[list[int]] | None:
    if audit.support is None:
        return None
    place = {int(index): position for position, index in enumerate(suspects.all)}
    return [
        [place[int(index)] for index in row if index >= 0]
        for row in audit.support[suspects.indices]
    ]


def _rounded(values: NDArray[Any]) -> list[float]:
    return [round(float(value), 4) for value in values]
