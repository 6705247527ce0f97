import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from bltm.core.errors import InputError
from bltm.data import as_source, encode_images, encoder_from_json, fit_encoder, open_source
from bltm.data.examples import ImageExamples, LazyExamples
from bltm.data.pixels import channel_moments, compact

from .pictures import folder_of_classes, gradient, save

CPU = torch.device("cpu")


def everything(examples) -> torch.Tensor:
    return torch.cat(list(examples.batches(torch.arange(len(examples)).split(3), CPU)))


def pixels(n: int = 12, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (n, 6, 5, channels), dtype=np.uint8)


@pytest.mark.parametrize("channels", [1, 3])
def test_training_images_come_out_normalised_by_channel_and_channels_last(channels: int) -> None:
    source = as_source(pixels(channels=channels))
    examples = fit_encoder(source).encode(source)
    assert isinstance(examples, ImageExamples)
    assert examples.values.dtype == torch.uint8
    assert examples.shape == (channels, 6, 5)
    batch = everything(examples)
    assert batch.dtype == torch.float32
    assert next(examples.batches([torch.tensor([1, 0])], CPU)).is_contiguous(
        memory_format=torch.channels_last
    )
    np.testing.assert_allclose(batch.mean(dim=(0, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(batch.std(dim=(0, 2, 3), unbiased=False), 1, atol=1e-5)


def test_batches_do_not_depend_on_each_other() -> None:
    source = as_source(pixels())
    examples = fit_encoder(source).encode(source)
    whole = everything(examples)
    order = torch.tensor([7, 2, 2, 11])
    assert torch.equal(next(examples.batches([order], CPU)), whole[order])
    singles = torch.cat(list(examples.batches(order.split(1), CPU)))
    assert torch.equal(singles, whole[order])


def test_the_same_pixels_in_other_units_and_layouts_give_the_same_inputs() -> None:
    base = pixels()
    expected = everything(fit_encoder(as_source(base)).encode(as_source(base)))
    for other in (
        base.astype(np.float64),
        base.astype(np.int32),
        base / 255.0,
        (base / 255.0).astype(np.float32),
        base.transpose(0, 3, 1, 2),
        torch.from_numpy(base.transpose(0, 3, 1, 2) / np.float32(255)),
    ):
        source = as_source(other)
        examples = fit_encoder(source).encode(source)
        assert examples.values.dtype == torch.uint8
        torch.testing.assert_close(everything(examples), expected, rtol=1e-4, atol=1e-5)


def test_pixels_that_bytes_cannot_hold_stay_floats() -> None:
    images = np.random.default_rng(0).normal(size=(4, 5, 5))
    source = as_source(images)
    examples = fit_encoder(source).encode(source)
    assert examples.values.dtype == torch.float32
    expected = (images - images.mean()) / images.std()
    np.testing.assert_allclose(everything(examples)[:, 0], expected, rtol=1e-4, atol=1e-5)


@given(
    hnp.arrays(np.float64, (2, 2, 2, 1), elements=st.one_of(st.floats(0, 1), st.integers(0, 400)))
)
def test_storing_images_compactly_loses_next_to_nothing(images: np.ndarray) -> None:
    values, unit = compact(images)
    np.testing.assert_allclose(values.double() * unit, images, rtol=1e-6, atol=1e-3 * unit)


def test_read_only_arrays_are_taken() -> None:
    images = pixels()
    images.setflags(write=False)
    assert len(fit_encoder(as_source(images)).encode(as_source(images))) == 12


@given(st.permutations(range(6)), st.lists(st.integers(0, 3), min_size=6, max_size=6))
@settings(max_examples=30)
def test_statistics_come_from_the_weighted_rows_only(rows: list, weights: list) -> None:
    images = pixels(9)
    weight = np.array(weights, dtype=np.float64)
    if not weight.any():
        weight[0] = 1.0
    encoder = fit_encoder(as_source(images), rows, weight)
    repeated = images[np.repeat(rows, weight.astype(int))].astype(float)
    np.testing.assert_allclose(encoder.mean, repeated.mean(axis=(0, 1, 2)))
    np.testing.assert_allclose(encoder.std, repeated.std(axis=(0, 1, 2)))


def test_a_constant_channel_does_not_divide_by_zero() -> None:
    assert channel_moments(np.full((3, 2, 2, 1), 7), np.arange(3), np.ones(3))[1].tolist() == [1.0]


def test_encoders_survive_json_exactly(tmp_path: Path) -> None:
    for source in (as_source(pixels()), open_source(folder_of_classes(tmp_path))):
        encoder = fit_encoder(source)
        again = encoder_from_json(json.loads(json.dumps(encoder.to_json())))
        assert again == encoder
        assert torch.equal(everything(again.encode(source)), everything(encoder.encode(source)))
    with pytest.raises(InputError, match="unknown kind"):
        encoder_from_json({"encoder": "sound"})


def test_images_of_another_shape_are_an_error_unless_resizing_was_asked_for() -> None:
    small, large = as_source(pixels()), as_source(np.zeros((2, 12, 10, 3), np.uint8))
    with pytest.raises(InputError, match=r"shape \(12, 10, 3\).*trained on \(6, 5, 3\)"):
        fit_encoder(small).encode(large)
    encoder = fit_encoder(small, image_size=(6, 5))
    assert encoder.encode(large).shape == (3, 6, 5)
    assert fit_encoder(small, image_size=4).encode(small).shape == (3, 4, 4)
    with pytest.raises(InputError, match="channels"):
        encoder.encode(as_source(np.zeros((2, 12, 10), np.uint8)))
    with pytest.raises(InputError, match="image_size"):
        fit_encoder(small, image_size=0)
    with pytest.raises(InputError, match="trained on|was images"):
        encoder.encode(as_source(np.eye(3)))


def test_a_grey_folder_has_one_channel_and_a_mixed_one_three(tmp_path: Path) -> None:
    source = open_source(folder_of_classes(tmp_path))
    encoder = fit_encoder(source)
    assert encoder.shape == (1, 8, 10)
    assert encoder.notes == ("Images are grey, 8x10 pixels.",)
    save(tmp_path / "cat/colour.png", Image.fromarray(gradient(8, 10)))
    assert fit_encoder(open_source(tmp_path)).shape == (3, 8, 10)


def test_mixed_sizes_come_to_the_median_size_with_a_bounded_short_side(tmp_path: Path) -> None:
    for i, (height, width) in enumerate([(100, 200), (128, 256), (400, 300)]):
        save(tmp_path / "a" / f"{i}.png", Image.fromarray(gradient(height, width)))
    source = open_source(tmp_path)
    encoder = fit_encoder(source)
    assert encoder.shape == (3, 64, 128)
    assert "Resized images of 100x200 to 400x300" in encoder.notes[1]
    assert everything(encoder.encode(source)).shape == (3, 3, 64, 128)
    assert fit_encoder(source, image_size=32).shape == (3, 32, 32)


def test_a_model_of_files_takes_arrays_and_the_other_way_round(tmp_path: Path) -> None:
    source = open_source(folder_of_classes(tmp_path))
    images = np.stack([np.asarray(Image.open(source.inputs.path(i))) for i in range(len(source))])
    by_file, by_array = fit_encoder(source), fit_encoder(as_source(images / 255.0))
    expected = everything(by_file.encode(source))
    torch.testing.assert_close(everything(by_file.encode(as_source(images))), expected)
    torch.testing.assert_close(everything(by_array.encode(source)), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("workers", [0, 2])
def test_images_beyond_the_budget_are_read_when_needed_with_the_same_result(
    tmp_path: Path, workers: int
) -> None:
    source = open_source(folder_of_classes(tmp_path, 5))
    encoder = fit_encoder(source)
    held = encoder.encode(source)
    state = torch.get_rng_state()
    lazy = encoder.encode(source, budget=10, workers=workers)
    assert isinstance(lazy, LazyExamples)
    assert lazy.shape == held.shape
    order = torch.randperm(10, generator=torch.Generator().manual_seed(0))
    for batch, expected in zip(
        lazy.batches(iter(order.split(4)), CPU), held.batches(order.split(4), CPU), strict=True
    ):
        assert torch.equal(batch, expected)
        assert batch.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(torch.get_rng_state(), state)


def test_fitting_beyond_the_budget_uses_a_sample_and_says_so(tmp_path, monkeypatch) -> None:
    source = open_source(folder_of_classes(tmp_path, 5))
    monkeypatch.setattr(encode_images, "SAMPLED_IMAGES", 10)
    lazy, held = fit_encoder(source, budget=10), fit_encoder(source)
    assert (lazy.mean, lazy.std) == (held.mean, held.std)
    assert "read when they are needed" in lazy.notes[-1]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_broken_image_in_a_worker_is_named(tmp_path: Path, workers: int) -> None:
    source = open_source(folder_of_classes(tmp_path, 5))
    encoder = fit_encoder(source)
    (tmp_path / "dog/1.png").write_bytes(b"no")
    lazy = encoder.encode(open_source(tmp_path), budget=10, workers=workers)
    with pytest.raises(InputError, match=r"dog/1\.png: cannot be read"):
        everything(lazy)


def test_fitting_and_encoding_decode_each_file_once(tmp_path: Path, monkeypatch) -> None:
    source = open_source(folder_of_classes(tmp_path, 3))
    encoder = fit_encoder(source)
    monkeypatch.setattr("bltm.data.decode.decode", None)
    assert len(encoder.encode(source)) == 6
