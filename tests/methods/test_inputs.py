import numpy as np
import pytest

from bltm import CrossEntropyClassifier
from bltm.core.errors import InputError


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_labels_that_are_all_different_are_refused() -> None:
    X = np.random.default_rng(0).random((40, 3))
    names = np.array([f"row-{i}" for i in range(40)], dtype=object)
    with pytest.raises(InputError, match="40 different labels for 40 examples"):
        CrossEntropyClassifier().fit(X, names)


def test_a_mask_of_trusted_labels_must_fit_the_examples() -> None:
    X = np.random.default_rng(0).random((40, 3))
    with pytest.raises(InputError, match="trusted"):
        CrossEntropyClassifier().fit(
            X, np.arange(40) % 2, sample_weight=np.arange(40), trusted=[True]
        )
