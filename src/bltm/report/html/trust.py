"""What speaks for and against an audit: diagnosis, null check, certificate, calibration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bltm.report.html.charts import Chart, line_chart
from bltm.report.html.embed import plain, prose

if TYPE_CHECKING:
    from bltm.audit import AuditSummary
    from bltm.audit.records import Calibration, Certificate


@dataclass(frozen=True)
class Coverage:
    """How many right labels of a class were inferred, and that as a share of the most."""

    name: str
    n: int
    share: float


@dataclass(frozen=True)
class Part:
    """A finding in words, with a chart, a remark on how to read it, and more for those who ask."""

    title: str
    sentences: list[str]
    chart: Chart | None = None
    about: str = ""
    coverage: tuple[Coverage, ...] = ()
    assumptions: str = ""


def trust_parts(summary: AuditSummary) -> list[Part]:
    """Return all that is known about how far to trust the audit."""
    parts = [Part("Is the noise instance-dependent?", [prose(summary.diagnosis.words)])]
    if summary.null_check is not None:
        parts.append(Part("Null check", [prose(summary.null_check.words)]))
    if summary.calibration is not None:
        parts.append(_calibration(summary.calibration))
    if summary.certificate is not None:
        parts.append(_certificate(summary.certificate, [plain(name) for name in summary.classes]))
    parts.append(Part("What the probabilities are", [prose(f"{summary.source}.")]))
    return parts


def _calibration(calibration: Calibration) -> Part:
    bins = [
        each
        for each in calibration.bins
        if each.n and math.isfinite(each.predicted) and math.isfinite(each.observed.value)
    ]
    chart = None
    if bins:
        chart = line_chart(
            "Observed share of wrong labels",
            "predicted probability",
            [[(each.predicted, each.observed.value) for each in bins]],
            percent=True,
            intervals=[(each.observed.low, each.observed.high) for each in bins],
        )
    return Part(
        "Calibration",
        [prose(calibration.words)],
        chart,
        "On the dashed line, probabilities are what they say. Bars are 95 % intervals.",
    )


def _certificate(certificate: Certificate, names: list[str]) -> Part:
    assumed = {"estimate": "estimated from the data"}.get(certificate.assumed, "as the fit had it")
    kind = "out-of-sample" if certificate.out_of_sample else "in-sample"
    sentences = [
        f"Right labels were inferred for {certificate.collected:,} examples: those with an {kind} "
        f"probability above {certificate.threshold:.3g}, which is (1 + rho_max) / 2 for rho_max = "
        f"{certificate.rho_max:.3g}, {assumed}.",
        prose(certificate.condition),
    ]
    if certificate.zero_coverage:
        missing = [str(name) for name in certificate.zero_coverage]
        more = f" and {len(missing) - 10:,} more" if len(missing) > 10 else ""
        sentences.append(prose(f"None was inferred for: {', '.join(missing[:10])}{more}."))
    points = [(step.rho, float(step.collected)) for step in certificate.sweep]
    chart = None
    if points:
        chart = line_chart("Examples collected", "rho_max", [points], rule=certificate.rho_max)
    most = max(certificate.coverage, default=0) or 1
    return Part(
        "Certificate of collection",
        sentences,
        chart,
        "The dashed line is the rho_max that was assumed.",
        tuple(
            Coverage(name, n, n / most) for name, n in zip(names, certificate.coverage, strict=True)
        ),
        "" if certificate.bound is None else prose(certificate.bound.assumptions),
    )
