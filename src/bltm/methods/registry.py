"""The table of methods: what each is called, how to make one, and what it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from bltm.core.errors import InputError
from bltm.methods.apl import APLClassifier
from bltm.methods.base import NoisyLabelClassifier
from bltm.methods.bltm import BLTMClassifier, BLTMPlusClassifier
from bltm.methods.coteaching import CoTeachingClassifier
from bltm.methods.coteaching_plus import CoTeachingPlusClassifier
from bltm.methods.cross_entropy import CrossEntropyClassifier
from bltm.methods.decoupling import DecouplingClassifier
from bltm.methods.dividemix import DivideMixClassifier
from bltm.methods.dmi import DMIClassifier
from bltm.methods.forward import ForwardClassifier
from bltm.methods.gce import GCEClassifier
from bltm.methods.joint import JointClassifier
from bltm.methods.mentornet import MentorNetClassifier
from bltm.methods.ptd import PTDClassifier
from bltm.methods.reweight import ReweightClassifier
from bltm.methods.s2e import S2EClassifier
from bltm.methods.t_revision import TRevisionClassifier


@dataclass(frozen=True)
class Method:
    """One row of the table.

    Attributes
    ----------
    name
        As on the command line.
    estimator
        Makes an estimator from keyword arguments.
    family
        What kind of method it is.
    paper
        Where it is from.
    needs
        What it needs beside noisy labels: "noise rate" (estimated unless given), "T" (estimated),
        "two networks", "augmentation".
    gives
        "T" when it estimates one transition matrix, "T(x)" when one for each example, else "-".
    """

    name: str
    estimator: Callable[..., NoisyLabelClassifier]
    family: str
    paper: str
    needs: tuple[str, ...]
    gives: str


LOSS, TRAINING, REFINING = "robust loss", "sample selection", "label refinement"
CLASS, INSTANCE = "class-dependent T", "instance-dependent T"
RATE, PAIR, T = "noise rate", "two networks", "T"

_ROWS = (
    Method("cross-entropy", CrossEntropyClassifier, "baseline", "-", (), "-"),
    Method("gce", GCEClassifier, LOSS, "Zhang and Sabuncu, NeurIPS 2018", (), "-"),
    Method("apl", APLClassifier, LOSS, "Ma et al., ICML 2020", (), "-"),
    Method(
        "decoupling",
        DecouplingClassifier,
        TRAINING,
        "Malach and Shalev-Shwartz, NeurIPS 2017",
        (PAIR,),
        "-",
    ),
    Method("mentornet", MentorNetClassifier, TRAINING, "Jiang et al., ICML 2018", (RATE,), "-"),
    Method(
        "coteaching", CoTeachingClassifier, TRAINING, "Han et al., NeurIPS 2018", (RATE, PAIR), "-"
    ),
    Method(
        "coteaching-plus",
        CoTeachingPlusClassifier,
        TRAINING,
        "Yu et al., ICML 2019",
        (RATE, PAIR),
        "-",
    ),
    Method("joint", JointClassifier, REFINING, "Tanaka et al., CVPR 2018", (), "-"),
    Method("dmi", DMIClassifier, LOSS, "Xu et al., NeurIPS 2019", (), "-"),
    Method("forward", ForwardClassifier, CLASS, "Patrini et al., CVPR 2017", (T,), "T"),
    Method("reweight", ReweightClassifier, CLASS, "Liu and Tao, TPAMI 2016", (T,), "T"),
    Method("s2e", S2EClassifier, TRAINING, "Yao et al., ICML 2020", (PAIR,), "-"),
    Method("t-revision", TRevisionClassifier, CLASS, "Xia et al., NeurIPS 2019", (T,), "T"),
    Method("ptd", PTDClassifier, INSTANCE, "Xia et al., NeurIPS 2020", (T,), "T(x)"),
    Method(
        "ptd-v",
        partial(PTDClassifier, revision=True),
        INSTANCE,
        "Xia et al., NeurIPS 2020",
        (T,),
        "T(x)",
    ),
    Method(
        "dividemix",
        DivideMixClassifier,
        REFINING,
        "Li et al., ICLR 2020",
        (RATE, PAIR, "augmentation"),
        "-",
    ),
    Method(
        "bltm",
        partial(BLTMClassifier, revision=False),
        INSTANCE,
        "Yang et al., ICML 2022",
        (T,),
        "T(x)",
    ),
    Method("bltm-v", BLTMClassifier, INSTANCE, "Yang et al., ICML 2022", (T,), "T(x)"),
    Method("bltm+", BLTMPlusClassifier, INSTANCE, "this project", (T, "augmentation"), "T(x)"),
)

METHODS: dict[str, Method] = {method.name: method for method in _ROWS}


def make_method(name: str, **parameters: Any) -> NoisyLabelClassifier:
    """Return a new estimator of a method.

    Examples
    --------
    >>> make_method("bltm", epochs=3)
    BLTMClassifier(epochs=3, revision=False)
    """
    if name not in METHODS:
        raise InputError("method", f"unknown: {name!r}", f"Use one of {', '.join(METHODS)}.")
    try:
        return METHODS[name].estimator(**parameters)
    except TypeError as error:
        raise InputError("method", f"{name} does not take these options ({error})") from error
