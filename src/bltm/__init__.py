"""Learn from labels that are partly wrong.

The package implements Yang et al., "Estimating Instance-dependent Bayes-label Transition Matrix
using a Deep Neural Network" (ICML 2022). Names are imported on first use, so that ``import bltm``
and ``bltm --help`` stay fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_EXPORTS = {
    "APLClassifier": "bltm.methods.apl",
    "BLTMClassifier": "bltm.methods.bltm",
    "BLTMPlusClassifier": "bltm.methods.bltm",
    "CoTeachingClassifier": "bltm.methods.coteaching",
    "CoTeachingPlusClassifier": "bltm.methods.coteaching_plus",
    "CrossEntropyClassifier": "bltm.methods.cross_entropy",
    "DMIClassifier": "bltm.methods.dmi",
    "DecouplingClassifier": "bltm.methods.decoupling",
    "DivideMixClassifier": "bltm.methods.dividemix",
    "ForwardClassifier": "bltm.methods.forward",
    "GCEClassifier": "bltm.methods.gce",
    "JointClassifier": "bltm.methods.joint",
    "MentorNetClassifier": "bltm.methods.mentornet",
    "PTDClassifier": "bltm.methods.ptd",
    "ReweightClassifier": "bltm.methods.reweight",
    "S2EClassifier": "bltm.methods.s2e",
    "TRevisionClassifier": "bltm.methods.t_revision",
    "audit": "bltm.audit",
    "load": "bltm.methods.persistence",
    "make_method": "bltm.methods.registry",
}
__all__ = [
    "APLClassifier",
    "BLTMClassifier",
    "BLTMPlusClassifier",
    "CoTeachingClassifier",
    "CoTeachingPlusClassifier",
    "CrossEntropyClassifier",
    "DMIClassifier",
    "DecouplingClassifier",
    "DivideMixClassifier",
    "ForwardClassifier",
    "GCEClassifier",
    "JointClassifier",
    "MentorNetClassifier",
    "PTDClassifier",
    "ReweightClassifier",
    "S2EClassifier",
    "TRevisionClassifier",
    "__version__",
    "audit",
    "load",
    "make_method",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'bltm' has no attribute {name!r}")
    if name == "audit":  # a package that can be called
        return import_module("bltm.audit")
    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
