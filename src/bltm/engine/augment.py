"""Random crops and flips of whole batches of images, on the device and without a Python loop."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from bltm.core.errors import InputError

Augmentation = Callable[[torch.Tensor], torch.Tensor]

PADDING = 0.125
"""Share of the side by which an image can move: 4 pixels of 32."""


def crop_flip(x: torch.Tensor, crop: bool = True, flip: bool = True) -> torch.Tensor:
    """Return each image moved by a few pixels and, every other one, mirrored.

    Draws from torch's generator, which the training loop sets for each step. What comes in from
    outside the image is zero: the mean, for normalised images.

    Parameters
    ----------
    x
        Images, shape (B, channels, height, width).
    crop, flip
        Whether to move, and whether to mirror left and right.

    Examples
    --------
    >>> crop_flip(torch.ones(2, 3, 32, 32)).shape
    torch.Size([2, 3, 32, 32])
    """
    n, _, height, width = x.shape
    rows = torch.arange(height, device=x.device).expand(n, -1)
    columns = torch.arange(width, device=x.device).expand(n, -1)
    if flip:
        mirrored = torch.rand(n, 1, device=x.device) < 0.5
        columns = torch.where(mirrored, columns.flip(1), columns)
    if crop:
        pad_y, pad_x = max(1, round(PADDING * height)), max(1, round(PADDING * width))
        x = functional.pad(x, (pad_x, pad_x, pad_y, pad_y))
        rows = rows + torch.randint(2 * pad_y + 1, (n, 1), device=x.device)
        columns = columns + torch.randint(2 * pad_x + 1, (n, 1), device=x.device)
    which = torch.arange(n, device=x.device)[:, None, None]
    # Channels last: the gather copies whole pixels, and the result has the layout of training.
    pixels = x.permute(0, 2, 3, 1)[which, rows[:, :, None], columns[:, None, :]]
    return pixels.permute(0, 3, 1, 2)


AUGMENTATIONS: dict[str, Augmentation | None] = {
    "none": None,
    "crop-flip": crop_flip,
    "crop": lambda x: crop_flip(x, flip=False),
    "flip": lambda x: crop_flip(x, crop=False),
}


def get_augmentation(name: str, input_shape: tuple[int, ...]) -> Augmentation | None:
    """Return the augmentation of a name for inputs of a shape; None leaves them as they are."""
    if name not in AUGMENTATIONS:
        raise InputError("augment", f"unknown: {name!r}", f"Use one of {', '.join(AUGMENTATIONS)}.")
    if AUGMENTATIONS[name] is not None and len(input_shape) != 3:
        raise InputError(
            "augment",
            f"'{name}' is for images, and the inputs are rows of {input_shape[0]} numbers",
            "Leave it at 'none'.",
        )
    return AUGMENTATIONS[name]
