from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bltm.data.decode import decode, flatten, measure

from .pictures import gradient, save


def test_exif_orientation_is_applied(tmp_path: Path) -> None:
    upright = gradient(16, 24)
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = Image.fromarray(np.ascontiguousarray(np.rot90(upright)))
    path = save(tmp_path / "x.jpg", turned, exif=exif, quality=95)
    assert measure(path) == (16, 24, False)
    found = decode(path, (16, 24), 3).astype(int)
    assert np.abs(found - upright).mean() < 4


def test_transparent_parts_are_white(tmp_path: Path) -> None:
    rgba = np.zeros((4, 4, 4), np.uint8)
    rgba[0, 0] = (255, 0, 0, 255)
    path = save(tmp_path / "x.png", Image.fromarray(rgba))
    found = decode(path, (4, 4), 3)
    assert found[0, 0].tolist() == [255, 0, 0]
    assert (found[1:] == 255).all()
    grey = save(tmp_path / "la.png", Image.new("LA", (3, 3), (10, 0)))
    assert measure(grey)[2]
    assert (decode(grey, (3, 3), 1) == 255).all()


def test_palettes_with_and_without_transparency_are_resolved(tmp_path: Path) -> None:
    plain = Image.new("RGB", (4, 4), (0, 200, 0)).convert("P")
    assert decode(save(tmp_path / "p.png", plain), (4, 4), 3)[0, 0].tolist() == pytest.approx(
        [0, 200, 0], abs=6
    )
    clear = Image.new("P", (4, 4), 0)
    assert (decode(save(tmp_path / "t.gif", clear, transparency=0), (4, 4), 3) == 255).all()


def test_sixteen_bits_keep_their_upper_eight(tmp_path: Path) -> None:
    deep = np.array([[0, 256, 65535, 128 * 256]], dtype=np.uint16)
    for name in ("x.png", "x.tif"):
        path = save(tmp_path / name, Image.fromarray(deep))
        assert measure(path)[2]
        assert decode(path, (1, 4), 1)[0, :, 0].tolist() == [0, 1, 255, 128]


def test_float_one_bit_and_cmyk_images_are_read(tmp_path: Path) -> None:
    real = Image.fromarray(np.array([[0.0, 0.5, 1.0]], dtype=np.float32))
    assert decode(save(tmp_path / "f.tif", real), (1, 3), 1).ravel().tolist() == [0, 128, 255]
    real = Image.fromarray(np.array([[0.0, 127.6, 300.0]], dtype=np.float32))
    assert decode(save(tmp_path / "g.tif", real), (1, 3), 1).ravel().tolist() == [0, 128, 255]
    bit = save(tmp_path / "1.png", Image.new("1", (2, 2), 1))
    assert (decode(bit, (2, 2), 1) == 255).all()
    ink = save(tmp_path / "c.jpg", Image.new("CMYK", (8, 8), (0, 0, 0, 0)))
    assert decode(ink, (8, 8), 3).min() > 250


def test_grey_becomes_rgb_and_colour_becomes_grey_on_demand(tmp_path: Path) -> None:
    grey = save(tmp_path / "g.png", Image.new("L", (2, 2), 77))
    assert decode(grey, (2, 2), 3)[0, 0].tolist() == [77, 77, 77]
    assert flatten(Image.new("RGB", (2, 2), (50, 50, 50)), 1).ravel().tolist() == [50] * 4


def test_images_are_resized_smoothly(tmp_path: Path) -> None:
    stripes = np.zeros((64, 64), np.uint8)
    stripes[::2] = 255
    path = save(tmp_path / "s.png", Image.fromarray(stripes))
    found = decode(path, (16, 16), 1).astype(int)
    assert np.abs(found - 127).max() <= 16


def test_large_jpegs_look_the_same_when_decoded_small(tmp_path: Path) -> None:
    path = save(tmp_path / "x.jpg", Image.fromarray(gradient(800, 1200)), quality=95)
    expected = np.asarray(
        Image.fromarray(gradient(800, 1200)).resize((48, 32), Image.Resampling.BILINEAR)
    ).astype(int)
    assert np.abs(decode(path, (32, 48), 3) - expected).mean() < 4
