"""Find the labels that are probably wrong, say why, and let a person decide.

The package is callable: ``bltm.audit(labels, pred_probs)`` is ``bltm.audit.audit(...)``. It works
on arrays and never trains.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from bltm.audit.corrections import Corrections, apply_corrections, read_corrections
from bltm.audit.examine import audit
from bltm.audit.files import write_audit
from bltm.audit.noise_bound import estimate_rho_max
from bltm.audit.records import Audit, AuditSummary
from bltm.audit.thresholds import VERDICTS, Thresholds

__all__ = [
    "VERDICTS",
    "Audit",
    "AuditSummary",
    "Corrections",
    "Thresholds",
    "apply_corrections",
    "audit",
    "estimate_rho_max",
    "read_corrections",
    "write_audit",
]


class _CallableModule(ModuleType):
    """A package whose call is its main function."""

    def __call__(self, *args: Any, **options: Any) -> Audit:
        return audit(*args, **options)


sys.modules[__name__].__class__ = _CallableModule
