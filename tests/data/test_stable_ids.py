"""An example keeps its id through shuffling, worker processes and splits."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from bltm.core.records import NoisyData
from bltm.data import (
    canonical_order,
    encode_labels,
    fit_encoder,
    folds,
    group_rows,
    merge_duplicates,
    open_source,
    split_noisy,
)

from .pictures import save

N = 60


def folder(root: Path) -> Path:
    """Every image is filled with its number, which is also its name."""
    for i in range(N):
        save(root / "ab"[i % 2] / f"{i}.png", Image.new("L", (4, 4), 4 * i))
    return root


@pytest.mark.parametrize("budget", [1 << 30, 10])
def test_ids_and_images_belong_together_to_the_end(tmp_path: Path, budget: int) -> None:
    opened = open_source(folder(tmp_path))
    results = []
    for seed in (0, 1):
        source = opened.take(np.random.default_rng(seed).permutation(N))
        codes, classes = encode_labels(source.labels)
        group = group_rows(source)
        weights = merge_duplicates(codes, np.ones(N), group)
        order = canonical_order(codes, group)
        encoder = fit_encoder(source, order, weights[order])
        examples = encoder.encode(source, budget=budget, workers=2)
        data = NoisyData(examples, codes, classes, weights, np.zeros(N, bool), group, source.ids)
        split = split_noisy(data, 0.2, seed=5)
        fold = folds(data, split.train, 3, seed=5)
        index = torch.from_numpy(split.all)
        batches = torch.cat(list(examples.batches(index.split(7), torch.device("cpu"))))
        pixels = batches[:, 0, 0, 0].double().numpy() * encoder.std[0] + encoder.mean[0]
        names = data.ids[split.all]
        numbers = [int(Path(name).stem) for name in names]
        np.testing.assert_allclose(pixels, 4 * np.array(numbers), atol=1e-3)
        assert [name[0] for name in names] == classes[codes[split.all]].tolist()
        results.append((names.tolist(), len(split.validation), fold.tolist(), encoder.to_json()))
    assert results[0] == results[1]
