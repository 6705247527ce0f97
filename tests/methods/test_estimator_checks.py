"""Scikit-learn's own checks, on estimators with default arguments and without exceptions."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from bltm.methods.bltm import BLTMClassifier
from bltm.methods.cross_entropy import CrossEntropyClassifier


@pytest.mark.filterwarnings("ignore::bltm.core.errors.CollapseWarning")
@pytest.mark.filterwarnings("ignore::bltm.core.errors.DataQualityWarning")
@parametrize_with_checks([CrossEntropyClassifier(), BLTMClassifier()])
def test_the_estimator_passes_a_check_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)
