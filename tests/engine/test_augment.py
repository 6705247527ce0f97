import numpy as np
import pytest
import torch

from bltm.core.errors import InputError
from bltm.core.random import torch_stream
from bltm.engine.augment import crop_flip, get_augmentation


def images(n: int = 64, channels: int = 2, height: int = 16, width: int = 16) -> torch.Tensor:
    """Images in which no two pixels are the same."""
    values = torch.arange(1.0, n * channels * height * width + 1)
    return values.reshape(n, channels, height, width).to(memory_format=torch.channels_last)


def by_hand(x: np.ndarray, dy: int, dx: int, mirrored: bool) -> np.ndarray:
    """Move by (dy, dx) with the edge repeated, after mirroring left and right."""
    if mirrored:
        x = x[:, :, ::-1]
    rows = np.clip(np.arange(x.shape[1]) + dy, 0, x.shape[1] - 1)
    columns = np.clip(np.arange(x.shape[2]) + dx, 0, x.shape[2] - 1)
    return x[:, rows][:, :, columns]


@pytest.mark.parametrize("shape", [(2, 16, 16), (1, 16, 16), (3, 14, 18)])
def test_every_image_is_a_moved_and_perhaps_mirrored_copy_of_itself(
    shape: tuple[int, int, int],
) -> None:
    x = images(64, *shape)
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
    assert all((row.diff() >= 0).all() for image in cropped for row in image[0])
    assert not torch.equal(cropped, x)


def test_about_half_of_the_images_are_mirrored_and_all_moves_are_equally_likely() -> None:
    x = images(4000, 1, 8, 8)
    with torch_stream(0, "augment"):
        flipped, cropped = crop_flip(x, crop=False), crop_flip(x, flip=False)
    mirrored = (flipped != x).flatten(1).any(dim=1).double().mean()
    assert float(mirrored) == pytest.approx(0.5, abs=0.03)
    # The pixel at (3, 3) comes from one of nine places.
    moves = (cropped[:, 0, 3, 3] - x[:, 0, 3, 3]).unique(return_counts=True)
    assert moves[0].tolist() == [-9.0, -8.0, -7.0, -1.0, 0.0, 1.0, 7.0, 8.0, 9.0]
    assert ((moves[1] / 4000 - 1 / 9).abs() < 0.02).all()


def test_pixels_stay_what_they_are_and_the_input_as_it_was() -> None:
    x = images(8, 3)
    before = x.clone()
    changed = crop_flip(x)
    assert torch.equal(x, before)
    assert changed.shape == x.shape
    assert changed.dtype == x.dtype
    for one, other in zip(x, changed, strict=True):
        # Whole pixels move: the channels of one stay together.
        assert {tuple(p) for p in other.flatten(1).T.tolist()} <= {
            tuple(p) for p in one.flatten(1).T.tolist()
        }


def test_the_layout_of_the_input_does_not_matter_and_the_result_has_that_of_training() -> None:
    x = images()
    with torch_stream(0, "augment"):
        expected = crop_flip(x)
    with torch_stream(0, "augment"):
        other = crop_flip(x.contiguous())
    assert torch.equal(other, expected)
    assert other.is_contiguous(memory_format=torch.channels_last)
    assert expected.is_contiguous(memory_format=torch.channels_last)


def test_unknown_names_and_tables_are_refused() -> None:
    assert get_augmentation("none", (4,)) is None
    with pytest.raises(InputError, match="augment.*unknown: 'cut'"):
        get_augmentation("cut", (1, 8, 8))
    with pytest.raises(InputError, match="for images.*rows of 4 numbers"):
        get_augmentation("flip", (4,))
