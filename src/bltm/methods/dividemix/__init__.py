"""DivideMix: divide the examples by their losses, then learn from them as semi-labelled data.

One file for each half of the name: ``divide`` and ``mix``; ``estimator`` puts them together.
"""

from bltm.methods.dividemix.estimator import DivideMixClassifier

__all__ = ["DivideMixClassifier"]
