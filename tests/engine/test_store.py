import json
from pathlib import Path

import pytest
import torch

from bltm.engine import store as store_module
from bltm.engine.store import Artifact, DirectoryStore, Store, read_artifact, write_artifact


def line(stage: str, epoch: int) -> dict[str, object]:
    return {"stage": stage, "epoch": epoch, "loss": 0.5}


def make(tmp_path: Path, writes: bool = True) -> DirectoryStore:
    return DirectoryStore(tmp_path, tmp_path / "history.jsonl", writes)


def test_an_artifact_comes_back_as_it_was(tmp_path: Path) -> None:
    store = make(tmp_path)
    tensors = {
        "net/weight": torch.randn(3, 2, 2, 2).to(memory_format=torch.channels_last),
        "net/steps": torch.tensor(7),
        "labels": torch.arange(4),
    }
    store.save("round-1/fit", Artifact(tensors, {"epoch": 3, "loss": 0.1 + 0.2}))
    loaded = make(tmp_path).load("round-1/fit")
    assert loaded is not None
    assert loaded.values == {"epoch": 3, "loss": 0.1 + 0.2}
    assert loaded.tensors.keys() == tensors.keys()
    for name, value in tensors.items():
        assert torch.equal(loaded.tensors[name], value)
        assert loaded.tensors[name].dtype == value.dtype
    assert loaded.part("net").keys() == {"weight", "steps"}


def test_tensors_that_share_memory_are_saved(tmp_path: Path) -> None:
    shared = torch.arange(6.0)
    write_artifact(tmp_path / "a.safetensors", Artifact({"a": shared, "b": shared[2:4]}))
    assert read_artifact(tmp_path / "a.safetensors").tensors["b"].tolist() == [2.0, 3.0]


def test_files_are_safetensors_and_no_pickles(tmp_path: Path) -> None:
    store = make(tmp_path)
    store.save("stage", Artifact({"x": torch.ones(2)}))
    store.append(line("stage", 1))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "history.jsonl",
        "stage.safetensors",
    ]
    content = (tmp_path / "stage.safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    assert "x" in json.loads(content[8 : 8 + length])


def test_a_failed_save_leaves_the_old_artifact_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make(tmp_path)
    store.save("stage", Artifact({"x": torch.ones(2)}))

    def cut_off(tensors: object, path: Path, metadata: object) -> None:
        Path(path).write_bytes(b"half of")
        raise OSError("no space left on device")

    monkeypatch.setattr(store_module, "save_file", cut_off)
    with pytest.raises(OSError, match="no space"):
        store.save("stage", Artifact({"x": torch.zeros(2)}))
    loaded = store.load("stage")
    assert loaded is not None
    assert loaded.tensors["x"].tolist() == [1.0, 1.0]
    assert [path.name for path in tmp_path.iterdir()] == ["stage.safetensors"]


def test_unknown_and_discarded_artifacts_are_none(tmp_path: Path) -> None:
    store = make(tmp_path)
    assert store.load("stage") is None
    store.save("stage", Artifact({"x": torch.ones(1)}))
    store.discard("stage")
    store.discard("stage")
    assert store.load("stage") is None


def test_rewinding_drops_later_epochs_of_one_stage_only(tmp_path: Path) -> None:
    store = make(tmp_path)
    for stage, epoch in (("a", 1), ("a", 2), ("b", 1), ("b", 2), ("b", 3)):
        store.append(line(stage, epoch))
    store.rewind("b", 1)
    expected = [line("a", 1), line("a", 2), line("b", 1)]
    assert store.history == expected
    assert make(tmp_path).history == expected


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_line_cut_off_by_a_crash_is_left_out_and_written_over(tmp_path: Path, cut: int) -> None:
    store = make(tmp_path)
    store.append(line("a", 1))
    store.append(line("a", 2))
    path = tmp_path / "history.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    again = make(tmp_path)
    assert again.history[0] == line("a", 1)
    again.rewind("a", 1)
    again.append(line("a", 2))
    assert make(tmp_path).history == [line("a", 1), line("a", 2)]


def test_a_process_that_does_not_write_leaves_no_files(tmp_path: Path) -> None:
    store = make(tmp_path, writes=False)
    store.append(line("a", 1))
    store.save("a", Artifact({"x": torch.ones(1)}))
    store.rewind("a", 0)
    store.discard("a")
    assert list(tmp_path.iterdir()) == []
    assert store.history == []


def test_the_store_without_a_directory_keeps_history_only() -> None:
    store = Store()
    store.save("a", Artifact({"x": torch.ones(1)}))
    store.append(line("a", 1))
    assert store.load("a") is None
    assert store.history == [line("a", 1)]
    assert not store.persistent
