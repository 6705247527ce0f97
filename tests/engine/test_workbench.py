from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bltm.core.errors import InputError, TrainingError
from bltm.core.records import Posterior
from bltm.engine.batches import Batch
from bltm.engine.job import Job
from bltm.engine.schedule import Schedule
from bltm.engine.stage import Modules
from bltm.engine.store import DirectoryStore, Store
from bltm.engine.supervised import cross_entropy_step, fit_cross_entropy, noisy_label_score
from bltm.engine.workbench import Interrupted, Outcome

from .helpers import MemoryStore, tiny_job, weights_of

SCHEDULE = Schedule(4, 0.05, "adamw", batch_size=12, select="accuracy")


def after(steps: int) -> Callable[[], bool]:
    """Say yes after so many steps."""
    count = 0

    def stop() -> bool:
        nonlocal count
        count += 1
        return count >= steps

    return stop


def with_dropout(n_outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, n_outputs))


def without_time(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in line.items() if key != "seconds"} for line in history]


def fit(job: Job, steps: list[int] | None = None) -> nn.Module:
    classifier = job.new_classifier("stage")

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        if steps is not None:
            steps.append(len(batch.y))
        return cross_entropy_step(modules, batch)

    job.train("stage", {"classifier": classifier}, step, SCHEDULE, score=noisy_label_score)
    return classifier


def test_a_finished_stage_is_taken_from_the_store() -> None:
    store, steps = MemoryStore(), []
    first = fit(tiny_job(store=store, net=with_dropout), steps)
    assert len(steps) == 16
    job = tiny_job(store=store, net=with_dropout)
    second = fit(job, steps)
    assert len(steps) == 16
    assert weights_of(first) == weights_of(second)
    assert isinstance(job.bench.outcomes[0], Outcome)
    assert job.bench.outcomes[0].examples_seen == 4 * 48
    assert set(store.artifacts) == {"stage"}


@pytest.mark.parametrize("stop_at", [1, 3, 4, 5, 8, 15, 16])
def test_an_interrupted_stage_goes_on_where_it_was(tmp_path: Path, stop_at: int) -> None:
    whole = tiny_job(net=with_dropout)
    expected = weights_of(fit(whole))
    steps: list[int] = []

    def store() -> DirectoryStore:
        return DirectoryStore(tmp_path / "state", tmp_path / "history.jsonl")

    with pytest.raises(Interrupted):
        fit(tiny_job(store=store(), net=with_dropout, stop_requested=after(stop_at)), steps)
    assert (tmp_path / "state" / "stage.partial.safetensors").exists()
    job = tiny_job(store=store(), net=with_dropout)
    assert weights_of(fit(job, steps)) == expected
    assert len(steps) == 16
    assert not (tmp_path / "state" / "stage.partial.safetensors").exists()
    assert job.bench.outcomes == whole.bench.outcomes
    assert without_time(job.bench.store.history) == without_time(whole.bench.store.history)


def test_a_run_that_is_interrupted_at_every_step_ends_the_same() -> None:
    expected = weights_of(fit(tiny_job(net=with_dropout)))
    store = MemoryStore()
    for _ in range(16):
        with pytest.raises(Interrupted):
            fit(tiny_job(store=store, net=with_dropout, stop_requested=after(1)))
    assert weights_of(fit(tiny_job(store=store, net=with_dropout))) == expected
    assert [line["epoch"] for line in store.history] == [1, 2, 3, 4]


def test_history_after_the_last_checkpoint_is_made_again_once(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "state", tmp_path / "history.jsonl")
    job = tiny_job(store=store, checkpoint_least=1e9, checkpoint_every=1e9)
    whole = without_time(job.bench.store.history)
    fit(job)
    whole = without_time(store.history)
    (tmp_path / "state" / "stage.safetensors").unlink()  # as if killed before it was written
    again = DirectoryStore(tmp_path / "state", tmp_path / "history.jsonl")
    fit(tiny_job(store=again))
    assert without_time(again.history) == whole
    assert len((tmp_path / "history.jsonl").read_text().splitlines()) == 4


def test_checkpoints_go_by_time_inside_an_epoch() -> None:
    store = MemoryStore()
    fit(tiny_job(store=store, checkpoint_every=0.0, checkpoint_least=1e9))
    assert store.saved == ["stage.partial"] * 16 + ["stage"]
    store = MemoryStore()
    fit(tiny_job(store=store, checkpoint_every=1e9, checkpoint_least=0.0))
    assert store.saved == ["stage.partial"] * 4 + ["stage"]
    store = MemoryStore()
    fit(tiny_job(store=store))
    assert store.saved == ["stage"]


def test_a_store_in_memory_only_writes_no_checkpoints() -> None:
    saved = []

    class Watched(Store):
        def save(self, name: str, artifact: Any) -> None:
            saved.append(name)

    fit(tiny_job(store=Watched(), checkpoint_every=0.0, checkpoint_least=0.0))
    assert saved == ["stage"]


def test_an_error_in_a_step_ends_the_progress_and_is_passed_on() -> None:
    job = tiny_job()
    ended = []
    job.bench.reporter.end = lambda: ended.append(True)  # type: ignore[method-assign]

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        job.train("stage", {"classifier": job.new_classifier("c")}, step, SCHEDULE)
    assert ended == [True]


def test_divergence_is_not_saved_as_finished() -> None:
    store = MemoryStore()

    def broken(n_outputs: int) -> nn.Module:
        net = with_dropout(n_outputs)
        nn.init.constant_(net[0].weight, float("inf"))  # type: ignore[index, arg-type]
        return net

    with pytest.raises(TrainingError, match="'stage'"):
        fit(tiny_job(store=store, net=broken))
    assert store.artifacts == {}


def test_a_stage_with_one_example_is_refused() -> None:
    job = tiny_job()
    with pytest.raises(InputError, match="leaves 1 examples for stage 'stage'"):
        job.train(
            "stage",
            {"classifier": job.new_classifier("c")},
            cross_entropy_step,
            SCHEDULE,
            index=np.array([3]),
        )


def test_a_record_is_computed_once() -> None:
    job = tiny_job(store=MemoryStore())
    calls = []

    def compute() -> Posterior:
        calls.append(1)
        return Posterior(np.full((2, 2), 0.5, dtype=np.float32), True, "test")

    first = job.bench.record("posterior", Posterior, compute)
    second = job.bench.record("posterior", Posterior, compute)
    assert calls == [1]
    np.testing.assert_array_equal(first.probs, second.probs)
    assert second.probs.dtype == np.float32
    assert (second.out_of_sample, second.source) == (True, "test")


def test_networks_have_weights_by_seed_and_name() -> None:
    one, same = tiny_job().new_classifier("a"), tiny_job().new_classifier("a")
    other_name, other_seed = tiny_job().new_classifier("b"), tiny_job(seed=1).new_classifier("a")
    assert weights_of(one) == weights_of(same)
    assert weights_of(one) != weights_of(other_name)
    assert weights_of(one) != weights_of(other_seed)


def test_no_step_of_the_stages_before_changes_a_later_one() -> None:
    first = tiny_job()
    fit_cross_entropy(first, "earlier", SCHEDULE)
    after_another = fit_cross_entropy(first, "later", SCHEDULE)
    alone = fit_cross_entropy(tiny_job(), "later", SCHEDULE)
    assert weights_of(after_another) == weights_of(alone)


def remember(modules: Modules, batch: Batch) -> torch.Tensor:
    """Count how often an example was seen."""
    batch.moment.memory["seen"][batch.index] += 1
    return cross_entropy_step(modules, batch)


def fit_with_memory(job: Job, schedule: Schedule) -> tuple[Outcome, dict[str, bytes]]:
    classifier = job.new_classifier("stage")
    memory = {"seen": torch.zeros(60)}
    outcome = job.train(
        "stage",
        {"classifier": classifier},
        remember,
        schedule,
        score=noisy_label_score,
        memory=memory,
    )
    assert not memory["seen"].any()
    return outcome, weights_of(classifier)


def test_a_stage_hands_its_memory_back(tmp_path: Path) -> None:
    def store() -> DirectoryStore:
        return DirectoryStore(tmp_path / "state", tmp_path / "history.jsonl")

    job = tiny_job()
    outcome, weights = fit_with_memory(job, SCHEDULE)
    expected = torch.zeros(60)
    expected[job.split.train] = 4.0
    assert torch.equal(outcome.memory["seen"], expected)
    # Also when it was stopped, and when it was finished before.
    with pytest.raises(Interrupted):
        fit_with_memory(tiny_job(store=store(), stop_requested=after(7)), SCHEDULE)
    for _ in range(2):
        again, same = fit_with_memory(tiny_job(store=store()), SCHEDULE)
        assert torch.equal(again.memory["seen"], expected)
        assert same == weights
        assert again == outcome


def test_the_memory_is_that_of_the_chosen_length(tmp_path: Path) -> None:
    schedule = Schedule(1, 0.05, "adamw", batch_size=12, lengths=(1, 2, 5))
    for _ in range(2):
        store = DirectoryStore(tmp_path / "state", tmp_path / "history.jsonl")
        job = tiny_job(store=store)
        outcome, _ = fit_with_memory(job, schedule)
        assert float(outcome.memory["seen"].max()) == outcome.epochs == job.bench.lengths["stage"]


def test_outcomes_that_are_kept_hold_no_memory() -> None:
    job = tiny_job(store=MemoryStore())

    def compute() -> Posterior:
        fit_with_memory(job, SCHEDULE)
        return Posterior(np.full((2, 2), 0.5, dtype=np.float32), True, "test")

    job.bench.record("posterior", Posterior, compute)
    assert all(outcome.memory == {} for outcome in job.bench.outcomes)
