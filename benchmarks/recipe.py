"""The trials behind the default recipe of BLTM, on development data.

Bounds, class-dependent matrices, rounds on each of them, and what else was tried; see
``docs/recipe.md``. Each row of the results is one variant in one development cell, with its recipe.
Rows that are there are not run again, so the script can be stopped and started, and several
processes can take different cells::

    python benchmarks/recipe.py
    python benchmarks/recipe.py --cells cifar10:rater:0.4:100 --variants clean cross-entropy
    python benchmarks/recipe.py --table

Variants share trained stages through the folder ``--work``, and ``seconds`` is what a variant took
beyond the stages that were there. The folder does not know of changes to the code: empty it then.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from bltm.core.errors import CoverageWarning
from bltm.core.posterior import right_label_posterior
from bltm.engine.augment import Augmentation, crop_flip
from bltm.engine.batches import Batch
from bltm.engine.correction import fit_corrected, forward_step
from bltm.engine.posteriors import network_probs
from bltm.engine.stage import Modules
from bltm.engine.supervised import fit_cross_entropy, fit_network
from bltm.engine.transition_model import ClassTransition, column_of_given_label
from bltm.losses import soft_cross_entropy
from bltm.methods.bltm.learn_transition import learn_transition
from bltm.methods.bltm.presets import DEFAULT
from bltm.nets.ensemble import together
from development import ESTIMATED, LEAST, Bound, Cell, Development, Probs, Trials, scaled
from harness import append_row, read_rows

RESULTS = Path(__file__).parent / "results" / "recipe.jsonl"
WORK = Path(tempfile.gettempdir()) / "bltm-recipe"
CELLS = [
    *(Cell("cifar10", "rater", 0.4, seed) for seed in (100, 101)),
    Cell("cifar10", "instance", 0.2, 100),
    *(Cell("cifar10", "instance", 0.4, seed) for seed in (100, 101)),
    *(Cell("fashion-mnist", "instance", 0.3, seed) for seed in (100, 101)),
    *(Cell("fashion-mnist", "instance", 0.5, seed) for seed in (100, 101, 102)),
]
IMAGES = 10_000
BASES, ROUNDS = ("confident", "surest", "em"), (1, 2, 3)
SCALES, SHARES, PENALTIES = (0.7, 0.85, 1.2, 1.4), (0.1, 0.2, 0.4), ((1e-3, 1e-2), (1e-3, 1e-3))
# Thresholds that rounds collect at; the default has 0.65 and 0.8.
BOUNDS: dict[int, tuple[Bound, ...]] = {1: (0.5, 0.65, 0.8, ESTIMATED), 2: (0.6, 0.8, 0.95)}
ENSEMBLE, AVERAGED_EPOCHS = 3, (1, 2, 4)
TITLES = {
    "accuracies": ("accuracy on the development part, %", 100, ".1f"),
    "posterior_accuracy": ("likeliest noisy label is the right one, %", 100, ".1f"),
    "class_error": ("ℓ1 of the class-dependent matrix", 1, ".3f"),
    "row_error": ("ℓ1 of T*(x)", 1, ".3f"),
    "average_precision": ("average precision, f·T", 1, ".3f"),
    "average_precision_alone": ("average precision, f alone", 1, ".3f"),
    "average_precision_tempered": ("average precision, f·T^⅓", 1, ".3f"),
    "average_precision_in_sample": ("average precision, f·T, in sample", 1, ".3f"),
    "average_precision_alone_in_sample": ("average precision, f alone, in sample", 1, ".3f"),
    "average_precision_tempered_in_sample": ("average precision, f·T^⅓, in sample", 1, ".3f"),
    "noise_rate": ("estimated noise, %", 100, ".1f"),
    "noisy_nll": ("nats per held-out noisy label", 1, ".3f"),
    "collected": ("collected examples", 1, ",.0f"),
    "purity": ("right among the collected, %", 100, ".1f"),
    "thinnest": ("collected of the rarest class", 1, ",.0f"),
}
Figures = dict[str, Any]


def judged(trials: Trials, classifiers: list[nn.Module], columns: torch.Tensor | None) -> Figures:
    """Return the figures of classifiers that differ in their start; the first judges the labels.

    It has seen them, and what it makes of them has names of its own.
    """
    probs = network_probs(trials.job, classifiers[0])
    found = trials.dev.judge(probs, None if columns is None else columns.exp().numpy())
    nll = found.pop("noisy_nll")
    return {
        "accuracies": [trials.dev.accuracy(classifier) for classifier in classifiers],
        **{f"{name}_in_sample": value for name, value in found.items()},
        "noisy_nll": nll,
    }


def taught(trials: Trials, stage: str, targets: Probs) -> nn.Module:
    """Return a classifier that learned soft labels."""

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        return soft_cross_entropy(modules["classifier"](batch.x), batch.extras["targets"])

    extras = {"targets": torch.from_numpy(targets)}
    return fit_network(trials.job, stage, trials.recipe.classifier, step, extras=extras)


def clean(trials: Trials) -> Figures:
    """Train by cross-entropy on the right labels."""
    job = replace(trials.job, data=replace(trials.job.data, labels=trials.dev.right))
    network = fit_cross_entropy(job, "clean", trials.recipe.classifier)
    return {"accuracies": [trials.dev.accuracy(network)]}


def plain(trials: Trials) -> Figures:
    """Train by cross-entropy on the noisy labels."""
    schedule = trials.recipe.classifier
    nets = [fit_cross_entropy(trials.job, f"cross-entropy-{i}", schedule) for i in range(3)]
    return judged(trials, nets, None)


def true_matrix(trials: Trials, scale: float = 1.0) -> Figures:
    """Correct by the true class-dependent matrix, its flips scaled by a factor."""
    identity = np.eye(trials.job.data.n_classes)
    matrix = np.maximum(identity + scale * (trials.dev.noise.T - identity), LEAST)
    matrix /= matrix.sum(axis=1, keepdims=True)
    T = ClassTransition(torch.from_numpy(matrix)).requires_grad_(False).eval()
    stages = [f"true-x{scale:g}-{i}" for i in range(3 if scale == 1.0 else 2)]
    schedule = trials.recipe.classifier
    fits = [fit_corrected(trials.job, stage, schedule, T, None) for stage in stages]
    figures = judged(trials, [fit.classifier for fit in fits], fits[0].columns)
    return figures | {"class_error": trials.dev.class_error(matrix)}


def class_matrix(trials: Trials, base: str | float) -> Figures:
    """Count a class-dependent matrix from the noisy posteriors, by name or by a share."""
    if isinstance(base, str):
        matrix = trials.matrix(base, 1)
    else:
        matrix = trials.surest(trials.posterior(), base).T
    return {"class_error": trials.dev.class_error(matrix)}


def bltm_round(trials: Trials, base: str, number: int) -> Figures:
    """Make BLTM up to a round, on class-dependent matrices of one kind."""
    fits = [trials.correct(base, number, start) for start in range(2 if number == 1 else 1)]
    columns, unseen = fits[0].columns, trials.out_of_sample(base, number).probs
    return {
        **trials.dev.judge(unseen, columns.exp().numpy()),
        **judged(trials, [fit.classifier for fit in fits], columns),
        "row_error": trials.dev.row_error(fits[0].transition),
        "class_error": trials.dev.class_error(trials.matrix(base, number)),
    }


def longer(trials: Trials, base: str) -> Figures:
    """Train the classifier of round 2 for twice as long."""
    fit = trials.correct(base, 2, 0, scaled(trials.recipe.classifier, 2.0))
    return judged(trials, [fit.classifier], fit.columns)


def penalty(trials: Trials, weights: tuple[float, float]) -> Figures:
    """Train T*(x) of round 2 with another penalty."""
    return {"row_error": trials.dev.row_error(trials.transition("surest", 2, weights))}


def collected_above(trials: Trials, number: int, bound: Bound) -> Figures:
    """Collect at another threshold in a round, or at one that is estimated for each class."""
    job, recipe, stage = trials.job, trials.recipe, f"surest-{number}-above-{bound}"
    collected = trials.collected("surest", number, bound)
    matrix = trials.matrix("surest", number)
    transition = learn_transition(job, recipe, f"{stage}/transition", collected, matrix, None)
    fit = fit_corrected(job, f"{stage}/correct", recipe.classifier, transition, None)
    right = collected.bayes_labels == trials.dev.right[collected.indices]
    return judged(trials, [fit.classifier], fit.columns) | {
        "row_error": trials.dev.row_error(transition),
        "collected": len(collected),
        "purity": float(right.mean()),
        "thinnest": int(collected.coverage.min()),
    }


def soft_labels(trials: Trials, with_label: bool) -> Figures:
    """Train round 2's classifier on what others make of examples they have not seen."""
    columns = column_of_given_label(trials.job, trials.transition("surest", 2))
    targets = trials.out_of_sample("surest", 2).probs
    if with_label:
        targets, _ = right_label_posterior(targets, columns.exp().numpy())
    stage = f"soft-{'posteriors' if with_label else 'predictions'}"
    return judged(trials, [taught(trials, stage, targets)], columns)


def ensemble(trials: Trials, student: bool) -> Figures:
    """Average the classifiers of round 2 from several starts, or teach one what they say."""
    fits = [trials.correct("surest", 2, start) for start in range(ENSEMBLE)]
    if student:
        probs = np.stack([network_probs(trials.job, fit.classifier) for fit in fits])
        return judged(trials, [taught(trials, "student", probs.mean(axis=0))], fits[0].columns)
    held_out = [trials.dev.probs(fit.classifier) for fit in fits]
    return {
        "accuracies": [trials.dev.accuracy(np.stack(held_out).mean(axis=0))],
        "members": [trials.dev.accuracy(own) for own in held_out],
    }


def rounds_together(trials: Trials, rounds: tuple[int, ...]) -> Figures:
    """Let the classifiers of several rounds answer as one."""
    fits = [trials.correct("surest", number) for number in rounds]
    return judged(trials, [together([fit.classifier for fit in fits])], fits[-1].columns)


def changed_images(trials: Trials, factor: float) -> Figures:
    """Train round 3's classifier on images that are moved and mirrored, for longer or not."""
    job, schedule = replace(trials.job, augment=crop_flip), scaled(trials.recipe.classifier, factor)
    transition = trials.transition("surest", 3)
    fit = fit_corrected(job, f"changed-{schedule.epochs}", schedule, transition, None)
    return judged(trials, [fit.classifier], fit.columns)


def carried_on(trials: Trials, augment: Augmentation | None) -> Figures:
    """Let the classifier go on from round to round, with the same T*(x) as without that."""
    job, previous = replace(trials.job, augment=augment), None
    accuracies = []
    for number in ROUNDS:
        stage = f"carried-on-{'plain' if augment is None else 'changed'}-{number}"
        transition = trials.transition("surest", number)
        fit = fit_corrected(job, stage, trials.recipe.classifier, transition, previous)
        previous = fit.classifier
        accuracies.append(trials.dev.accuracy(previous))
    return judged(trials, [previous], fit.columns) | {"by_round": accuracies}


def averaged(trials: Trials, epochs: int) -> Figures:
    """Average the weights of round 2's classifier at a constant rate, over some epochs."""
    job, schedule = trials.job, replace(trials.recipe.classifier, decay="constant")
    classifier = job.new_classifier("averaged")
    steps = math.ceil(len(job.split.train) / schedule.batch_size)
    averages = {
        f"average-{n}": AveragedModel(
            classifier, avg_fn=partial(running_mean, n * steps), use_buffers=True
        ).requires_grad_(False)
        for n in AVERAGED_EPOCHS
    }

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        for average in averages.values():
            average.update_parameters(classifier)
        return forward_step(modules, batch)

    columns = column_of_given_label(job, trials.transition("surest", 2))
    modules = {"classifier": classifier, **averages}
    job.train("averaged", modules, step, schedule, extras={"columns": columns})
    last = trials.dev.accuracy(classifier)
    return judged(trials, [averages[f"average-{epochs}"]], columns) | {"last_weights": last}


def running_mean(
    horizon: int, mean: torch.Tensor, new: torch.Tensor, n: torch.Tensor
) -> torch.Tensor:
    """Return the mean of up to ``horizon`` values, and an exponential one of more."""
    return mean + (new - mean) / min(int(n) + 1, horizon)


def warm_up(trials: Trials, factor: float) -> Figures:
    """Look at the noisy posteriors after a warm-up of some length."""
    posterior, train = trials.posterior(factor), trials.job.split.train
    likeliest = posterior.probs[train].argmax(axis=1)
    return {
        "class_error": trials.dev.class_error(trials.surest(posterior).T),
        "posterior_accuracy": float((likeliest == trials.dev.right[train]).mean()),
        **trials.dev.judge(posterior.probs, None),
    }


VARIANTS: dict[str, Callable[[Trials], Figures]] = {
    "clean": clean,
    "cross-entropy": plain,
    "true-matrix": true_matrix,
    **{f"true-matrix-x{scale:g}": partial(true_matrix, scale=scale) for scale in SCALES},
    "matrix-confident": partial(class_matrix, base="confident"),
    **{f"matrix-surest-{share:.0%}": partial(class_matrix, base=share) for share in SHARES},
    "matrix-surest-em": partial(class_matrix, base="em"),
    **{
        f"{base}-round-{number}": partial(bltm_round, base=base, number=number)
        for base in BASES
        for number in ROUNDS
    },
    **{f"{base}-round-2-24-epochs": partial(longer, base=base) for base in BASES[:2]},
    **{f"penalty-{a:g}-{b:g}": partial(penalty, weights=(a, b)) for a, b in PENALTIES},
    **{
        f"round-{number}-above-{bound}": partial(collected_above, number=number, bound=bound)
        for number, bounds in BOUNDS.items()
        for bound in bounds
    },
    "soft-posteriors": partial(soft_labels, with_label=True),
    "soft-predictions": partial(soft_labels, with_label=False),
    "ensemble": partial(ensemble, student=False),
    "student": partial(ensemble, student=True),
    "rounds-2-3-together": partial(rounds_together, rounds=(2, 3)),
    "rounds-1-2-3-together": partial(rounds_together, rounds=(1, 2, 3)),
    **{f"changed-images-x{factor}": partial(changed_images, factor=factor) for factor in (1, 2, 3)},
    "carried-on": partial(carried_on, augment=None),
    "carried-on-changed-images": partial(carried_on, augment=crop_flip),
    **{f"averaged-{n}-epochs": partial(averaged, epochs=n) for n in AVERAGED_EPOCHS},
    **{f"warm-up-{n}-epochs": partial(warm_up, factor=n / 12) for n in (3, 6, 12)},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--cells", nargs="+", type=Cell.parse, default=CELLS, metavar="data:noise:rate:seed"
    )
    parser.add_argument(
        "--variants",
        nargs="+",
        choices=VARIANTS,
        default=list(VARIANTS),
        metavar="NAME",
        help=", ".join(VARIANTS).replace("%", "%%"),
    )
    parser.add_argument("--work", type=Path, default=WORK, help="folder of the trained stages")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the rows")
    parser.add_argument("--table", action="store_true", help="print the tables and run nothing")
    # For trying the script out.
    parser.add_argument("--images", type=int, default=IMAGES, help=argparse.SUPPRESS)
    parser.add_argument("--epochs", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.table:
        for cell in options.cells:
            run(cell, options)
    epochs = options.epochs or DEFAULT.classifier.epochs
    rows = read_rows(options.results)
    print(tables([r for r in rows if (r["images"], r["epochs"]) == (options.images, epochs)]))


def run(cell: Cell, options: argparse.Namespace) -> None:
    """Make the variants of one cell, except those whose rows are there."""
    recipe = DEFAULT.with_overrides(options.epochs, None, None).for_normalised(IMAGES)
    # Trials are of one length, which the default chooses on images.
    recipe = replace(recipe, classifier=replace(recipe.classifier, lengths=()))
    here = {**cell._asdict(), "images": options.images, "epochs": recipe.classifier.epochs}
    done = {row["variant"] for row in read_rows(options.results) if here.items() <= row.items()}
    missing = [variant for variant in options.variants if variant not in done]
    if not missing:
        return
    directory = options.work / "-".join(map(str, here.values()))
    dev = Development.open(cell, options.images, directory, scaled(recipe.classifier, 2 / 3))
    trials = Trials(dev, recipe)
    for variant in missing:
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoverageWarning)
            figures = VARIANTS[variant](trials)
        row = {**here, "variant": variant, **figures, "seconds": time.perf_counter() - started}
        append_row(options.results, {**row, "realised_rate": dev.noise.meta["realised_rate"]})
        accuracies = ", ".join(f"{value:.1%}" for value in figures.get("accuracies", []))
        print(f"{cell}, {variant}: {accuracies} in {row['seconds']:.0f} s", flush=True)


def tables(rows: list[Figures]) -> str:
    """Return a Markdown table for each figure: variants by kinds of cells."""
    by_cell = {(Cell(*(row[k] for k in Cell._fields)), row["variant"]): row for row in rows}
    kinds: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in sorted({cell for cell, _ in by_cell}):
        kinds.setdefault(cell[:3], []).append(cell)
    names = [
        f"{data}, {noise} {rate:.0%}, seed {', '.join(str(cell.seed) for cell in cells)}"
        for (data, noise, rate), cells in kinds.items()
    ]
    parts = []
    for figure, (title, factor, form) in TITLES.items():
        lines = [f"| {title} | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
        for variant in VARIANTS:
            found = [
                [by_cell.get((cell, variant), {}) for cell in cells] for cells in kinds.values()
            ]
            shown = [_shown(cells, figure, factor, form) for cells in found]
            if any(shown):
                lines.append(f"| {variant} | " + " | ".join(shown) + " |")
        if len(lines) > 2:
            parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _shown(rows: list[Figures], figure: str, factor: float, form: str) -> str:
    """Return the mean over seeds, with the single ones in brackets where there are several."""
    values = [factor * float(np.mean(row[figure])) for row in rows if figure in row]
    if not values:
        return ""
    mean = f"{np.mean(values):{form}}"
    if len(rows) == 1:
        return mean
    single = [f"{factor * np.mean(r[figure]):{form}}" if figure in r else "–" for r in rows]
    return f"{mean} ({', '.join(single)})"


if __name__ == "__main__":
    main()
