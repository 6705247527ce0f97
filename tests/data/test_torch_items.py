import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

from bltm.core.errors import InputError
from bltm.data import as_source, encoder_from_json, fit_encoder
from bltm.data.examples import ImageExamples, LazyExamples, VectorExamples, default_workers

CPU = torch.device("cpu")


class Items(Dataset):
    def __init__(self, items: list) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, row: int):
        return self.items[row]


def everything(examples) -> torch.Tensor:
    return torch.cat(list(examples.batches(torch.arange(len(examples)).split(3), CPU)))


def test_labels_come_from_the_items_unless_given() -> None:
    x, y = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), torch.arange(5) % 2
    source = as_source(TensorDataset(x, y))
    assert source.labels.tolist() == [0, 1, 0, 1, 0]
    assert as_source(TensorDataset(x, y), list("abcab")).labels.tolist() == list("abcab")
    assert as_source(TensorDataset(x)).labels is None
    assert as_source(TensorDataset(x, y), for_prediction=True).labels is None
    named = Items([(x[i], "cat" if i % 2 else "dog") for i in range(5)])
    assert as_source(named).labels.tolist() == ["dog", "cat", "dog", "cat", "dog"]
    assert as_source(Items([(x[i], np.int64(i)) for i in range(5)])).labels.tolist() == [*range(5)]


def test_a_dataset_of_vectors_is_encoded_like_its_array() -> None:
    x = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
    x[2, 1] = np.nan
    source = as_source(TensorDataset(torch.from_numpy(x)))
    examples = fit_encoder(source).encode(source)
    assert isinstance(examples, VectorExamples)
    expected = fit_encoder(as_source(x)).encode(as_source(x))
    assert torch.equal(examples.values, expected.values)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_dataset_beyond_the_budget_is_read_by_index_with_the_same_result(workers: int) -> None:
    vectors = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
    pictures = torch.rand(9, 3, 6, 5, generator=torch.Generator().manual_seed(0))
    for values in (vectors, pictures):
        source = as_source(TensorDataset(values))
        encoder = fit_encoder(source)
        assert fit_encoder(source.take(np.arange(9)), budget=1).mean == encoder.mean
        lazy = encoder.encode(source.take(np.arange(9)), budget=1, workers=workers)
        assert isinstance(lazy, LazyExamples)
        held = encoder.encode(source)
        assert lazy.shape == held.shape
        torch.testing.assert_close(everything(lazy), everything(held), rtol=1e-5, atol=1e-6)
        order = torch.tensor([8, 0, 4])
        assert torch.equal(next(lazy.batches([order], CPU)), everything(lazy)[order])


def test_images_come_as_tensors_arrays_or_pillow_images() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 5, 3), dtype=np.uint8)
    expected = fit_encoder(as_source(pixels)).encode(as_source(pixels))
    for items in (
        [torch.from_numpy(p.transpose(2, 0, 1).copy()) for p in pixels],
        list(pixels),
        [Image.fromarray(p) for p in pixels],
    ):
        source = as_source(Items(items))
        examples = fit_encoder(source).encode(source)
        assert isinstance(examples, ImageExamples)
        assert torch.equal(examples.values, expected.values)
    grey = as_source(Items([Image.fromarray(p[..., 0]) for p in pixels]))
    assert fit_encoder(grey).encode(grey).shape == (1, 6, 5)


def test_taking_rows_gives_a_subset_with_its_ids() -> None:
    source = as_source(TensorDataset(torch.arange(5.0)[:, None], torch.arange(5)))
    taken = source.take([3, 1])
    assert isinstance(taken.inputs, Subset)
    assert taken.ids.tolist() == [3, 1]
    assert taken.labels.tolist() == [3, 1]
    values = fit_encoder(source).encode(taken).values
    assert torch.equal(values, fit_encoder(source).encode(source).values[[3, 1]])


def test_an_encoder_of_a_dataset_survives_json() -> None:
    source = as_source(TensorDataset(torch.rand(4, 1, 5, 5)))
    encoder = fit_encoder(source)
    assert encoder_from_json(encoder.to_json()) == encoder


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([torch.zeros(3), torch.zeros(4)], "item 1 is float32 of shape"),
        ([{"x": 1}], "items of type dict"),
        ([torch.zeros(1, 3, 4, 4)], "items of shape"),
        ([], "empty data set"),
    ],
)
def test_items_that_cannot_be_used_are_errors(items: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit_encoder(as_source(Items(items), for_prediction=True), rows=[0])


def test_items_of_several_shapes_are_named_when_read_lazily() -> None:
    source = as_source(Items([torch.zeros(3), torch.ones(3), torch.zeros(4)]))
    encoder = fit_encoder(source.take([0, 1]))
    with pytest.raises(InputError, match=r"shapes \[\(3,\), \(4,\)\]"):
        everything(encoder.encode(source, budget=1, workers=0))


def test_iterable_datasets_are_refused() -> None:
    class Endless(IterableDataset):
        def __iter__(self):
            yield torch.zeros(1)

    with pytest.raises(InputError, match="cannot be read by index"):
        as_source(Endless())


def test_worker_processes_are_the_default_only_where_they_fork(monkeypatch) -> None:
    monkeypatch.setattr("multiprocessing.get_start_method", lambda allow_none: "spawn")
    assert default_workers() == 0
    monkeypatch.setattr("multiprocessing.get_start_method", lambda allow_none: "fork")
    assert 1 <= default_workers() <= 4
