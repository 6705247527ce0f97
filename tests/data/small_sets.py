"""Small files in the true formats of published data sets."""

import json
import struct
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image

BATCHES = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5")
PIXELS = 3072


def idx(array: np.ndarray) -> bytes:
    """Return an idx file of bytes."""
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.tobytes()


def rows(n: int, seed: int) -> np.ndarray:
    """Return images as rows of bytes, channel after channel."""
    return np.random.default_rng(seed).integers(0, 256, (n, PIXELS), dtype=np.uint8)


def as_images(stored: np.ndarray) -> np.ndarray:
    """Return such rows as images: a slow way, byte by byte."""
    images = np.zeros((len(stored), 32, 32, 3), dtype=np.uint8)
    for place in range(PIXELS):
        channel, rest = divmod(place, 1024)
        images[:, rest // 32, rest % 32, channel] = stored[:, place]
    return images


def python2(value: object) -> bytes:
    """Return a value as Python 2 pickled it with protocol 2, without the frame around it."""
    if isinstance(value, bytes):
        short = len(value) < 256
        return (
            b"U" + bytes([len(value)]) if short else b"T" + struct.pack("<i", len(value))
        ) + value
    if isinstance(value, int):
        return b"K" + bytes([value]) if 0 <= value < 256 else b"J" + struct.pack("<i", value)
    if isinstance(value, list):
        return b"](" + b"".join(map(python2, value)) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(python2(k) + python2(v) for k, v in value.items()) + b"u"
    assert isinstance(value, np.ndarray)
    empty = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    kind = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNN" + 2 * python2(-1) + b"K\x00tb"
    shape = b"".join(map(python2, value.shape)) + b"\x86"
    return empty + b"(K\x01" + shape + kind + b"\x89" + python2(value.tobytes()) + b"tb"


def pickled(value: object) -> bytes:
    """Return a whole file as Python 2 pickled it."""
    return b"\x80\x02" + python2(value) + b"."


class SmallCifar10:
    """Five batches of ``n`` images and a test batch, in every form."""

    def __init__(self, n: int = 4) -> None:
        self.n = n
        self.rows = [rows(n, seed) for seed in range(6)]
        self.labels = [(np.arange(n) + seed) % 10 for seed in range(6)]
        self.train_images = as_images(np.concatenate(self.rows[:5]))
        self.train_labels = np.concatenate(self.labels[:5])
        self.test_images, self.test_labels = as_images(self.rows[5]), self.labels[5]
        self.names = (*BATCHES, "test_batch")

    def write_binary(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name, stored, labels in zip(self.names, self.rows, self.labels, strict=True):
            content = np.concatenate([labels[:, None].astype(np.uint8), stored], axis=1)
            (folder / f"{name}.bin").write_bytes(content.tobytes())
        return folder

    def write_python(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name, stored, labels in zip(self.names, self.rows, self.labels, strict=True):
            batch = {
                b"batch_label": b"training batch",
                b"labels": labels.tolist(),
                b"data": stored,
                b"filenames": [b"leptodactylus_s_%06d.png" % i for i in range(self.n)],
            }
            (folder / name).write_bytes(pickled(batch))
        return folder

    def write_sheets(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name, stored in zip(self.names, self.rows, strict=True):
            sheet = as_images(stored).reshape(self.n, 1024, 3)
            Image.fromarray(sheet).save(folder / f"{name}.png")
        (folder / "train_lables.json").write_text(json.dumps(self.train_labels.tolist()))
        (folder / "test_lables.json").write_text(json.dumps(self.test_labels.tolist()))
        return folder


class SmallCifar100:
    """A training file and a test file, in both forms."""

    def __init__(self, n_train: int = 7, n_test: int = 3) -> None:
        self.rows = {"train": rows(n_train, 0), "test": rows(n_test, 1)}
        self.fine = {name: np.arange(len(r)) * 13 % 100 for name, r in self.rows.items()}
        self.coarse = {name: np.arange(len(r)) * 7 % 20 for name, r in self.rows.items()}

    def write_binary(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name, stored in self.rows.items():
            labels = np.stack([self.coarse[name], self.fine[name]], axis=1).astype(np.uint8)
            content = np.concatenate([labels, stored], axis=1)
            (folder / f"{name}.bin").write_bytes(content.tobytes())
        return folder

    def write_python(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name, stored in self.rows.items():
            batch = {
                b"filenames": [b"bos_taurus_s_%06d.png" % i for i in range(len(stored))],
                b"batch_label": b"training batch 1 of 1",
                b"fine_labels": self.fine[name].tolist(),
                b"coarse_labels": self.coarse[name].tolist(),
                b"data": stored,
            }
            (folder / name).write_bytes(pickled(batch))
        return folder


def pack(folder: Path, archive: Path) -> Path:
    """Put a folder into a ``.tar.gz`` file, under its name."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, folder.name)
    return archive
