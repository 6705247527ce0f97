"""What an epoch of each method costs, as a multiple of one of cross-entropy.

The methods take turns within one process on the same images, and the stage that trains the
classifier is timed, validation included. Methods with a transition matrix are timed after it is
known. ``--parts`` times what PTD does for all 60,000 images between its two trainings (features,
factorisation, part matrices), in epochs of its warm-up::

    python benchmarks/method_cost.py --repeats 5
    python benchmarks/method_cost.py --parts
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from bltm.methods.registry import make_method
from harness import instance_noise, median, parser, report, start_torch, timed

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
    "dividemix": "divide_and_mix",
    "s2e": "s2e",
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
    arguments.add_argument("--parts", action="store_true", help="time the parts of PTD instead")
    options = arguments.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if options.parts:
        report("Parts of PTD, 54,000 training examples", [parts_seconds()], options.json)
        return
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
    model = make_method(name, epochs=3, random_state=0)
    model.fit_source(replace(train, labels=labels))
    taken = [line["seconds"] for line in model.history_ if line["stage"] == STAGES[name]]
    assert taken, sorted({line["stage"] for line in model.history_})
    return float(np.median(taken[1:]))


def parts_seconds() -> dict[str, Any]:
    """Fit PTD for one epoch a stage on all images, and time the parts and the epochs."""
    from bltm.methods import ptd

    times = []
    found = ptd.find_parts_transition

    def find(*arguments: Any) -> Any:
        transition = []
        times.append(timed(lambda: transition.append(found(*arguments))).wall)
        return transition[0]

    ptd.find_parts_transition = find
    train, _, noise = instance_noise(0.3, 0, 60_000)
    start_torch()
    model = make_method("ptd", epochs=1, random_state=0)
    model.fit_source(replace(train, labels=noise.y_noisy))
    epoch = next(line["seconds"] for line in model.history_ if line["stage"] == "warm_up")
    return {
        "parts, seconds": times[0],
        "epoch, seconds": epoch,
        "epochs": times[0] / epoch,
        "at most": 2.0,
    }


if __name__ == "__main__":
    main()
