"""Features that a network makes of images, for trials on embeddings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

from bltm.data.source import Source
from bltm.engine.devices import make_fabric
from bltm.engine.predict import predict
from bltm.methods.registry import make_method

EPOCHS = 12


class Problem(NamedTuple):
    """Examples and right labels, for training and for testing."""

    x: Any
    y: Any
    x_test: Any
    y_test: Any


def embed(path: Path, learned: Source, shown: Source, seed: int, epochs: int | None = None) -> None:
    """Write what the last layer of a network gets to see of images that it did not learn from.

    Parameters
    ----------
    path
        The file, an ``.npz`` of features and labels.
    learned, shown
        Images with right labels that the network learns from, and those whose features are wanted.
    seed, epochs
        Of the network's training.
    """
    estimator = make_method(
        "cross-entropy", net="compact", epochs=epochs or EPOCHS, random_state=seed
    ).fit(learned)
    network: Any = estimator.classifier_
    network.fc = nn.Identity()
    every = np.arange(len(shown))
    features = predict(network, estimator.encoder_.encode(shown), every, make_fabric())
    path.parent.mkdir(parents=True, exist_ok=True)
    # Another process, or one that was stopped, must not leave half a file.
    part = path.with_suffix(f".{os.getpid()}.npz")
    np.savez(part, features=features.numpy(), labels=np.asarray(shown.labels))
    part.replace(path)


def halves(path: Path, train: int, test: int, seed: int) -> Problem:
    """Return rows of a file for training and others for testing, standardised by the former."""
    with np.load(path) as file:
        features, labels = file["features"], file["labels"]
    x, x_test, y, y_test = train_test_split(
        features, labels, train_size=train, test_size=test, stratify=labels, random_state=seed
    )
    scaler = StandardScaler().fit(x)
    return Problem(scaler.transform(x), y, scaler.transform(x_test), y_test)
