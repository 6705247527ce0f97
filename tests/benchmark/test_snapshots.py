"""What is kept of a stage's epochs, and how it comes back."""

from pathlib import Path

import torch
from torch import nn

from bltm.benchmark.snapshots import MOST, keep_snapshots, read_snapshots
from bltm.engine.schedule import Schedule
from bltm.engine.stage import Stage
from bltm.nets.ensemble import Ensemble


def stage(name: str, epochs: int, **modules: nn.Module) -> Stage:
    return Stage(name, modules, None, None, Schedule(epochs, 0.1))  # type: ignore[arg-type]


def test_epochs_of_the_final_stage_are_kept_for_each_length(tmp_path: Path) -> None:
    keep = keep_snapshots(tmp_path, "fit")
    for name, epochs in (("warm_up", 2), ("fit/2-epochs", 2), ("fit/3-epochs", 3)):
        for epoch in range(1, epochs + 1):
            keep(stage(name, epochs, classifier=nn.Linear(2, 2)), epoch)
    found = [(s.stage, s.length, s.epoch) for s in read_snapshots(tmp_path)]
    assert found == [("fit", 2, 1), ("fit", 2, 2), ("fit", 3, 1), ("fit", 3, 2), ("fit", 3, 3)]


def test_long_stages_are_thinned_out_but_keep_their_last_epoch(tmp_path: Path) -> None:
    keep = keep_snapshots(tmp_path, "fit")
    for epoch in range(1, 102):
        keep(stage("fit", 101, classifier=nn.Linear(1, 1)), epoch)
    epochs = [snapshot.epoch for snapshot in read_snapshots(tmp_path)]
    assert len(epochs) <= MOST + 1
    assert epochs[-1] == 101


def test_stages_that_learn_t_are_kept_only_when_asked(tmp_path: Path) -> None:
    one = stage("round-1/transition", 1, transition=nn.Linear(1, 1))
    keep_snapshots(tmp_path, "fit")(one, 1)
    assert not list(read_snapshots(tmp_path))
    keep_snapshots(tmp_path, "fit", transitions=True)(one, 1)
    assert [snapshot.stage for snapshot in read_snapshots(tmp_path)] == ["round-1/transition"]


def test_what_a_killed_write_has_left_is_not_read(tmp_path: Path) -> None:
    keep_snapshots(tmp_path, "fit")(stage("fit", 1, classifier=nn.Linear(1, 1)), 1)
    (tmp_path / ".fit-1-00001.safetensors.abc.safetensors").write_bytes(b"torn")
    assert len(list(read_snapshots(tmp_path))) == 1


def test_weights_come_back_into_networks_and_ensembles(tmp_path: Path) -> None:
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    keep_snapshots(tmp_path, "fit")(stage("fit", 1, zebra=first, ant=second), 1)
    (snapshot,) = read_snapshots(tmp_path)
    copies = Ensemble([nn.Linear(2, 2), nn.Linear(2, 2)])
    assert snapshot.load_classifier(copies)
    assert torch.equal(copies.networks[0].weight, first.weight)
    assert torch.equal(copies.networks[1].weight, second.weight)
    assert not snapshot.load_classifier(nn.Linear(2, 2))
    assert not snapshot.load_transition(None)


def test_of_an_ensemble_of_rounds_the_stage_has_the_last(tmp_path: Path) -> None:
    trained, first = nn.Linear(2, 2), nn.Linear(2, 2)
    keep_snapshots(tmp_path, "revise")(stage("revise", 1, classifier=trained), 1)
    (snapshot,) = read_snapshots(tmp_path)
    both = Ensemble([first, nn.Linear(2, 2)])
    before = first.weight.clone()
    assert snapshot.load_classifier(both)
    assert torch.equal(both.networks[0].weight, before)
    assert torch.equal(both.networks[1].weight, trained.weight)
