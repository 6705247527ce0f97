"""BLTM and BLTM-V (Yang et al., ICML 2022): one file per step of Algorithm 1.

``warm_up`` → ``collect`` → ``learn_transition`` → ``correct`` (→ ``revise``)
"""

from bltm.methods.bltm.collect import Collector, CoveringCollector, ThresholdCollector
from bltm.methods.bltm.estimator import BLTMClassifier

__all__ = ["BLTMClassifier", "Collector", "CoveringCollector", "ThresholdCollector"]
