"""Processes that run bltm, and small data for them."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from .processes import Server, Shell, tiny


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("output"))
    yield made
    made.close()


@pytest.fixture
def shell(server: Server, tmp_path: Path) -> Shell:
    return Shell(server, tmp_path)


@pytest.fixture
def tiny_npz(tmp_path: Path) -> Path:
    X, y = tiny()
    np.savez(tmp_path / "tiny.npz", X=X, y=y)
    return tmp_path / "tiny.npz"


@pytest.fixture
def table(tmp_path: Path) -> pd.DataFrame:
    """Write ``table.csv`` with an id column, numbers, a category, and text labels."""
    X, y = tiny()
    frame = pd.DataFrame(
        {
            "flower_id": [f"f{i:03d}" for i in range(len(y))],
            "length": X[:, 0],
            "width": X[:, 1],
            "colour": np.array(["red", "blue"])[np.arange(len(y)) % 2],
            "species": np.array(["iris", "rose", "tulip"])[y],
        }
    )
    frame.to_csv(tmp_path / "table.csv", index=False)
    return frame


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Write a folder of pictures per class, and ``labels.csv`` with their paths."""
    rng = np.random.default_rng(0)
    rows = []
    for number, name in enumerate(("cat", "dog")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(12):
            pixels = rng.integers(0, 100, size=(10, 8 + i % 3, 3)) + 120 * number
            path = Path("photos") / name / f"{i}.png"
            Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / path)
            rows.append({"path": str(path), "label": name})
    pd.DataFrame(rows).to_csv(tmp_path / "labels.csv", index=False)
    return tmp_path / "photos"
