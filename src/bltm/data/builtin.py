"""Data sets that need no files."""

from __future__ import annotations

import numpy as np

from bltm.core.random import stream
from bltm.data.datasets import Parts, numbered
from bltm.data.releases import Places
from bltm.data.toy import ToyProblem

DIGITS_TEST = 500
TOY_SIZE = 2_000


def load_digits(places: Places) -> Parts:
    """Load scikit-learn's digits; the split is stratified and fixed for good."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images, labels = bunch.images.astype(np.uint8), bunch.target.astype(np.int64)
    # Every n-th image of a list that goes class by class in a random order fixed for good.
    order = np.lexsort((stream(0, "digits").random(len(labels)), labels))
    is_test = np.zeros(len(labels), dtype=bool)
    is_test[order] = np.diff(np.arange(len(labels) + 1) * DIGITS_TEST // len(labels)) > 0
    everything = numbered("images", images[..., None], labels)
    return Parts(train=everything.take(~is_test), test=everything.take(is_test))


def load_toy(places: Places) -> Parts:
    """Draw the toy problem: noisy training labels, test labels from P(Y | x)."""
    train, test = (ToyProblem().sample(TOY_SIZE, seed) for seed in (0, 1))
    return Parts(
        train=numbered("array", train.x, train.y_noisy),
        test=numbered("array", test.x, test.y_clean),
        label_sets={"clean": train.y_clean, "bayes": train.y_bayes},
    )
