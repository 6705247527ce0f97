"""What a report is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bltm.audit import Audit

# Encoded pictures (PNG, JPEG, WebP) of examples by index; None for one that cannot be read.
Pictures = Callable[[Sequence[int]], list[bytes | None]]
# Rows of a table by index: names of columns and what is in them.
TableRows = Callable[[Sequence[int]], list[dict[str, str]]]


@dataclass(frozen=True)
class Limits:
    """How large a report may become.

    Parameters
    ----------
    suspects
        The most examples to decide about.
    size
        The most bytes of the file. Pictures become smaller until they fit, then fewer, then the
        list of suspects becomes shorter; the report says so.
    pixels
        The longest side of a thumbnail, where the size allows it.
    least_pixels
        The longest side below which there are rather fewer thumbnails than smaller ones.
    columns
        The most columns of a table that are shown.
    cell
        The most characters of a cell that are shown.
    """

    suspects: int = 5_000
    size: int = 15_000_000
    pixels: int = 192
    least_pixels: int = 64
    columns: int = 40
    cell: int = 160


@dataclass(frozen=True, eq=False)
class ReportContent:
    """Everything that a report shows.

    Parameters
    ----------
    title
        The heading.
    audit
        What is known about each label.
    method, data, seed
        How the audit came about; None where it is not known, as for ready posteriors.
    config, versions
        Settings of the run and versions of the software.
    pictures
        Gives pictures of examples, if they are pictures.
    table_rows
        Gives rows of examples, if they are rows of a table.
    history
        One record for each epoch: ``stage``, ``epoch``, ``loss`` and, where it was measured,
        ``val_accuracy`` and others.
    limits
        How large the file may become.
    """

    title: str
    audit: Audit
    method: str | None = None
    data: str | None = None
    seed: int | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    pictures: Pictures | None = None
    table_rows: TableRows | None = None
    history: Sequence[Mapping[str, Any]] = ()
    limits: Limits = field(default_factory=Limits)
