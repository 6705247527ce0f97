"""BLTM, BLTM-V (Yang et al., ICML 2022) and BLTM+: one file per step of Algorithm 1.

``warm_up`` → ``collect`` → ``learn_transition`` → ``correct`` (→ ``revise``)
"""

from bltm.methods.bltm.collect import Collector, CoveringCollector, ThresholdCollector
from bltm.methods.bltm.estimator import BLTMClassifier
from bltm.methods.bltm.plus import BLTMPlusClassifier

__all__ = [
    "BLTMClassifier",
    "BLTMPlusClassifier",
    "Collector",
    "CoveringCollector",
    "ThresholdCollector",
]
