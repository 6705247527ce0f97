"""Weights from files: round trips, another head, and files that do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from bltm.core.errors import InputError
from bltm.core.random import torch_stream
from bltm.nets import MLP, load_weights, make_net, make_transition_network


def save(net: nn.Module, path: Path) -> Path:
    if path.suffix == ".safetensors":
        save_file(net.state_dict(), path)
    else:
        torch.save(net.state_dict(), path)
    return path


def resnet(n_outputs: int, stream: str, shape: tuple[int, ...] = (3, 32, 32)) -> nn.Module:
    with torch_stream(0, stream):
        return make_net("resnet18", shape, n_outputs)


def differing(first: nn.Module, second: nn.Module) -> set[str]:
    other = second.state_dict()
    return {k for k, v in first.state_dict().items() if not torch.equal(v, other[k])}


@pytest.mark.parametrize("name", ["net.pth", "net.pt", "net.safetensors"])
def test_weights_make_a_round_trip(tmp_path: Path, name: str) -> None:
    saved, loaded = resnet(10, "one"), resnet(10, "two")
    assert differing(saved, loaded)
    assert load_weights(loaded, save(saved, tmp_path / name)) == ()
    assert differing(saved, loaded) == set()


def test_head_of_another_shape_is_skipped_and_named(tmp_path: Path) -> None:
    saved, loaded = resnet(10, "one"), resnet(4, "two")
    before = {k: v.clone() for k, v in loaded.state_dict().items() if k.startswith("fc.")}
    assert load_weights(loaded, save(saved, tmp_path / "net.pth")) == ("fc.bias", "fc.weight")
    state = loaded.state_dict()
    for key, value in saved.state_dict().items():
        assert torch.equal(state[key], before.get(key, value)), key


def test_trunks_load_weights_without_a_head(tmp_path: Path) -> None:
    saved = resnet(10, "one")
    path = save(saved, tmp_path / "net.safetensors")
    network = make_transition_network("resnet18", (3, 32, 32), 10, weights=path)
    for key, value in network.trunk.state_dict().items():
        assert torch.equal(value, saved.state_dict()[key]), key


def test_old_files_without_batch_counters_are_accepted(tmp_path: Path) -> None:
    state = {
        k: v for k, v in resnet(10, "one").state_dict().items() if "num_batches_tracked" not in k
    }
    torch.save(state, tmp_path / "old.pth")
    assert load_weights(resnet(10, "two"), tmp_path / "old.pth") == ()


def test_make_net_starts_from_the_file(tmp_path: Path) -> None:
    saved = MLP((4,), 3)
    path = save(saved, tmp_path / "net.pth")
    assert differing(saved, make_net("mlp", (4,), 3, weights=str(path))) == set()
    own = make_net(lambda n: MLP((4,), n), (4,), 3, weights=path)
    assert differing(saved, own) == set()


def test_another_number_of_channels_is_refused(tmp_path: Path) -> None:
    path = save(resnet(10, "one"), tmp_path / "net.pth")
    target = resnet(10, "two", (1, 32, 32))
    message = r"conv1.weight has \(64, 3, 3, 3\), the network \(64, 1, 3, 3\)"
    before = {k: v.clone() for k, v in target.state_dict().items()}
    with pytest.raises(InputError, match=message):
        load_weights(target, path)
    assert all(torch.equal(v, before[k]) for k, v in target.state_dict().items())


def test_another_architecture_is_refused_with_names(tmp_path: Path) -> None:
    path = save(MLP((4,), 3), tmp_path / "net.safetensors")
    with pytest.raises(InputError, match=r"missing in the file: conv1.weight.* more.*unknown to"):
        load_weights(resnet(10, "one"), path)


def test_files_that_are_no_weights_are_refused(tmp_path: Path) -> None:
    net = MLP((4,), 3)
    with pytest.raises(InputError, match="there is no file"):
        load_weights(net, tmp_path / "absent.pth")
    for name in ("text.pth", "text.safetensors", "empty.pth", "empty.safetensors"):
        (tmp_path / name).write_text("no weights" if name.startswith("text") else "")
        with pytest.raises(InputError, match="cannot read"):
            load_weights(net, tmp_path / name)
    (tmp_path / "net.onnx").write_text("")
    with pytest.raises(InputError, match="its ending is .onnx"):
        load_weights(net, tmp_path / "net.onnx")
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(InputError, match="does not hold a state dict"):
        load_weights(net, tmp_path / "list.pth")


class Harmful:
    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("harmed"),)


def test_code_in_a_file_is_not_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"fc.weight": Harmful()}, "evil.pth")
    with pytest.raises(InputError, match="cannot read"):
        load_weights(MLP((4,), 3), "evil.pth")
    assert not Path("harmed").exists()
