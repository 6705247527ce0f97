"""Small problems and quick estimators for the tests of the methods."""

from typing import Any

import numpy as np

from bltm.data.toy import ToyProblem, ToySample
from bltm.methods.bltm import BLTMClassifier
from bltm.methods.cross_entropy import CrossEntropyClassifier

EASY = ToyProblem(radius=2.5)


def sample(n: int = 120, seed: int = 0) -> ToySample:
    """Points of classes that overlap a little, with noisy labels."""
    return EASY.sample(n, seed)


def quick_bltm(**parameters: Any) -> BLTMClassifier:
    """BLTM with one short round."""
    settings = {"epochs": 2, "batch_size": 32, "rounds": 1, "folds": 2, "random_state": 0}
    return BLTMClassifier(**(settings | parameters))


def quick_cross_entropy(**parameters: Any) -> CrossEntropyClassifier:
    """Cross-entropy for a few epochs."""
    return CrossEntropyClassifier(
        **({"epochs": 3, "batch_size": 32, "random_state": 0} | parameters)
    )


def same(first: np.ndarray, second: np.ndarray) -> bool:
    """Tell whether two arrays are equal byte by byte."""
    return first.dtype == second.dtype and first.tobytes() == second.tobytes()
