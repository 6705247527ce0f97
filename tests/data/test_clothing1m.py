import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from bltm.core.errors import InputError
from bltm.data import DatasetBundle, as_source, encoder_from_json, fit_encoder, load_dataset
from bltm.data.clothing1m import CLASSES
from bltm.data.examples import LazyExamples

from .pictures import gradient, save
from .real import is_missing, load_real

TRAIN = {f"images/{i}/{10 + i}/train{i},a.jpg": i % 14 for i in range(6)}
CLEAN_TRAIN = {"images/7/1/clean.jpg": 3}
TEST = {f"images/{i}/{20 + i}/test{i}.jpg": 13 - i for i in range(4)}
# Some images have labels of both kinds.
BOTH = {"images/1/21/test1.jpg": 0}
LAYOUTS = ("standard", "bare", "annotations", "bare with annotations")


def write(root: Path, layout: str = "standard", size: tuple[int, int] = (60, 40)) -> Path:
    text = root / "annotations" if "annotations" in layout else root
    text.mkdir(parents=True, exist_ok=True)
    noisy, clean = {**TRAIN, **BOTH}, {**TEST, **CLEAN_TRAIN}
    for name, table in (("noisy_label_kv", noisy), ("clean_label_kv", clean)):
        lines = (f"{key} {label}\n" for key, label in table.items())
        (text / f"{name}.txt").write_text("".join(lines))
    for name, keys in (
        ("noisy_train_key_list", TRAIN),
        ("clean_train_key_list", CLEAN_TRAIN),
        ("clean_val_key_list", {}),
        ("clean_test_key_list", TEST),
    ):
        (text / f"{name}.txt").write_text("".join(f"{key}\n" for key in keys))
    (text / "category_names_eng.txt").write_text("\n".join(CLASSES))
    for number, key in enumerate([*TRAIN, *TEST]):
        name = key.removeprefix("images/") if "bare" in layout else key
        pixels = np.roll(gradient(*size), 3 * number, axis=1)
        save(root / name, Image.fromarray(pixels), quality=95)
    return root


def load(root: Path) -> DatasetBundle:
    return load_dataset("clothing1m", root=root, cache=root / "cache")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("inside", ["", "clothing1m"])
def test_every_layout_gives_the_same(tmp_path: Path, layout: str, inside: str) -> None:
    write(tmp_path / inside, layout)
    bundle = load(tmp_path)
    train, test = bundle.train, bundle.test
    assert train.ids.tolist() == list(TRAIN)
    assert test.ids.tolist() == list(TEST)
    assert train.labels.tolist() == [CLASSES[label] for label in TRAIN.values()]
    assert test.labels.tolist() == [CLASSES[label] for label in TEST.values()]
    assert (train.inputs.sizes() > 0).all()
    assert (test.inputs.sizes() > 0).all()
    assert bundle.label_sets == {}
    write(tmp_path / "other", "standard")
    assert load(tmp_path / "other").train.fingerprint == train.fingerprint


def test_clean_labels_are_read_for_the_test_part_only(tmp_path: Path) -> None:
    write(tmp_path)
    changed = "".join(f"{key} {label}\n" for key, label in TEST.items())
    (tmp_path / "clean_label_kv.txt").write_text(changed)
    assert load(tmp_path).train.labels.tolist() == [CLASSES[label] for label in TRAIN.values()]
    for name in ("clean_train_key_list", "clean_val_key_list", "category_names_eng"):
        (tmp_path / f"{name}.txt").unlink()
    assert len(load(tmp_path).test) == 4


def test_test_images_never_train(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "noisy_train_key_list.txt").write_text("\n".join([*TRAIN, *BOTH]))
    train = load(tmp_path).train
    assert train.ids.tolist() == list(TRAIN)
    assert train.notes == ("Left out 1 training images that are test images too.",)


@pytest.mark.parametrize("size", [(300, 400), (400, 300), (256, 256), (100, 50)])
def test_images_are_scaled_to_256_and_cropped_to_224(tmp_path: Path, size) -> None:
    source = load(write(tmp_path, size=size)).train
    encoder = fit_encoder(source)
    assert encoder.shape == (3, 224, 224)
    assert "Scaled the short side of images to 256 and cut out the centre." in encoder.notes
    values = encoder.encode(source).values.numpy()
    for row in range(len(source)):
        with Image.open(source.inputs.path(row)) as image:
            scale = 256 / min(image.size)
            whole = image.resize(
                [round(side * scale) for side in image.size], Image.Resampling.BILINEAR
            )
        left, top = ((side - 224) // 2 for side in whole.size)
        expected = np.asarray(whole.crop((left, top, left + 224, top + 224)), dtype=float)
        # Half a pixel and the rounding of two ways to compute the same.
        assert np.abs(values[row] - expected).mean() < 2.5


@pytest.mark.parametrize("workers", [0, 2])
def test_images_are_decoded_when_they_are_needed(tmp_path: Path, workers: int) -> None:
    source = load(write(tmp_path, size=(64, 48))).train
    held = fit_encoder(source, image_size=28).encode(source)
    encoder = fit_encoder(source, image_size=28, budget=1)
    lazy = encoder.encode(source, budget=1, workers=workers)
    assert isinstance(lazy, LazyExamples)
    assert lazy.workers == workers
    index = [torch.tensor([3, 0]), torch.tensor([5])]
    pairs = zip(*(e.batches(index, torch.device("cpu")) for e in (held, lazy)), strict=True)
    for expected, found in pairs:
        torch.testing.assert_close(found, expected)


def test_another_size_keeps_the_margin(tmp_path: Path) -> None:
    source = load(write(tmp_path, size=(64, 48))).train
    encoder = fit_encoder(source, image_size=56)
    assert (encoder.shape, encoder.short_side) == ((3, 56, 56), 64)
    again = encoder_from_json(json.loads(json.dumps(encoder.to_json())))
    assert again == encoder
    values = encoder.encode(source).values.numpy()
    np.testing.assert_array_equal(encoder.encode(source.take([2, 1])).values, values[[2, 1]])


def test_images_in_memory_are_cropped_like_files(tmp_path: Path) -> None:
    source = load(write(tmp_path, size=(128, 96))).train
    encoder = fit_encoder(source, image_size=42)
    files = encoder.encode(source).values.numpy().astype(float)
    pixels = np.stack([np.asarray(Image.open(source.inputs.path(row))) for row in range(6)])
    found = encoder.encode(as_source(pixels)).values.numpy().astype(float)
    assert found.shape == files.shape == (6, 42, 42, 3)
    assert np.abs(found - files).mean() < 1.0


def test_a_model_without_a_crop_can_still_be_read(tmp_path: Path) -> None:
    value = fit_encoder(load(write(tmp_path)).train).to_json()
    del value["short_side"]
    assert encoder_from_json(value).short_side is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("noisy_label_kv.txt", "", "6 of 6 keys have no class from 0 to 13"),
        ("noisy_label_kv.txt", "images/0/10/train0,a.jpg 14\n", "6 of 6 keys"),
        ("clean_label_kv.txt", "images/0/20/test0.jpg\n", "4 of 4 keys"),
        ("noisy_train_key_list.txt", "\n", "it is empty"),
        ("clean_test_key_list.txt", "images/../../x.jpg\n", "leads out of the folder"),
        ("clean_test_key_list.txt", "/etc/x.jpg\n", "leads out of the folder"),
    ],
)
def test_lists_that_are_wrong_are_named(tmp_path: Path, name: str, content: str, message: str):
    write(tmp_path)
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message) as error:
        load(tmp_path)
    assert name in str(error.value)


def test_without_files_it_says_whom_to_ask_and_what_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="on request.*noisy_train_key_list.txt, .* into"):
        load(tmp_path)
    write(tmp_path / "root")
    for path in (tmp_path / "root/images").rglob("*.jpg"):
        path.unlink()
    with pytest.raises(InputError, match="none is there, such as images/0/20/test0.jpg"):
        load(tmp_path / "root")


@pytest.mark.skipif(is_missing("clothing1m"), reason="Clothing1M is not there")
def test_clothing1m_itself_is_complete() -> None:
    bundle = load_real("clothing1m")
    assert len(bundle.train) == 1_000_000
    assert len(bundle.test) == 10_526
    assert set(bundle.train.labels) == set(CLASSES)
