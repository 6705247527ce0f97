"""Where DivideMix loses: which labels its division drops, class by class.

Fits DivideMix with and without augmentation, and cross-entropy with it, on Fashion-MNIST with
instance-dependent noise, and says for each class how many of its right labels the division keeps
and how many of its test images are recognised::

    python benchmarks/division.py --seed 0 --json division.json
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from bltm.methods.registry import make_method
from harness import instance_noise, parser, report, start_torch

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "cross-entropy": ("cross-entropy", {}),
    "cross-entropy, crop-flip": ("cross-entropy", {"augment": "crop-flip"}),
    "dividemix, none": ("dividemix", {"augment": "none"}),
    "dividemix, crop-flip": ("dividemix", {}),
}


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--images", type=int, default=10_000)
    arguments.add_argument("--rate", type=float, default=0.3)
    arguments.add_argument("--seed", type=int, default=0)
    options = arguments.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    train, test, noise = instance_noise(options.rate, options.seed, options.images)
    start_torch()
    assert train.labels is not None
    assert test.labels is not None
    right = noise.y_noisy == train.labels
    rows = []
    for title, (name, parameters) in VARIANTS.items():
        model = make_method(name, random_state=options.seed, **parameters)
        model.fit_source(replace(train, labels=noise.y_noisy))
        predicted = model.predict(test)
        kept = model.suspicion_.values < 0.5
        rows.append(
            {"variant": title, "what": "test accuracy", **percent(predicted == test.labels)}
        )
        recall = {c: predicted[test.labels == c] == c for c in model.classes_}
        rows.append({"variant": title, "what": "recognised", **percent(**named(recall))})
        kept_right = {c: kept[right & (train.labels == c)] for c in model.classes_}
        rows.append(
            {
                "variant": title,
                "what": "right labels kept",
                **percent(kept[right], **named(kept_right)),
            }
        )
        rows.append({"variant": title, "what": "wrong labels kept", **percent(kept[~right])})
        print(rows[-4:], flush=True)
    report("What is recognised and what is kept, in per cent", rows, options.json)


def named(values: dict[Any, Any]) -> dict[str, Any]:
    """Return the values with classes as names of columns."""
    return {f"class {label}": value for label, value in values.items()}


def percent(everything: Any = None, **parts: Any) -> dict[str, float]:
    """Return shares in per cent, of all and of parts."""
    shares = {} if everything is None else {"all": everything}
    return {
        name: round(100 * float(np.mean(hits)), 1) for name, hits in {**shares, **parts}.items()
    }


if __name__ == "__main__":
    main()
