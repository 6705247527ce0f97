"""What holds for every variant, and for oracles and ablations."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bltm.benchmark.variants import VARIANTS, Truth, make_variant
from bltm.core.errors import InputError
from bltm.engine.batches import Batch
from bltm.engine.job import Job
from bltm.engine.store import DirectoryStore
from bltm.engine.transition_model import ClassTransition
from bltm.engine.workbench import Interrupted, Workbench
from bltm.methods.base import NoisyLabelClassifier
from bltm.methods.cross_entropy import CrossEntropyClassifier
from bltm.transition.counting import counted_transition
from engine.helpers import weights_of

from .variant_helpers import blobs, fitted, half_turned

pytestmark = [
    pytest.mark.filterwarnings("ignore::bltm.core.errors.CollapseWarning"),
    pytest.mark.filterwarnings("ignore::bltm.core.errors.CoverageWarning"),
]
every_variant = pytest.mark.parametrize("name", VARIANTS)
ORACLES = ("oracle-class", "oracle-instance")


def outcome(model: NoisyLabelClassifier) -> Any:
    findings = {k: v for k, v in model.findings_.items() if k != "seconds"}
    return weights_of(model.classifier_), model.suspicion_.values.tobytes(), findings


@every_variant
def test_a_fit_is_repeatable_planned_and_watched(name: str) -> None:
    model, again = fitted(name, blobs()), fitted(name, blobs())
    assert outcome(model) == outcome(again)
    stages = {line["stage"] for line in model.history_}
    planned = [stage.stage for stage in model.plan(216)]
    assert all(any(s == p or s.startswith(f"{p}/") for p in planned) for s in stages)
    assert all(any(s == p or s.startswith(f"{p}/") for s in stages) for p in planned)
    # The last planned stage is that of the classifier, under its full name.
    assert model.history_[-1]["stage"] == planned[-1]
    work = sum(stage.work for stage in model.plan(216)) / 216
    assert 0 < model.findings_["passes"] <= work * 1.05


@every_variant
def test_a_fit_stopped_halfway_ends_the_same(name: str, tmp_path: Path) -> None:
    steps = 0

    def bench(directory: Path, limit: int | None = None) -> Callable[..., Workbench]:
        def stop() -> bool:
            nonlocal steps
            steps += 1
            return steps == limit

        def workbench(**parts: Any) -> Workbench:
            store = DirectoryStore(directory, directory / "history.jsonl")
            return Workbench(store=store, stop_requested=stop, **parts)

        return workbench

    whole = outcome(fitted(name, blobs(), bench(tmp_path / "whole")))
    # A finished fit that is asked for again is taken from the files.
    assert outcome(fitted(name, blobs(), bench(tmp_path / "whole"))) == whole
    limit, steps = int(0.7 * steps), 0
    with pytest.raises(Interrupted):
        fitted(name, blobs(), bench(tmp_path / "parts", limit))
    assert outcome(fitted(name, blobs(), bench(tmp_path / "parts"))) == whole


@every_variant
def test_a_name_and_a_title_of_its_own_and_no_truth_unless_needed(name: str) -> None:
    variant = VARIANTS[name]
    assert variant.name == name
    assert variant.description.endswith(".")
    assert sum(other.title == variant.title for other in VARIANTS.values()) == 1
    assert variant.needs_truth == (name in ORACLES)
    if variant.needs_truth:
        with pytest.raises(InputError, match=f"truth: is needed by '{name}'"):
            make_variant(name)
    else:
        model = make_variant(name, blobs().truth)
        assert not any(isinstance(v, Truth) for v in vars(model).values())


def test_unknown_names_and_parameters_are_refused() -> None:
    with pytest.raises(InputError, match="variant: unknown: 'oracle'"):
        make_variant("oracle")
    with pytest.raises(InputError, match="collected-only does not take these options"):
        make_variant("collected-only", rounds=2)


def test_the_true_transition_of_each_example_beats_one_matrix_and_none() -> None:
    problem = half_turned()
    settings = {"epochs": 20, "batch_size": 32, "random_state": 0, "device": "cpu"}
    plain = CrossEntropyClassifier(**settings).fit_source(problem.source)
    models = {name: fitted(name, problem, epochs=20) for name in ORACLES}
    accuracy = {
        name: float((model.predict(problem.x) == problem.clean).mean())
        for name, model in {"none": plain, **models}.items()
    }
    assert accuracy["oracle-instance"] > 0.95
    assert accuracy["oracle-instance"] > accuracy["oracle-class"] + 0.2
    assert accuracy["oracle-instance"] > accuracy["none"] + 0.2


def test_oracles_use_the_true_matrices() -> None:
    problem = blobs()
    assert problem.truth.noise is not None
    transition = fitted("oracle-class", problem).transition_
    assert isinstance(transition, ClassTransition)
    np.testing.assert_allclose(transition.matrix.numpy(), problem.truth.noise.T, rtol=1e-6)
    assert fitted("oracle-instance", problem).transition_ is None


def test_an_oracle_refuses_the_truth_of_other_examples() -> None:
    problem = blobs()
    noise = problem.truth.noise
    model = make_variant("oracle-instance", problem.truth, random_state=0, epochs=1)
    with pytest.raises(InputError, match="truth: its noisy labels are not those"):
        model.fit_source(problem.source.take(np.arange(240)[::-1]))
    with pytest.raises(InputError, match="truth: has 10 right labels and 240 noisy ones"):
        Truth(problem.clean[:10], noise)


def test_real_noise_has_an_oracle_of_classes_alone() -> None:
    source, clean = blobs().source, blobs().clean
    truth = Truth(clean, counted=counted_transition(clean, np.asarray(source.labels), 3))
    transition = make_variant("oracle-class", truth, epochs=1).fit_source(source).transition_
    np.testing.assert_allclose(transition.matrix.numpy(), truth.T, rtol=1e-6)
    with pytest.raises(InputError, match=r"truth: says nothing of T\(x\)"):
        make_variant("oracle-instance", truth, epochs=1).fit_source(source)


def seen_in(monkeypatch: pytest.MonkeyPatch, stage: str) -> dict[int, int]:
    """Labels that the step of a stage is given, by example, as training goes on."""
    seen: dict[int, int] = {}
    train = Job.train

    def watched(self: Job, name: str, modules: Any, step: Any, *args: Any, **options: Any) -> Any:
        def record(networks: Any, batch: Batch) -> torch.Tensor:
            if name == stage:
                labels = batch.extras["labels"].tolist()
                seen.update(zip(batch.index.tolist(), labels, strict=True))
            loss: torch.Tensor = step(networks, batch)
            return loss

        return train(self, name, modules, record, *args, **options)

    monkeypatch.setattr(Job, "train", watched)
    return seen


def test_collected_examples_alone_are_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = seen_in(monkeypatch, "collected")
    model = fitted("collected-only", blobs(), epochs=8)
    collected = model.collected_
    assert collected is not None
    assert 0 < len(collected) < 216
    assert seen == dict(
        zip(collected.indices.tolist(), collected.bayes_labels.tolist(), strict=True)
    )
    assert model.posterior_ is not None
    assert model.posterior_.out_of_sample


def test_all_training_examples_are_relabelled(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = blobs()
    seen = seen_in(monkeypatch, "relabelled")
    first = fitted("collected-only", problem, epochs=8)
    fitted("relabelled", problem, epochs=8)
    predicted = first.probs_.argmax(axis=1)
    assert len(seen) == 216
    assert all(label == predicted[index] for index, label in seen.items())
    assert (predicted != problem.source.labels).any()


@pytest.mark.parametrize(
    ("parameters", "stages"),
    [
        ({}, {"warm_up/fold-1", "warm_up/fold-2", "warm_up/fold-3"}),
        ({"folds": 2}, {"warm_up/fold-1", "warm_up/fold-2"}),
        ({"preset": "paper", "net": "mlp"}, {"warm_up"}),
    ],
)
def test_a_collection_is_that_of_the_first_round_and_nothing_more(
    parameters: dict[str, Any], stages: set[str]
) -> None:
    model = fitted("collection", blobs(), **parameters)
    assert {line["stage"] for line in model.history_} == stages
    again = fitted("collected-only", blobs(), **parameters)
    assert model.collected_ is not None
    assert again.collected_ is not None
    np.testing.assert_array_equal(model.collected_.indices, again.collected_.indices)
    assert model.posterior_ is not None
    assert again.posterior_ is not None
    np.testing.assert_array_equal(model.posterior_.probs, again.posterior_.probs)


def test_a_higher_bound_collects_less() -> None:
    def counts(name: str, **parameters: Any) -> int:
        return int(fitted(name, blobs(), epochs=6, **parameters).findings_["collected"])

    assert counts("collection", rho_max=0.1) > counts("collection", rho_max=0.8)
    assert counts("deviation/threshold-0.55") > counts("deviation/threshold-0.8")


@pytest.mark.parametrize("name", ["collected-only", "relabelled"])
@pytest.mark.parametrize(("kept", "said"), [(0, "none of 216"), (1, "only 1 of 216")])
def test_a_bound_that_leaves_too_little_to_train_on_is_named(
    name: str, kept: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fitted("collection", blobs())
    assert first.posterior_ is not None
    surest = first.posterior_.probs[first.evidence_.split.train].max(axis=1)
    threshold = np.mean([1.0, *np.sort(surest)[::-1]][kept : kept + 2])
    seen = seen_in(monkeypatch, "collected")
    with pytest.raises(InputError, match=said) as caught:
        fitted(name, blobs(), rho_max=2 * threshold - 1)
    assert caught.value.argument == "rho_max"
    assert f"above the threshold {threshold:g}" in caught.value.problem
    assert "collector='covering'" in caught.value.remedy
    assert not seen
    assert fitted(name, blobs(), rho_max=2 * threshold - 1, collector="covering") is not None
