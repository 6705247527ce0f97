import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from bltm.data import as_source, group_rows, open_source
from bltm.data import groups as groups_module

VALUES = st.sampled_from([0.0, -0.0, 1.0, 2.0, 0.5, -1.0, float("nan"), 1e300])


def partition(numbers: np.ndarray) -> list[tuple[int, ...]]:
    return sorted(tuple(np.flatnonzero(numbers == n)) for n in np.unique(numbers))


def brute_force(rows: np.ndarray) -> list[tuple[int, ...]]:
    seen: dict[tuple, list[int]] = {}
    for i, row in enumerate(rows.tolist()):
        seen.setdefault(tuple("nan" if v != v else v + 0.0 for v in row), []).append(i)
    return sorted(map(tuple, seen.values()))


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 3)), elements=VALUES))
def test_equal_rows_and_only_they_have_equal_numbers(rows: np.ndarray) -> None:
    assert partition(group_rows(as_source(rows))) == brute_force(rows)


@given(
    hnp.arrays(np.float32, (10, 2), elements=st.integers(0, 2)),
    st.permutations(range(10)),
)
def test_numbers_follow_the_rows_through_a_permutation(rows: np.ndarray, order: list) -> None:
    np.testing.assert_array_equal(
        group_rows(as_source(rows))[order], group_rows(as_source(rows[order]))
    )


@given(hnp.arrays(np.int64, (8, 2), elements=st.integers(0, 2)), st.permutations(range(8)))
@settings(max_examples=30)
def test_rows_that_share_a_hash_are_told_apart_in_an_order_of_their_own(rows, order) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups_module, "hash_rows", lambda r: (r.sum(axis=1) % 2).astype(np.uint64))
        numbers = group_rows(as_source(rows))
        assert partition(numbers) == brute_force(rows)
        np.testing.assert_array_equal(numbers[order], group_rows(as_source(rows[order])))


def test_hashes_of_small_whole_numbers_do_not_collide() -> None:
    rows = np.random.default_rng(0).integers(0, 17, (50_000, 8)).astype(np.float64)
    distinct = np.unique(rows, axis=0)
    assert len(np.unique(groups_module.hash_rows(distinct))) == len(distinct)


def test_images_in_memory_are_compared_by_pixels() -> None:
    images = np.zeros((4, 5, 5, 3), np.uint8)
    images[1, 2, 2, 0] = 1
    images[3, 2, 2, 0] = 1
    assert partition(group_rows(as_source(images))) == [(0, 2), (1, 3)]


def test_sixty_thousand_images_take_well_under_half_a_second() -> None:
    images = np.random.default_rng(0).integers(0, 256, (60_000, 28, 28), dtype=np.uint8)
    source = as_source(images)
    started = time.process_time()
    assert len(np.unique(group_rows(source))) == 60_000
    assert time.process_time() - started < 0.5


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": [1, 2, 3, 4, 5],
            "size": [0.0, -0.0, np.nan, np.nan, 1.0],
            "kind": ["a", "a", None, None, "a"],
            "on": pd.to_datetime(["2024-01-01"] * 5),
        }
    )


def test_table_rows_are_compared_without_their_ids() -> None:
    assert partition(group_rows(as_source(table()))) == [(0, 1), (2, 3), (4,)]


def test_table_numbers_do_not_depend_on_order_or_on_hash_collisions(monkeypatch) -> None:
    order = [3, 0, 4, 1, 2]
    shuffled = table().iloc[order]
    np.testing.assert_array_equal(
        group_rows(as_source(table()))[order], group_rows(as_source(shuffled))
    )
    monkeypatch.setattr(groups_module, "hash_table", lambda f: np.zeros(len(f), np.uint64))
    assert partition(group_rows(as_source(table()))) == [(0, 1), (2, 3), (4,)]


def test_tables_with_lists_in_cells_are_compared() -> None:
    frame = pd.DataFrame({"v": [[1], [2], [1]], "w": [1, 1, 1]})
    assert partition(group_rows(as_source(frame))) == [(0, 2), (1,)]


def test_image_files_with_equal_content_are_one_input(tmp_path: Path, monkeypatch) -> None:
    for name, value in (("a/1", 0), ("a/2", 9), ("b/1", 0)):
        path = tmp_path / f"{name}.png"
        path.parent.mkdir(exist_ok=True)
        Image.new("L", (4, 4), value).save(path)
    source = open_source(tmp_path)
    assert partition(group_rows(source)) == [(0, 2), (1,)]
    monkeypatch.setattr(groups_module, "CONTENT_BUDGET", 1)
    by_path = group_rows(source)
    assert partition(by_path) == [(0,), (1,), (2,)]
    np.testing.assert_array_equal(by_path[[2, 0, 1]], group_rows(source.take([2, 0, 1])))


def test_a_dataset_is_compared_by_value_when_it_fits_and_by_position_when_not(monkeypatch) -> None:
    x = torch.tensor([[1.0], [2.0], [1.0]])
    data = torch.utils.data.TensorDataset(x, torch.tensor([0, 1, 0]))
    assert partition(group_rows(as_source(data))) == [(0, 2), (1,)]
    monkeypatch.setattr("bltm.data.torch_items.in_memory", lambda source: None)
    assert partition(group_rows(as_source(data, [0, 1, 0]))) == [(0,), (1,), (2,)]
