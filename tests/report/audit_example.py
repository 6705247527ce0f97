"""Audits to show, made from posteriors; nothing is trained."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.audit import Audit, audit
from bltm.report.html import ReportContent


def posteriors(n: int, n_classes: int, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Noisy labels, a fifth of them wrong, and posteriors that mostly know the right ones."""
    rng = np.random.default_rng(seed)
    right = rng.integers(0, n_classes, n)
    probs = rng.dirichlet(np.full(n_classes, 0.4), n) * 0.4
    probs[np.arange(n), right] += 0.6
    wrong = rng.random(n) < 0.2
    labels = np.where(wrong, (right + rng.integers(1, n_classes, n)) % n_classes, right)
    return labels, probs


def example_audit(
    n: int = 200, classes: Sequence[Any] = ("cat", "dog", "fox", "owl"), **options: Any
) -> Audit:
    """An audit with supporting examples: the three most confident of the suggested class."""
    labels, probs = posteriors(n, len(classes))
    given = np.array(classes, dtype=object)[labels]
    # A fifth of the labels is wrong, in any way.
    transition = np.full((len(classes),) * 2, 0.2 / (len(classes) - 1))
    np.fill_diagonal(transition, 0.8)
    found = audit(given, probs, transition, classes=list(classes), top_k=9, **options)
    support = np.full((n, 3), -1, dtype=np.int64)
    for code in range(len(classes)):
        best = np.argsort(-probs[:, code])[:3]
        support[found.suggested == code] = best
    return dataclasses.replace(found, support=support)


def picture_maker(size: int = 28) -> Callable[[Sequence[int]], list[bytes | None]]:
    """Plain squares, each of a colour of its own."""
    from PIL import Image

    def pictures(indices: Sequence[int]) -> list[bytes | None]:
        made = []
        for index in indices:
            file = io.BytesIO()
            colour = (index * 37 % 256, index * 91 % 256, index * 53 % 256)
            Image.new("RGB", (size, size), colour).save(file, "PNG")
            made.append(file.getvalue())
        return made

    return pictures


def history() -> list[dict[str, Any]]:
    return [
        {"stage": stage, "epoch": epoch, "epochs": 4, "loss": 1 / epoch, "val_accuracy": 0.7}
        for stage in ("warm_up", "transition", "correct")
        for epoch in range(1, 5)
    ]


def example_content(found: Audit | None = None, **values: Any) -> ReportContent:
    return ReportContent(
        **{
            "title": "Labels of the zoo",
            "audit": example_audit() if found is None else found,
            "method": "bltm-v",
            "data": "zoo.csv",
            "seed": 0,
            "config": {"method": "bltm-v", "seed": 0},
            "versions": {"bltm": "0.1.0"},
            "history": history(),
            **values,
        }
    )


HOSTILE = (
    "<script>document.title='harmed'</script>",
    "</script><img src=x onerror=\"document.title='harmed'\">",
    "\"quotes' and `ticks` {{ 7 * 7 }} {% raw %}",
    "abc\u202egnp.exe",
    '=HYPERLINK("http://example.org";"x")',
    "-1+1",
    "@SUM(A1)",
    "line\nbreak, comma; and\ttab",
    "nul\x00 and \u2028 separators",
    "long " + "x" * 295,
    "&lt;b&gt; <!-- --> ]]>",
    "'=quoted",
)


def hostile_audit(n: int = 240) -> Audit:
    """Class names and ids that try to be markup, script, formulas and layout."""
    ids = [f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(n)]
    return example_audit(n, HOSTILE, ids=ids, id_name="=file <b>name</b>")
