"""What methods and data sets are called in tables and figures, in which order and company.

A literal table: the registry of methods knows more, but importing it means importing torch.
"""

from __future__ import annotations

import re

from bltm.benchmark.spec import CEILING, FLOOR

OURS = "bltm-v"
"""The method that others are tested against."""

BASELINE, LOSS = "baseline", "robust loss"
SELECTION, REFINING = "sample selection", "label refinement"
CLASS, INSTANCE = "class-dependent T", "instance-dependent T"
FAMILIES = (LOSS, SELECTION, REFINING, CLASS, INSTANCE)

METHODS = {
    "cross-entropy": ("CE", BASELINE),
    "gce": ("GCE", LOSS),
    "apl": ("APL", LOSS),
    "decoupling": ("Decoupling", SELECTION),
    "mentornet": ("MentorNet", SELECTION),
    "coteaching": ("Co-teaching", SELECTION),
    "coteaching-plus": ("Co-teaching+", SELECTION),
    "joint": ("Joint", REFINING),
    "dmi": ("DMI", LOSS),
    "forward": ("Forward", CLASS),
    "reweight": ("Reweight", CLASS),
    "s2e": ("S2E", SELECTION),
    "t-revision": ("T-Revision", CLASS),
    "ptd": ("PTD", INSTANCE),
    "ptd-v": ("PTD-V", INSTANCE),
    "dividemix": ("DivideMix", REFINING),
    "bltm": ("BLTM", INSTANCE),
    "bltm-v": ("BLTM-V", INSTANCE),
    "bltm+": ("BLTM+", INSTANCE),
}
"""Name and family of each method, in the paper's order; our own come last."""

COLLECTION = "collection"
"""The variant that ends with its collected examples: its classifier is none to be compared."""

VARIANTS = {
    "collection": "Collection",
    "collected-only": "Collected examples only",
    "relabelled": "Relabelled",
    "deviation/base": "BLTM, paper at CPU size",
    "deviation/base-v": "BLTM-V, paper at CPU size",
    "deviation/step-per-epoch": "one step per epoch",
    "deviation/transition-5-epochs": "T(x) for 5 epochs",
    "deviation/column-normalised": "columns normalised",
    "deviation/threshold-0.55": "threshold 0.55",
    "deviation/threshold-0.8": "threshold 0.8",
    "deviation/classifier-5e-7": "classifier at 5e-7",
    "deviation/classifier-5e-7-random": "classifier at 5e-7, from random",
    "oracle-class": "Forward, true T",
    "oracle-instance": "Forward, true T(x)",
}
"""Titles of variants, in the order of tables."""

BOUNDS, COMPARED, PROPOSED = "bounds", "compared methods", "proposed methods"
ABLATIONS, DEVIATIONS, OTHERS = "without a transition", "deviations", "others"
ORACLES = "oracles (told the truth)"
SECTIONS = (BOUNDS, COMPARED, PROPOSED, ABLATIONS, DEVIATIONS, OTHERS, ORACLES)

_DATA = {
    "digits": "Digits",
    "toy": "Toy",
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "svhn": "SVHN",
    "svhn-extra": "SVHN with extra images",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "cifar100n": "CIFAR-100N",
    "clothing1m": "Clothing1M",
}


def method_name(method: str) -> str:
    """Return what a method is called in the paper, or the title of a variant.

    Examples
    --------
    >>> method_name("coteaching-plus"), method_name("clean"), method_name("oracle-class")
    ('Co-teaching+', 'CE on the right labels', 'Forward, true T')
    """
    if method == CEILING:
        return "CE on the right labels"
    return METHODS[method][0] if method in METHODS else VARIANTS.get(method, method)


def family(method: str) -> str | None:
    """Return the family of a method, or None for bounds and variants."""
    return METHODS[method][1] if method in METHODS else None


def section(method: str) -> str:
    """Return which part of a table a method belongs to.

    Examples
    --------
    >>> section("clean"), section("gce"), section("bltm"), section("oracle-class")
    ('bounds', 'compared methods', 'proposed methods', 'oracles (told the truth)')
    """
    if method in (CEILING, FLOOR):
        return BOUNDS
    if method in ("bltm", "bltm-v", "bltm+"):
        return PROPOSED
    if method in METHODS:
        return COMPARED
    if method in (COLLECTION, "collected-only", "relabelled"):
        return ABLATIONS
    prefix = re.split("[-/]", method)[0]
    return {"deviation": DEVIATIONS, "oracle": ORACLES}.get(prefix, OTHERS)


def order(method: str) -> tuple[int, int, str]:
    """Return a key that sorts methods into the paper's order, section by section."""
    known = [CEILING, *METHODS, *VARIANTS]
    position = known.index(method) if method in known else len(known)
    return SECTIONS.index(section(method)), position, method


def data_name(data: str) -> str:
    """Return a data set's name as it is written.

    Examples
    --------
    >>> data_name("cifar10"), data_name("cifar10n-worse"), data_name("mine")
    ('CIFAR-10', 'CIFAR-10N (worse)', 'mine')
    """
    if data.startswith("cifar10n-"):
        return f"CIFAR-10N ({data.removeprefix('cifar10n-')})"
    return _DATA.get(data, data)


def percent(share: float) -> str:
    """Return a share in percent, with no more digits than it has.

    Examples
    --------
    >>> percent(0.3), percent(0.125)
    ('30 %', '12.5 %')
    """
    return f"{100 * share:.4g} %"
