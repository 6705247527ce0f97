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
    "BLTMClassifier": "bltm.methods.bltm",
    "CrossEntropyClassifier": "bltm.methods.cross_entropy",
    "load": "bltm.methods.persistence",
}
__all__ = ["BLTMClassifier", "CrossEntropyClassifier", "__version__", "load"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'bltm' has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
