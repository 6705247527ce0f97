"""The table of variants: what each is called, how to make one, and what it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from bltm.benchmark.variants.ablation import CollectedOnly, CollectionOnly
from bltm.benchmark.variants.deviations import (
    FIVE_EPOCHS,
    FROZEN,
    ColumnNormalised,
    OneStepPerEpoch,
    RandomStart,
    ScaledPaper,
)
from bltm.benchmark.variants.oracles import InstanceOracle, class_oracle
from bltm.benchmark.variants.truth import Truth
from bltm.core.errors import InputError
from bltm.methods.base import NoisyLabelClassifier


@dataclass(frozen=True)
class Variant:
    """One row of the table.

    Attributes
    ----------
    name
        As in a grid.
    title
        As in a table of results.
    make
        Makes an estimator from keyword arguments; one of them is ``truth`` where it is needed.
    description
        What it is, in one sentence.
    needs_truth
        Whether it is given what only the benchmark knows.
    """

    name: str
    title: str
    make: Callable[..., NoisyLabelClassifier]
    description: str
    needs_truth: bool = False


_ROWS = (
    Variant(
        "oracle-class",
        "Forward, true T",
        class_oracle,
        "Forward correction with the true class-dependent matrix.",
        needs_truth=True,
    ),
    Variant(
        "oracle-instance",
        "Forward, true T(x)",
        InstanceOracle,
        "Forward correction with the true matrix of each example.",
        needs_truth=True,
    ),
    Variant(
        "collection",
        "Collection",
        CollectionOnly,
        "BLTM up to its collected examples; the classifier is what the warm-up leaves.",
    ),
    Variant(
        "collected-only",
        "Collected examples only",
        CollectedOnly,
        "Cross-entropy on the collected examples with their inferred labels.",
    ),
    Variant(
        "relabelled",
        "Relabelled",
        partial(CollectedOnly, relabel=True),
        "Cross-entropy on the whole training set as the classifier of collected-only labels it.",
    ),
    Variant(
        "deviation/base",
        "BLTM, paper at CPU size",
        ScaledPaper,
        "The paper's algorithm with networks that learn: threshold 0.65, a classifier that moves "
        "from the warmed-up weights, a transition network trained to its end.",
    ),
    Variant(
        "deviation/base-v",
        "BLTM-V, paper at CPU size",
        partial(ScaledPaper, revision=True),
        "The base with revision, its rows normalised.",
    ),
    Variant(
        "deviation/step-per-epoch",
        "one step per epoch",
        OneStepPerEpoch,
        "The base with a transition network that learns from the last batch of an epoch only.",
    ),
    Variant(
        "deviation/transition-5-epochs",
        "T(x) for 5 epochs",
        partial(ScaledPaper, recipe=FIVE_EPOCHS),
        "The base with the paper's schedule of the transition network: SGD at 0.01, five epochs.",
    ),
    Variant(
        "deviation/column-normalised",
        "columns normalised",
        ColumnNormalised,
        "The base with revision, its columns normalised instead of its rows.",
    ),
    Variant(
        "deviation/threshold-0.55",
        "threshold 0.55",
        partial(ScaledPaper, rho_max=0.1),
        "The base with rho_max 0.1.",
    ),
    Variant(
        "deviation/threshold-0.8",
        "threshold 0.8",
        partial(ScaledPaper, rho_max=0.6),
        "The base with rho_max 0.6.",
    ),
    Variant(
        "deviation/classifier-5e-7",
        "classifier at 5e-7",
        partial(ScaledPaper, recipe=FROZEN),
        "The base with a classifier at the paper's learning rate.",
    ),
    Variant(
        "deviation/classifier-5e-7-random",
        "classifier at 5e-7, from random",
        partial(RandomStart, recipe=FROZEN),
        "The classifier at the paper's learning rate, started from random weights.",
    ),
)

VARIANTS: dict[str, Variant] = {variant.name: variant for variant in _ROWS}


def make_variant(name: str, truth: Truth | None = None, **parameters: Any) -> NoisyLabelClassifier:
    """Return a new estimator of a variant.

    Parameters
    ----------
    name
        A key of ``VARIANTS``.
    truth
        What only the benchmark knows; kept from all but the variants that need it.
    **parameters
        Of the estimator.

    Examples
    --------
    >>> make_variant("collected-only", rho_max=0.5)
    CollectedOnly(rho_max=0.5)
    """
    if name not in VARIANTS:
        raise InputError("variant", f"unknown: {name!r}", f"Use one of {', '.join(VARIANTS)}.")
    variant = VARIANTS[name]
    if variant.needs_truth:
        if truth is None:
            raise InputError("truth", f"is needed by '{name}' and was not given")
        parameters = {"truth": truth, **parameters}
    try:
        return variant.make(**parameters)
    except TypeError as error:
        raise InputError("variant", f"{name} does not take these options ({error})") from error
