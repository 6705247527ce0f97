"""SVHN: house numbers as seen from the street, cropped to 32x32 pixels, in colour."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bltm.data.datasets import Parts, numbered
from bltm.data.download import RemoteFile, damaged
from bltm.data.releases import FileSet, Places, Release, checked, obtain

ADDRESS = "http://ufldl.stanford.edu/housenumbers/"
SIDE, CHANNELS = 32, 3
TRAIN = RemoteFile("train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373")
TEST = RemoteFile("test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3")
EXTRA = RemoteFile("extra_32x32.mat", "a93ce644f1a588dc4d68dda5feec44a7")
SVHN = FileSet("svhn", (Release("cropped digits", (TRAIN, TEST), ADDRESS),))
SVHN_EXTRA = FileSet("svhn", (Release("all cropped digits", (TRAIN, TEST, EXTRA), ADDRESS),))


def load_svhn(places: Places) -> Parts:
    """Load the 73,257 training and 26,032 test images."""
    train, test = _read_all(SVHN, places)
    return Parts(numbered("images", *train), numbered("images", *test))


def load_svhn_extra(places: Places) -> Parts:
    """Load SVHN with its 531,131 easier images behind the training images."""
    train, test, extra = _read_all(SVHN_EXTRA, places)
    images, labels = np.concatenate([train[0], extra[0]]), np.concatenate([train[1], extra[1]])
    return Parts(numbered("images", images, labels), numbered("images", *test))


def _read_all(files: FileSet, places: Places) -> list[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    return [read_mat(path) for path in checked(obtain(files, places), places).paths]


def read_mat(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return images, shape (N, 32, 32, 3), and digits of a MATLAB file.

    It holds ``X`` of shape (32, 32, 3, N) and ``y`` of shape (N, 1), where the digit 0 is 10.
    """
    from scipy.io import loadmat

    try:
        content = loadmat(path, variable_names=["X", "y"])
    # What is raised for nonsense is not limited to any list.
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise damaged(path, str(error) or type(error).__name__) from error
    for name in ("X", "y"):
        if name not in content:
            raise damaged(path, f"it has no variable {name}")
    # MATLAB drops a last axis of length one.
    images = content["X"] if content["X"].ndim == 4 else content["X"][..., None]
    if images.dtype != np.uint8 or images.shape[:3] != (SIDE, SIDE, CHANNELS):
        raise damaged(path, f"X holds {images.dtype} of shape {images.shape}")
    labels = content["y"].reshape(-1).astype(np.int64)
    if len(labels) != images.shape[3] or (labels < 1).any() or (labels > 10).any():
        raise damaged(path, f"y does not hold {images.shape[3]} numbers from 1 to 10")
    result = np.empty((len(labels), SIDE, SIDE, CHANNELS), dtype=np.uint8)
    # Channel by channel is three times as fast as a transposition.
    for channel in range(CHANNELS):
        result[..., channel] = images[:, :, channel].transpose(2, 0, 1)
    return result, labels % 10
