"""BLTM+: Algorithm 1 with images that are changed at random for the classifier.

The steps are those of BLTM-V. Warm-up, collection and transition network look at the images as they
are, for the noise belongs to these. The classifier sees each of them moved and mirrored, so it does
not learn its labels by heart, and each round goes on with the classifier of the round before:
training adds up over the rounds without a pass more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from bltm.methods.bltm.estimator import BLTMClassifier
from bltm.methods.bltm.presets import PLUS_PRESETS, Recipe


@dataclass(eq=False, repr=False, kw_only=True)
class BLTMPlusClassifier(BLTMClassifier):
    """BLTM-V with augmentation: more accurate on images, to be compared with its like.

    Parameters
    ----------
    augment
        "auto" is "crop-flip" for images and none for anything else. Where mirrored images are
        wrong, as for digits and letters, "crop" is right.
    revision, rho_max, collector, posterior, rounds, folds
        As for :class:`BLTMClassifier`.
    net, preset, epochs, batch_size, lr, weights, validation_fraction, classes, image_size
        As for every method; see :class:`NoisyLabelClassifier`, also for the rest.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BLTMPlusClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    presets: ClassVar[Mapping[str, Recipe]] = PLUS_PRESETS

    augment: str = "auto"
