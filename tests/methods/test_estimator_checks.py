"""Scikit-learn's own checks: two estimators as users get them, all others with small settings."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from bltm.methods.bltm import BLTMClassifier
from bltm.methods.cross_entropy import CrossEntropyClassifier
from bltm.methods.registry import METHODS, make_method

WHOLE = [CrossEntropyClassifier(), BLTMClassifier()]
# BLTM's rounds are checked with BLTM itself.
FEWER: dict[str, dict[str, Any]] = {"bltm+": {"rounds": 1}}
SMALL = [
    make_method(name, epochs=8, batch_size=16, **FEWER.get(name, {}))
    for name in METHODS
    if name not in ("cross-entropy", "bltm", "bltm-v")
]


@pytest.mark.filterwarnings("ignore::bltm.core.errors.CollapseWarning")
@pytest.mark.filterwarnings("ignore::bltm.core.errors.DataQualityWarning")
@parametrize_with_checks([*WHOLE, *SMALL])
def test_the_estimator_passes_a_check_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)
