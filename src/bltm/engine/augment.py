"""Random crops and flips of whole batches of images, on the device and without a Python loop."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from bltm.core.errors import InputError

PADDING = 0.125
"""Share of the side by which an image can move: 4 pixels of 32."""


def crop_flip(x: torch.Tensor, crop: bool = True, flip: bool = True) -> torch.Tensor:
    """Return each image moved by a few pixels and, every other one, mirrored.

    Draws from torch's generator, which the training loop sets for each step. What comes in from
    outside the image repeats its edge, so that no bars appear that no image has.

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
    n, channels, height, width = x.shape
    rows = torch.arange(height, device=x.device).expand(n, -1)
    columns = torch.arange(width, device=x.device).expand(n, -1)
    if flip:
        mirrored = torch.rand(n, 1, device=x.device) < 0.5
        columns = torch.where(mirrored, columns.flip(1), columns)
    if crop:
        rows, columns = _moved(rows), _moved(columns)
    first = torch.arange(0, n * height * width, height * width, device=x.device)
    source = first[:, None, None] + rows[:, :, None] * width + columns[:, None, :]
    # Channels last: a selection of whole pixels, and the result has the layout of training. One
    # channel needs no second axis, and without it the selection takes a third of the time.
    pixels = x.permute(0, 2, 3, 1).reshape(-1, channels).squeeze(1)
    chosen = pixels.index_select(0, source.flatten())
    return chosen.reshape(n, height, width, channels).permute(0, 3, 1, 2)


def _moved(places: torch.Tensor) -> torch.Tensor:
    """Return the places of each image, shape (B, side), moved by a few and kept inside."""
    n, side = places.shape
    reach = max(1, round(PADDING * side))
    shift = torch.randint(-reach, reach + 1, (n, 1), device=places.device)
    return (places + shift).clamp(0, side - 1)


@dataclass(frozen=True)
class Augmentation:
    """A choice of random changes; called with images, it returns them changed."""

    crop: bool = True
    flip: bool = True

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return each image changed, shape (B, channels, height, width)."""
        return crop_flip(x, self.crop, self.flip)


IMAGE_AUGMENTATION = "crop-flip"
"""What "auto" stands for where inputs are images."""

AUGMENTATIONS: dict[str, Augmentation | None] = {
    "none": None,
    "crop-flip": Augmentation(),
    "crop": Augmentation(flip=False),
    "flip": Augmentation(crop=False),
}


def get_augmentation(name: str, input_shape: tuple[int, ...]) -> Augmentation | None:
    """Return the augmentation of a name for inputs of a shape; None leaves them as they are."""
    if name not in AUGMENTATIONS:
        known = ", ".join(["auto", *AUGMENTATIONS])
        raise InputError("augment", f"unknown: {name!r}", f"Use one of {known}.")
    if AUGMENTATIONS[name] is not None and len(input_shape) != 3:
        raise InputError(
            "augment",
            f"'{name}' is for images, and the inputs are rows of {input_shape[0]} numbers",
            "Leave it at 'none'.",
        )
    return AUGMENTATIONS[name]
