"""What came out of a fit, in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bltm.core.evidence import Evidence
from bltm.runs.config import RunConfig
from bltm.runs.estimate import duration

FEW = 10
SHOWN = 10


def summarise(
    config: RunConfig, evidence: Evidence, findings: Mapping[str, Any], path: Path
) -> str:
    """Return the summary of a finished run.

    Parameters
    ----------
    config
        How it was started.
    evidence
        What is known of the training examples.
    findings
        The estimator's own findings.
    path
        The run directory.
    """
    used = evidence.split.all
    lines = [
        f"{config.method} learned from {len(used):,} examples of {len(evidence.classes)} classes "
        f"in {duration(findings['seconds'])} (seed {config.seed}).",
        *_wrong_labels(evidence, findings),
        *_collected(evidence),
        f"Files: {path}/ holds the model (model.safetensors, metadata.json), how it was made "
        "(config.json, history.jsonl) and what is known of each training example "
        "(posteriors.safetensors).",
        f"Next: bltm predict {path} NEW_DATA --out predictions.csv",
    ]
    return "\n".join(lines)


def _wrong_labels(evidence: Evidence, findings: Mapping[str, Any]) -> list[str]:
    lines = []
    rate = findings.get("noise_rate")
    if rate is not None:
        lines.append(
            f"About {_percent(rate)} of the labels seem to be wrong. This is the model's own "
            "estimate, made from the same noisy labels; nothing here has seen a right one."
        )
    held_out = evidence.split.validation
    if len(held_out) == 0:
        lines.append(
            "No examples were held out, for there are too few: nothing checks this result."
        )
        return lines
    agree = float(
        np.average(
            evidence.probs[held_out].argmax(axis=1) == evidence.labels[held_out],
            weights=evidence.weights[held_out],
        )
    )
    margin = 1.96 * math.sqrt(max(agree * (1 - agree), 0.25 / len(held_out)) / len(held_out))
    text = (
        f"On {len(held_out):,} examples held out of training the classifier agrees with the given "
        f"label for {_percent(agree)} (± {100 * margin:.0f} points). Those labels are noisy too, "
        "so this is not its accuracy"
    )
    if rate is None:
        lines.append(f"{text}: a classifier that is right disagrees with every wrong label.")
        return lines
    expected = 1.0 - rate
    text += f"; a perfect classifier would agree for about {_percent(expected)}"
    fits = abs(agree - expected) <= margin + 0.05
    verdict = (
        "The two fit together, which speaks for the estimate."
        if fits
        else "The two do not fit together: do not rely on the estimate, and compare with "
        "--method cross-entropy."
    )
    return [*lines, f"{text}. {verdict}"]


def _collected(evidence: Evidence) -> list[str]:
    collected = evidence.collected
    if collected is None:
        return []
    n = len(evidence.split.train)
    lines = [
        f"Right labels were inferred for {len(collected):,} of {n:,} training examples, those with "
        f"a probability above {collected.threshold:g}. They are right as far as these "
        "probabilities are calibrated and rho_max is not below the true bound on the noise."
    ]
    thin = np.flatnonzero(collected.coverage < FEW)
    if len(thin):
        names = [f"{evidence.classes[i]} ({collected.coverage[i]})" for i in thin[:SHOWN]]
        more = f" and {len(thin) - SHOWN} more" if len(thin) > SHOWN else ""
        lines.append(
            f"Few or none were inferred for: {', '.join(names)}{more}. What is said of how labels "
            "of these classes go wrong is little more than a guess."
        )
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
