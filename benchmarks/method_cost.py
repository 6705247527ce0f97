"""What an epoch of each method costs, as a multiple of one of cross-entropy.

The methods take turns within one process on the same images, and the stage that trains the
classifier is timed, validation included. Methods with a transition matrix are timed after it is
known. For PTD the factorisation and the fit of the parts are timed against two epochs::

    python benchmarks/method_cost.py --repeats 5
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from bltm.methods.registry import make_method
from harness import instance_noise, median, parser, report, start_torch

STAGES = {
    "cross-entropy": "cross_entropy",
    "decoupling": "decoupling",
    "coteaching": "coteaching",
    "coteaching-plus": "coteaching_plus",
    "mentornet": "mentornet",
    "forward": "correct",
    "reweight": "reweight",
    "t-revision": "revise",
    "ptd": "reweight",
    "bltm": "round-1/correct",
    "dividemix": "divide",
}
TARGETS = {
    "decoupling": 2.15,
    "coteaching": 2.15,
    "coteaching-plus": 2.15,
    "forward": 1.10,
    "reweight": 1.10,
    "t-revision": 1.10,
    "ptd": 1.10,
    "bltm": 1.10,
}


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--images", type=int, default=10_000)
    arguments.add_argument("--methods", nargs="+", default=list(STAGES))
    options = arguments.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    train, _, noise = instance_noise(0.3, 0, options.images)
    start_torch()
    seconds: dict[str, list[float]] = {name: [] for name in options.methods}
    for _ in range(options.repeats):
        for name in options.methods:
            seconds[name].append(epoch_seconds(name, train, noise.y_noisy))
    plain = seconds["cross-entropy"]
    rows = []
    for name, values in seconds.items():
        ratio = median([one / other for one, other in zip(values, plain, strict=True)])
        rows.append(
            {
                "method": name,
                "seconds an epoch": median(values),
                "of cross-entropy": ratio,
                "at most": TARGETS.get(name),
            }
        )
    report("Cost of an epoch", rows, options.json)


def epoch_seconds(name: str, train: Any, labels: Any) -> float:
    """Fit for three epochs a stage and return the median of the classifier's later two."""
    from dataclasses import replace

    model = make_method(name, epochs=3, random_state=0)
    model.fit_source(replace(train, labels=labels))
    taken = [line["seconds"] for line in model.history_ if line["stage"] == STAGES[name]]
    assert taken, sorted({line["stage"] for line in model.history_})
    return float(np.median(taken[1:]))


if __name__ == "__main__":
    main()
