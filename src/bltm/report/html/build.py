"""Put the report together and keep it within its size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bltm.core.files import write_text
from bltm.report.html import sections
from bltm.report.html.content import Limits, ReportContent
from bltm.report.html.embed import embedded_json, plain, source_hash
from bltm.report.html.rows import ShownRows, fitting_rows
from bltm.report.html.suspects import Suspects, choose_suspects, payload
from bltm.report.html.thumbnails import Thumbnails, fitting
from bltm.report.html.trust import trust_parts

if TYPE_CHECKING:
    from jinja2 import Environment

STYLES = ("base.css", "review.css", "charts.css")
SCRIPTS = ("dom.js", "state.js", "filter.js", "list.js", "detail.js", "export.js", "main.js")
# Room for remarks on what was left out, and for the frames of the data.
NOTES = 2_000


@dataclass(frozen=True)
class Embedded:
    """The data of the page as JSON, and what had to be left out."""

    review: str
    pictures: str
    rows: str
    suspects: Suspects
    notes: list[str]


def write_report(content: ReportContent, path: Path) -> None:
    """Write the report as one file.

    Parameters
    ----------
    content
        What it shows.
    path
        The file, such as ``run/report.html``; it is replaced as a whole.
    """
    write_text(path, build_report(content))


def build_report(content: ReportContent) -> str:
    """Return the report as HTML.

    Parameters
    ----------
    content
        What it shows.
    """
    audit = content.audit
    suspects = choose_suspects(audit, content.limits.suspects)
    styles = "".join(_asset(name) for name in STYLES)
    theme = _asset("theme.js")
    script = '"use strict";\n(() => {\n' + "".join(_asset(name) for name in SCRIPTS) + "})();\n"
    page = partial(
        _environment().get_template("report.html.j2").render,
        title=plain(content.title),
        policy=_policy(styles, theme, script),
        styles=styles,
        theme=theme,
        script=script,
        content=content,
        audit=audit,
        n_classes=len(audit.classes),
        words=sections.opening(audit.summary),
        figures=sections.three_figures(audit, suspects.flagged),
        noise=sections.class_noise(audit.summary),
        most_classes=sections.MOST_CLASSES,
        most_listed=sections.MOST_LISTED,
        heat=sections.heat_map(audit.summary),
        pairs=sections.class_pairs(audit.summary),
        trust=trust_parts(audit.summary),
        stages=sections.training_stages(content.history),
        config=sections.settings(content.config),
        versions=sections.settings(content.versions),
    )
    # What is left of the limit when all else is there is for the data.
    empty = page(embedded=Embedded("", "", "", suspects, []))
    room = content.limits.size - len(empty.encode("utf-8")) - NOTES
    return page(embedded=_embed(content, suspects, room))


def _embed(content: ReportContent, suspects: Suspects, room: int) -> Embedded:
    """Return suspects with their pictures or rows, as many as there is room for."""
    limits = content.limits
    review = embedded_json(payload(content.audit, suspects))
    # Pictures take what the list leaves, half of the room at least.
    while len(suspects) > 1 and len(review) > room / 2:
        share = 0.9 * max(room, 0) / 2 / len(review)
        fewer = max(1, min(len(suspects) - 1, int(len(suspects) * share)))
        suspects = choose_suspects(content.audit, fewer)
        review = embedded_json(payload(content.audit, suspects))
    room -= len(review)
    notes = _suspect_notes(suspects)
    pictures, rows = "null", "null"
    if content.pictures is not None:
        small = fitting(
            content.pictures, suspects.indices.tolist(), suspects.supporting.tolist(), room, limits
        )
        pictures = embedded_json({"prefix": "data:image/webp;base64,", "data": small.encoded})
        notes += _picture_notes(small, len(suspects.supporting), limits)
    elif content.table_rows is not None:
        id_name = str(content.audit.id_name)
        shown = fitting_rows(content.table_rows, suspects.all.tolist(), id_name, room, limits)
        rows = embedded_json(shown.payload())
        notes += _row_notes(shown)
    return Embedded(review, pictures, rows, suspects, notes)


def _suspect_notes(suspects: Suspects) -> list[str]:
    shown, flagged = len(suspects), suspects.flagged
    if shown < flagged:
        return [
            f"The {shown:,} most suspicious of {flagged:,} labels are listed here; audit.csv has "
            "them all."
        ]
    if flagged < shown:
        return [
            f"{flagged or 'No'} labels stand out. The list also has the {shown - flagged} that "
            "come closest, so that you can see where the line was drawn."
        ]
    return []


def _picture_notes(small: Thumbnails, supporting: int, limits: Limits) -> list[str]:
    notes = []
    if small.pixels < limits.pixels or small.left_out:
        notes.append(
            f"Pictures have at most {small.pixels} pixels on the longer side, so that this file "
            f"stays below {limits.size / 1e6:.0f} MB."
        )
    others = min(small.left_out, supporting)
    if others:
        notes.append(f"There was no room for the pictures of {others:,} supporting examples.")
    if small.left_out > others:
        left_out = small.left_out - others
        notes.append(f"There was no room for {left_out:,} pictures at the end of the list.")
    if small.unreadable:
        notes.append(f"{small.unreadable:,} pictures could not be read.")
    return notes


def _row_notes(shown: ShownRows) -> list[str]:
    notes = []
    if len(shown.columns) < shown.all_columns:
        notes.append(f"The first {len(shown.columns)} of {shown.all_columns:,} columns are shown.")
    if shown.left_out:
        notes.append(f"There was no room for {shown.left_out:,} rows at the end of the list.")
    return notes


def _policy(styles: str, *scripts: str) -> str:
    """Return the Content-Security-Policy: what is in the file, and nothing else."""
    hashes = " ".join(source_hash(script) for script in scripts)
    return (
        f"default-src 'none'; img-src data:; style-src {source_hash(styles)}; "
        f"script-src {hashes}; base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return (files("bltm.report.html") / "assets" / name).read_text(encoding="utf-8")


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("bltm.report.html", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    filters: dict[str, Any] = {"percent": sections.percent, "plain": plain}
    environment.filters.update(filters)
    return environment
