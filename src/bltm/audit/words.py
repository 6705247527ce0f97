"""The summary of an audit in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bltm.audit.findings import Calibration, Certificate, ConfusedPair, Diagnosis, NullCheck
from bltm.audit.rates import NoiseRates

SHOWN = 3
FEW = 10


def in_words(
    n: int,
    kind: str,
    source: str,
    rates: NoiseRates,
    disagreement: float,
    verdicts: Mapping[str, int],
    pairs: tuple[ConfusedPair, ...],
    calibration: Calibration | None,
    null_check: NullCheck | None,
    diagnosis: Diagnosis,
    certificate: Certificate | None,
) -> list[str]:
    """Return sentences, the most important first."""
    overall = rates.overall
    lines = [
        f"About {_percent(overall.value)} of the labels seem to be wrong (between "
        f"{_percent(overall.low)} and {_percent(overall.high)}). This is an estimate from the "
        "noisy labels alone; nothing here has seen a right one.",
        f"Of {n:,} labels, {verdicts['relabel']:,} have a sure other suggestion (relabel), "
        f"{verdicts['review']:,} are doubtful (review), {verdicts['drop']:,} are wrong without a "
        f"sure suggestion (drop), and {verdicts['keep']:,} look fine (keep).",
    ]
    if disagreement > overall.high:
        lines.append(
            f"{_percent(disagreement)} of the labels differ from the likeliest class. If labels go "
            "wrong mostly where examples are hard, as people's do, up to that many can be wrong: "
            "nothing tells then whether the label is at fault or the model."
        )
    if kind != "probability":
        lines.append(
            "p_wrong is a score here: it ranks the labels, and its size says little. Set the "
            "thresholds by looking at the list."
        )
        if "in sample" in source:
            lines.append(
                "The model had seen the labels and agrees with some of the wrong ones, so their "
                "share is likely to be higher than it seems."
            )
    likely = [pair for pair in pairs if pair.expected >= 1.0][:SHOWN]
    if likely:
        shown = "; ".join(
            f"{_name(pair.given)} where it should be {_name(pair.suggested)} (about "
            f"{pair.expected:,.0f})"
            for pair in likely
        )
        lines.append(f"Most often confused: {shown}.")
    worst = [row for row in rates.by_given if row.rate.n >= FEW]
    if worst:
        row = max(worst, key=lambda row: row.rate.value)
        lines.append(
            f"The least reliable label is {_name(row.label)}: {_percent(row.rate.value)} of the "
            "examples that carry it seem to be something else."
        )
    lines += [check.words for check in (calibration, null_check) if check is not None]
    lines.append(diagnosis.words)
    if certificate is not None:
        lines.append(
            f"Right labels were inferred for {certificate.collected:,} examples. "
            f"{certificate.condition}"
        )
        if certificate.zero_coverage:
            names = ", ".join(_name(name) for name in certificate.zero_coverage[:FEW])
            more = len(certificate.zero_coverage) - FEW
            lines.append(
                f"None was inferred for {names}{f' and {more} more' if more > 0 else ''}: what is "
                "said of their labels is little more than a guess."
            )
    lines.append(f"How p_wrong was computed: {source}.")
    return lines


def _name(label: Any) -> str:
    return f"'{label}'"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 or share == 0 else f"{100 * share:.1f} %"
