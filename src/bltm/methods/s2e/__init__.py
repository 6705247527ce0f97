"""S2E-lite: search to exploit the memorisation effect, with a small budget and noisy labels.

``schedule`` has the forget rates that can be found, ``search`` how they are found, and
``estimator`` the trials and the training.
"""

from bltm.methods.s2e.estimator import S2EClassifier

__all__ = ["S2EClassifier"]
