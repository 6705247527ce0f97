import numpy as np
import pytest
import torch

from bltm.core.errors import InputError
from bltm.core.random import torch_stream
from bltm.engine.augment import crop_flip, get_augmentation


def images(n: int = 64, side: int = 16) -> torch.Tensor:
    values = torch.arange(1.0, n * 2 * side * side + 1).reshape(n, 2, side, side)
    return values.to(memory_format=torch.channels_last)


def by_hand(x: np.ndarray, dy: int, dx: int, mirrored: bool) -> np.ndarray:
    """Mirror, then move by (dy, dx) with zeros coming in."""
    if mirrored:
        x = x[:, :, ::-1]
    result = np.zeros_like(x)
    _, height, width = x.shape
    for row in range(height):
        for column in range(width):
            if 0 <= row + dy < height and 0 <= column + dx < width:
                result[:, row, column] = x[:, row + dy, column + dx]
    return result


def test_every_image_is_a_moved_and_perhaps_mirrored_copy_of_itself() -> None:
    x = images()
    with torch_stream(0, "augment"):
        changed = crop_flip(x).numpy()
    seen = set()
    for one, other in zip(x.numpy(), changed, strict=True):
        found = [
            (dy, dx, mirrored)
            for dy in range(-2, 3)
            for dx in range(-2, 3)
            for mirrored in (False, True)
            if np.array_equal(by_hand(one, dy, dx, mirrored), other)
        ]
        assert len(found) == 1
        seen.add(found[0])
    assert {mirrored for _, _, mirrored in seen} == {False, True}
    assert len({dy for dy, _, _ in seen}) == len({dx for _, dx, _ in seen}) == 5


def test_flips_alone_and_crops_alone() -> None:
    x = images()
    with torch_stream(0, "augment"):
        flipped, cropped = crop_flip(x, crop=False), crop_flip(x, flip=False)
    for one, other in zip(x, flipped, strict=True):
        assert torch.equal(other, one) or torch.equal(other, one.flip(2))
    assert not torch.equal(flipped, x)
    assert all((row[row > 0].diff() > 0).all() for image in cropped for row in image[0])


def test_the_result_has_the_layout_of_training() -> None:
    assert crop_flip(images()).is_contiguous(memory_format=torch.channels_last)


def test_unknown_names_and_tables_are_refused() -> None:
    assert get_augmentation("none", (4,)) is None
    with pytest.raises(InputError, match="augment.*unknown: 'cut'"):
        get_augmentation("cut", (1, 8, 8))
    with pytest.raises(InputError, match="for images.*rows of 4 numbers"):
        get_augmentation("flip", (4,))
