"""Finding wrong labels: BLTM's audit beside cleanlab's scores, with the same training passes.

Fashion-MNIST with instance-dependent noise, the compact net on both sides. BLTM is fitted with
three audit folds; cleanlab gets cross-validated probabilities of the same network, trained by
cross-entropy on as many folds as take the same number of passes, its length chosen by noisy
validation for each fold. Each row of the results is one data set; rows that are there are not made
again::

    pip install cleanlab
    python benchmarks/audit.py --rates 0.2 0.3 0.4 --seeds 0 1 2
    python benchmarks/audit.py --table

Nobody sees right labels but this script, which compares.
"""

from __future__ import annotations

import argparse
import contextlib
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from bltm import BLTMClassifier, CrossEntropyClassifier, audit
from bltm.engine.job import Job
from bltm.engine.posteriors import cross_fitted_posterior
from bltm.engine.protocol import CYCLE, LENGTHS
from harness import append_row, instance_noise, read_rows

RESULTS = Path(__file__).parent / "results" / "audit.jsonl"
OURS = ("out of sample", "in sample")
CLEANLAB = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")
FILTER = "find_label_issues"
FOLDS = 3


class _Ready(Exception):
    """Ends a fit before its first stage."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rates", type=float, nargs="+", default=[0.2, 0.3, 0.4])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--images", type=int, default=20_000, help="number of training images")
    parser.add_argument("--without-cleanlab", action="store_true", help="measure our side only")
    parser.add_argument("--table", action="store_true", help="print the table and run nothing")
    arguments = parser.parse_args()
    if not arguments.table:
        for seed in arguments.seeds:
            for rate in arguments.rates:
                run(rate, seed, arguments.images, not arguments.without_cleanlab)
    print(table(read_rows(RESULTS), arguments.images))


def run(rate: float, seed: int, images: int, with_cleanlab: bool) -> None:
    """Audit one noisy data set, except if its row is there."""
    what = {"rate": rate, "seed": seed, "images": images}
    if any(what.items() <= row.items() for row in read_rows(RESULTS)):
        return
    train, test, noise = instance_noise(rate, seed, images)
    noisy = replace(train, labels=noise.y_noisy)
    wrong = noise.y_noisy != train.labels
    started = time.perf_counter()
    model = BLTMClassifier(net="compact", audit_folds=FOLDS, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit_source(noisy)
    evidence = model.evidence_
    ours = {
        "out of sample": model.suspicion_.values,
        "in sample": audit(model, in_sample=True).p_wrong,
    }
    row = {
        **what,
        "realised_rate": float(wrong.mean()),
        "estimated_rate": model.findings_["noise_rate"],
        "accuracy": float((model.predict(test) == test.labels).mean()),
        "passes": model.findings_["passes"],
        "seconds": time.perf_counter() - started,
        "scores": {name: figures(wrong, values) for name, values in ours.items()},
    }
    if with_cleanlab:
        row |= beside(noisy, evidence.labels, wrong, seed, model.findings_["passes"])
    append_row(RESULTS, row)
    print(what, {name: round(f["average_precision"], 4) for name, f in row["scores"].items()})


def beside(
    noisy: Any, labels: NDArray[np.int64], wrong: NDArray[np.bool_], seed: int, passes: float
) -> dict[str, Any]:
    """Return cleanlab's figures on cross-validated probabilities of the same network."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    # k folds take (k - 1) times the passes of one training, all lengths together.
    folds = 1 + round(passes / sum(LENGTHS))
    found: dict[str, Any] = {}

    def cross_validate(job: Job) -> None:
        found["probs"] = cross_fitted_posterior(job, "fold", CYCLE, folds).probs
        seen = sum(outcome.examples_seen for outcome in job.bench.outcomes)
        found["passes"] = seen / len(job.split.train)
        raise _Ready

    started = time.perf_counter()
    with contextlib.suppress(_Ready):
        CrossEntropyClassifier(net="compact", random_state=seed).fit_source(
            noisy, before=cross_validate
        )
    probs = found["probs"].astype(np.float64)
    probs /= probs.sum(axis=1, keepdims=True)
    scores = {name: 1.0 - get_label_quality_scores(labels, probs, method=name) for name in CLEANLAB}
    flagged = find_label_issues(labels, probs)
    # What it flags comes first, each part in the order of the best of its scores.
    scores[FILTER] = flagged + scores["normalized_margin"] / 2
    return {
        "cleanlab": {name: figures(wrong, values) for name, values in scores.items()},
        "cleanlab_filter": {
            "flagged": int(flagged.sum()),
            "precision": float(wrong[flagged].mean()),
            "recall": float(flagged[wrong].mean()),
        },
        "cleanlab_folds": folds,
        "cleanlab_passes": found["passes"],
        "cleanlab_seconds": time.perf_counter() - started,
    }


def figures(wrong: NDArray[np.bool_], values: NDArray[Any]) -> dict[str, float]:
    """Return average precision, and precision among as many labels as there are wrong ones."""
    first = np.argsort(-values, kind="stable")[: int(wrong.sum())]
    return {
        "average_precision": float(average_precision_score(wrong, values)),
        "precision_at_errors": float(wrong[first].mean()),
    }


def table(rows: list[dict[str, Any]], images: int) -> str:
    """Return means over seeds for each rate, as Markdown."""
    rows = [row for row in rows if row["images"] == images]
    lines = [
        "| noise | audit, out of sample | audit, in sample | cleanlab's best | which | P@errors: "
        "audit | cleanlab | estimated rate | realised | seeds |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for rate in sorted({row["rate"] for row in rows}):
        found = [row for row in rows if row["rate"] == rate]
        ours = [_mean(found, "scores", name, "average_precision") for name in OURS]
        names = [name for name in (*CLEANLAB, FILTER) if all("cleanlab" in row for row in found)]
        best = max(
            names, key=lambda n: _mean(found, "cleanlab", n, "average_precision"), default=None
        )
        cells = [f"{100 * rate:g} %", *(f"{value:.3f}" for value in ours)]
        cells.append(f"{_mean(found, 'cleanlab', best, 'average_precision'):.3f}" if best else "")
        cells.append(best or "")
        cells.append(f"{_mean(found, 'scores', OURS[0], 'precision_at_errors'):.3f}")
        cells.append(f"{_mean(found, 'cleanlab', best, 'precision_at_errors'):.3f}" if best else "")
        cells += [
            f"{100 * _mean(found, name):.1f} %" for name in ("estimated_rate", "realised_rate")
        ]
        lines.append("| " + " | ".join([*cells, str(len(found))]) + " |")
    return "\n".join(lines)


def _mean(rows: list[dict[str, Any]], *keys: str) -> float:
    values = []
    for row in rows:
        value: Any = row
        for key in keys:
            value = value[key]
        values.append(value)
    return float(np.mean(values))


if __name__ == "__main__":
    main()
