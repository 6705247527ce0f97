"""Each deviation is the base with the one thing changed that it is named after."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bltm.benchmark.variants import VARIANTS, make_variant
from bltm.benchmark.variants.deviations import PAPER_CPU, ColumnRevision, ScaledPaper
from bltm.engine.job import Job
from bltm.methods.base import NoisyLabelClassifier
from bltm.methods.bltm.presets import PAPER

from .variant_helpers import blobs, fitted

pytestmark = [
    pytest.mark.filterwarnings("ignore::bltm.core.errors.CollapseWarning"),
    pytest.mark.filterwarnings("ignore::bltm.core.errors.CoverageWarning"),
]
DEVIATIONS = [name for name in VARIANTS if name.startswith("deviation/")]


def parameters_of(module: nn.Module) -> torch.Tensor:
    return nn.utils.parameters_to_vector(module.parameters()).detach().clone()


class Watch:
    """Notes the parameters of the modules of each stage: before each step, and at the end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.states: dict[tuple[str, str], list[torch.Tensor]] = {}
        train, states = Job.train, self.states

        def watched(job: Job, stage: str, modules: Any, step: Any, *args: Any, **more: Any) -> Any:
            def note() -> None:
                for name, module in modules.items():
                    states.setdefault((stage, name), []).append(parameters_of(module))

            def noting(networks: Any, batch: Any) -> Any:
                note()
                return step(networks, batch)

            outcome = train(job, stage, modules, noting, *args, **more)
            note()
            return outcome

        monkeypatch.setattr(Job, "train", watched)

    def fit(self, name: str) -> dict[tuple[str, str], list[torch.Tensor]]:
        """The parameters by stage and module during the fit of a variant."""
        self.states.clear()
        fitted(name, blobs())
        return dict(self.states)


def test_weights_move_once_an_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(monkeypatch)
    stage = ("round-1/transition", "transition")

    def moves(name: str) -> list[bool]:
        states = watch.fit(name)[stage]
        return [not torch.equal(a, b) for a, b in zip(states[:-1], states[1:], strict=True)]

    every, once = moves("deviation/base"), moves("deviation/step-per-epoch")
    assert all(every)
    assert len(once) == len(every)
    # Three epochs, and the last batch of each.
    length = len(once) // 3
    assert length > 1
    assert once == ([False] * (length - 1) + [True]) * 3


def test_the_other_batches_move_the_batch_statistics() -> None:
    def batches_seen(name: str) -> int:
        network = fitted(name, blobs(), net=normalised_net).transition_.network
        return int(next(v for k, v in network.state_dict().items() if "num_batches" in k))

    assert batches_seen("deviation/step-per-epoch") == batches_seen("deviation/base")


def normalised_net(n_outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, n_outputs))


def test_columns_of_the_wrong_revision_sum_to_one_and_rows_do_not() -> None:
    revision = ColumnRevision(3)
    with torch.no_grad():
        revision.delta.copy_(torch.tensor([[0.1, 0, 0], [0, 0, 0.2], [0, 0, -1.0]]))
    T = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    for matrices in (T, T.expand(2, 3, 3)):
        revised = revision(matrices)
        torch.testing.assert_close(revised.sum(-2), torch.ones(revised.shape[:-1]))
        assert ((revised.sum(-1) - 1).abs() > 0.1).any()


def test_the_wrong_revision_is_learned_and_kept() -> None:
    x = blobs().x[:50]
    wrong = fitted("deviation/column-normalised", blobs())
    assert isinstance(wrong.transition_.revision, ColumnRevision)
    assert bool((wrong.transition_.revision.delta != 0).any())
    T = np.asarray(wrong.predict_transition(x))
    np.testing.assert_allclose(T.sum(axis=1), 1.0, atol=1e-5)
    assert np.abs(T.sum(axis=2) - 1.0).max() > 0.05
    right = np.asarray(fitted("deviation/base-v", blobs()).predict_transition(x))
    np.testing.assert_allclose(right.sum(axis=2), 1.0, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "base", "first"),
    [
        ("step-per-epoch", "base", "round-1/transition"),
        ("transition-5-epochs", "base", "round-1/transition"),
        ("threshold-0.55", "base", "round-1/transition"),
        ("threshold-0.8", "base", "round-1/transition"),
        ("classifier-5e-7", "base", "round-1/correct"),
        ("classifier-5e-7-random", "classifier-5e-7", "round-1/correct"),
        ("column-normalised", "base-v", "round-1/revise"),
    ],
)
def test_training_is_that_of_the_base_up_to_the_change(name: str, base: str, first: str) -> None:
    ours = fitted(f"deviation/{name}", blobs(), epochs=4)
    theirs = fitted(f"deviation/{base}", blobs(), epochs=4)
    stages = list(dict.fromkeys(line["stage"] for line in ours.history_))
    assert stages == list(dict.fromkeys(line["stage"] for line in theirs.history_))
    for stage in stages[: stages.index(first)]:
        assert lines(ours, stage) == lines(theirs, stage)
    assert lines(ours, first) != lines(theirs, first)


def lines(model: NoisyLabelClassifier, stage: str) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in line.items() if key != "seconds"}
        for line in model.history_
        if line["stage"] == stage
    ]


def test_a_classifier_at_the_published_rate_does_not_move_but_that_of_the_base_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = Watch(monkeypatch)

    def way(name: str) -> float:
        states = watch.fit(name)["round-1/correct", "classifier"]
        return float((states[-1] - states[0]).norm() / states[0].norm())

    assert way("deviation/classifier-5e-7") < 1e-3
    assert way("deviation/classifier-5e-7-random") < 1e-3
    assert way("deviation/base") > 3e-2


def test_the_random_start_is_that_of_the_classifier_only(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(monkeypatch)
    correct, transition = ("round-1/correct", "classifier"), ("round-1/transition", "transition")
    warm, random = (watch.fit(f"deviation/classifier-5e-7{suffix}") for suffix in ("", "-random"))
    warmed_up = warm["warm_up", "classifier"][-1]
    assert torch.equal(warm[correct][0], warmed_up)
    assert torch.equal(random["warm_up", "classifier"][-1], warmed_up)
    assert torch.equal(random[transition][0], warm[transition][0])
    assert not torch.equal(random[correct][0], warmed_up)
    assert not torch.equal(random[correct][0], random["warm_up", "classifier"][0])


def test_the_base_has_the_structure_of_the_paper() -> None:
    same = ("collector", "rounds", "start_from_warm_up", "residual", "penalty", "revise_at_once")
    assert all(getattr(PAPER_CPU, name) == getattr(PAPER, name) for name in same)


@pytest.mark.parametrize("name", DEVIATIONS)
def test_at_most_one_schedule_differs_from_the_base(name: str) -> None:
    model = make_variant(name)
    assert isinstance(model, ScaledPaper)
    stages = ("warm_up", "transition", "classifier", "revision")
    changed = [s for s in stages if getattr(model.recipe, s) != getattr(PAPER_CPU, s)]
    assert len(changed) <= 1
    # The architecture is the caller's choice, never the ResNet of the paper's preset.
    assert model._net((1, 28, 28)) == "auto"
