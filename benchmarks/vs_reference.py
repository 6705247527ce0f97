"""The whole of Algorithm 1: ours against the way the authors' code does it (``reference.py``).

Same images, networks, batch size, epochs and steps, revision on, one epoch selected on the same
amount of noisy validation data. The two sides run as processes of their own, so that the allocator
of one is not that of the other, and alternate. Imports and reading the data set are not timed.

The epochs are the paper's 5, 5 and 50, or in their proportion. With ``--ladder`` the reference also
gives up its habits one after the other, which tells what each of them costs.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness import Child, median, noisy_fashion, parser, report, run_child, start_torch, timed

HERE = Path(__file__).parent
TARGETS = {"compact": 2.5, "resnet18": 2.0}
IMAGES = {"compact": 10_000, "resnet18": 143}
EPOCHS = {"compact": (1, 1, 10), "resnet18": (5, 5, 50)}
STAGES = {"warm_up": "warm_up", "transition": "round-1/transition", "revise": "round-1/revise"}


@dataclass(frozen=True)
class MostConfident:
    """Collects a fixed share, so that both sides make the same number of steps."""

    share: float
    name: str = "most confident"
    out_of_sample: bool = False

    def __call__(self, probs: Any, threshold: float) -> tuple[Any, Any]:
        """Return positions and Bayes labels of the rows with the largest posteriors."""
        order = (-probs.max(axis=1)).argsort(kind="stable")
        positions = order[: round(self.share * len(probs))]
        return positions, probs[positions].argmax(axis=1)


def run_ours(options: Namespace) -> None:
    """Run our side in this process and print its figures."""
    from bltm import BLTMClassifier
    from bltm.methods.bltm.presets import PAPER, PRESETS, RHO_MAX
    from reference import SHARE

    warm_up, transition, classifier = options.epochs
    PRESETS["benchmark"] = replace(
        PAPER,
        warm_up=replace(PAPER.warm_up, epochs=warm_up),
        transition=replace(PAPER.transition, epochs=transition),
        revision=replace(PAPER.revision, epochs=classifier),
    )
    RHO_MAX["benchmark"] = RHO_MAX["paper"]
    model = BLTMClassifier(
        options.net,
        preset="benchmark",
        collector=MostConfident(SHARE),
        device="cpu",
        precision=options.precision,
        random_state=0,
    )
    source = noisy_fashion(options.images)
    start_torch()
    taken = timed(lambda: model.fit(source))
    records = {
        name: [record for record in model.history_ if record["stage"] == stage]
        for name, stage in STAGES.items()
    }
    train = model.findings_["training_examples"]
    seen = {name: round(SHARE * train) if name == "transition" else train for name in STAGES}
    result = {
        "seconds": taken.wall,
        "cpu_seconds": taken.cpu,
        "stages": {name: sum(r["seconds"] for r in lines) for name, lines in records.items()},
        "losses": {name: lines[-1]["loss"] for name, lines in records.items()},
        "steps": {name: len(lines) * -(-seen[name] // 128) for name, lines in records.items()},
    }
    print(json.dumps(result))


def child(script: str, net: str, options: Namespace, *more: str) -> Child:
    """Run one side once."""
    epochs = options.epochs or EPOCHS[net]
    images = options.images or IMAGES[net]
    arguments = ["--net", net, "--images", str(images), "--epochs", *map(str, epochs)]
    # So few examples leave classes uncovered, and our side would say so each time.
    return run_child([str(HERE / script), *arguments, *more], {"PYTHONWARNINGS": "ignore"})


def reference_workers(net: str, options: Namespace) -> int:
    """Return the number of data loader processes with which the reference is faster here."""
    runs = {
        workers: child("reference.py", net, options, "--workers", str(workers))
        for workers in options.workers
    }
    for workers, run in runs.items():
        print(f"{net}: reference with {workers} workers {run.result['seconds']:.1f} s", flush=True)
    return min(runs, key=lambda workers: float(runs[workers].result["seconds"]))


def row(name: str, runs: list[Child], **more: Any) -> dict[str, Any]:
    """Return a row of medians over the runs of one side."""
    stages = [run.result["stages"] for run in runs]
    return {
        "side": name,
        "seconds": median([run.result["seconds"] for run in runs]),
        **{f"{stage} s": median([s[stage] for s in stages]) for stage in STAGES},
        "CPU s": median([run.result["cpu_seconds"] for run in runs]),
        "peak MB": round(max(run.peak_bytes for run in runs) / 1e6),
        "steps": "+".join(str(runs[-1].result["steps"][stage]) for stage in STAGES),
        "losses": " ".join(f"{runs[-1].result['losses'][stage]:.3f}" for stage in STAGES),
        **more,
    }


def ratios(slow: list[Child], fast: list[Child]) -> dict[str, float]:
    """Return how many times longer one side takes, pair by pair: on the clock and in CPU time."""

    def of(key: str) -> float:
        return median([a.result[key] / b.result[key] for a, b in zip(slow, fast, strict=True)])

    return {"ratio": of("seconds"), "CPU ratio": of("cpu_seconds")}


def compare(net: str, options: Namespace) -> list[dict[str, Any]]:
    """Run both sides alternately; return a row for each."""
    workers = options.workers[0] if len(options.workers) == 1 else reference_workers(net, options)
    ours, theirs = [], []
    ours_arguments = ["--ours", "--precision", options.precision]
    for _ in range(options.repeats):
        theirs.append(child("reference.py", net, options, "--workers", str(workers)))
        ours.append(child("vs_reference.py", net, options, *ours_arguments))
    return [
        row(f"{net}: reference, {workers} workers", theirs),
        row(f"{net}: ours, {options.precision}", ours, **ratios(theirs, ours), target=TARGETS[net]),
    ]


def ladder(net: str, options: Namespace) -> list[dict[str, Any]]:
    """Return a row for the reference with the first k habits given up, for every k."""
    from reference import IMPROVEMENTS

    names = list(IMPROVEMENTS)
    rungs: list[list[Child]] = [[] for _ in range(len(names) + 1)]
    for _ in range(options.repeats):
        for count, runs in enumerate(rungs):
            improve = ["--improve", *names[:count]] if count else []
            runs.append(child("reference.py", net, options, *improve))
    rows = [row(f"{net}: reference, 0 workers", rungs[0])]
    for name, runs, before in zip(names, rungs[1:], rungs[:-1], strict=True):
        rows.append(row(f"+ {IMPROVEMENTS[name]}", runs, **ratios(before, runs)))
    return rows


def main() -> None:
    arguments = parser(__doc__)
    arguments.set_defaults(repeats=3)
    arguments.add_argument("--nets", nargs="+", default=["compact", "resnet18"])
    arguments.add_argument("--images", type=int, help="instead of the number fit for each net")
    arguments.add_argument("--epochs", type=int, nargs=3, help="of the three stages")
    arguments.add_argument(
        "--workers", type=int, nargs="+", default=[0, 2], help="the reference takes the faster"
    )
    arguments.add_argument("--precision", default="32-true", help="of our side")
    arguments.add_argument("--ladder", action="store_true", help="what each habit costs")
    arguments.add_argument("--ours", action="store_true", help="run our side once in this process")
    arguments.add_argument("--net", help="for --ours")
    options = arguments.parse_args()
    if options.ours:
        run_ours(options)
        return
    rows = []
    for net in options.nets:
        rows += (ladder if options.ladder else compare)(net, options)
    title = "What each habit costs" if options.ladder else "Algorithm 1: reference against ours"
    report(f"{title} (ratio of wall-clock time)", rows, options.json)


if __name__ == "__main__":
    sys.exit(main())
