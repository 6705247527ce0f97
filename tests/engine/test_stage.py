"""What stages can ask of the loop beside a loss for each example."""

from dataclasses import replace
from typing import Any, Literal

import pytest
import torch

from bltm.engine.batches import Batch, Moment
from bltm.engine.loop import TrainState, train
from bltm.engine.schedule import Schedule
from bltm.engine.stage import Modules, Stage
from bltm.engine.supervised import cross_entropy_step, noisy_label_score
from bltm.engine.workbench import Interrupted

from .helpers import FABRIC, MemoryStore, tiny_job, weights_of

SCHEDULE = Schedule(3, 0.05, "adamw", batch_size=12)


def make(step: Any = cross_entropy_step, **options: Any) -> Stage:
    job = tiny_job()
    classifier = job.new_classifier("stage")
    schedule = options.pop("schedule", SCHEDULE)
    return Stage("stage", {"classifier": classifier}, step, job.training(), schedule, **options)


def run(stage: Stage) -> TrainState:
    state = TrainState.of(stage)
    list(train(state, stage, FABRIC, seed=0))
    return state


def test_a_batch_says_when_in_training_it_comes() -> None:
    seen = []

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        moment = batch.moment
        seen.append((moment.epoch, moment.epochs, moment.position, moment.positions))
        return cross_entropy_step(modules, batch)

    run(make(step))
    assert seen == [(epoch, 3, position, 4) for epoch in range(3) for position in range(4)]


def test_a_batch_with_nothing_to_learn_moves_no_weight_not_even_by_momentum() -> None:
    snapshots = []

    def step(modules: Modules, batch: Batch) -> torch.Tensor | None:
        snapshots.append(weights_of(modules["classifier"]))
        return None if batch.moment.epoch == 1 else cross_entropy_step(modules, batch)

    state = run(make(step))
    assert snapshots[3] != snapshots[4]
    assert all(snapshot == snapshots[4] for snapshot in snapshots[5:9])
    assert snapshots[9] != snapshots[8]
    assert state.seen == 3 * 48


def test_an_epoch_without_anything_to_learn_has_no_loss() -> None:
    stage = make(lambda modules, batch: None)
    (record, *_) = train(TrainState.of(stage), stage, FABRIC, seed=0)
    assert record.loss == 0.0


def test_a_stage_may_choose_its_batches_and_change_its_memory_before_each_epoch() -> None:
    seen = []

    def before(modules: Modules, moment: Moment) -> None:
        moment.memory["round"] += 1

    def batches(moment: Moment) -> list[torch.Tensor]:
        chosen = int(moment.memory["round"][0])
        return [torch.arange(2 * chosen), torch.arange(3)]

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        seen.append(batch.index.tolist())
        return cross_entropy_step(modules, batch)

    memory = {"round": torch.zeros(60)}
    state = run(make(step, memory=memory, before_epoch=before, batches=batches, passes=2.0))
    assert seen[::2] == [list(range(2)), list(range(4)), list(range(6))]
    assert seen[1::2] == [[0, 1, 2]] * 3
    assert state.seen == 2.0 * (2 + 4 + 6 + 9)
    assert memory["round"][0] == 0.0


def test_memory_written_by_steps_survives_an_interruption() -> None:
    def before(modules: Modules, moment: Moment) -> None:
        moment.memory["half"][:] = moment.memory["seen"] / 2

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        memory = batch.moment.memory
        memory["seen"][batch.index] += 1
        return cross_entropy_step(modules, batch) * (1 + memory["half"][batch.index])

    def fit(stop_at: int | None, store: MemoryStore) -> dict[str, bytes]:
        count = 0

        def stop() -> bool:
            nonlocal count
            count += 1
            return count == stop_at

        job = tiny_job(store=store, stop_requested=stop)
        classifier = job.new_classifier("stage")
        memory = {"seen": torch.zeros(60), "half": torch.zeros(60)}
        job.train(
            "stage",
            {"classifier": classifier},
            step,
            SCHEDULE,
            memory=memory,
            before_epoch=before,
        )
        return weights_of(classifier)

    whole = fit(None, MemoryStore())
    for stop_at in (4, 5, 7):
        store = MemoryStore()
        with pytest.raises(Interrupted):
            fit(stop_at, store)
        assert fit(None, store) == whole


def test_inputs_are_augmented_in_training_only_and_the_same_after_a_restart() -> None:
    seen = []

    def augment(x: torch.Tensor) -> torch.Tensor:
        assert not torch.is_inference_mode_enabled()
        seen.append(torch.rand(()))
        return x + seen[-1]

    job = tiny_job()
    for _ in range(2):
        modules = {"classifier": job.new_classifier("stage")}
        validation = job.validation()
        stage = Stage(
            "stage",
            modules,
            cross_entropy_step,
            job.training(),
            SCHEDULE,
            noisy_label_score,
            validation,
            augment=augment,
        )
        run(stage)
    draws = [float(value) for value in seen]
    assert len(draws) == 24
    assert draws[:12] == draws[12:]
    assert len(set(draws)) == 12


def test_gradients_are_clipped() -> None:
    schedule = Schedule(1, 1.0, momentum=0.0, batch_size=48, clip=1e-3)
    stage = make(lambda m, b: 1e6 * cross_entropy_step(m, b), schedule=schedule)
    before = [p.detach().clone() for p in stage.modules["classifier"].parameters()]
    run(stage)
    moved = sum(
        float((p.detach() - q).pow(2).sum())
        for p, q in zip(stage.modules["classifier"].parameters(), before, strict=True)
    )
    assert moved**0.5 == pytest.approx(1e-3, rel=1e-3)


def test_late_momentum_changes_adam_at_the_milestone() -> None:
    betas = []
    schedule = Schedule(
        4, 0.01, "adam", "linear", (2,), batch_size=48, late_momentum=0.1, select="last"
    )
    stage = make(schedule=schedule)
    state = TrainState.of(stage)
    rates = []
    for _ in train(state, stage, FABRIC, seed=0):
        betas.append(state.optimizer.param_groups[0]["betas"][0])
        rates.append(state.optimizer.param_groups[0]["lr"])
    assert betas == [0.9, 0.9, 0.1, 0.1]
    assert rates == pytest.approx([0.01, 0.01, 0.01, 0.005])


@pytest.mark.parametrize("choose", ["accuracy", "loss"])
@pytest.mark.parametrize("lengths", [(1, 2, 8), (8, 2, 1)])
def test_noisy_validation_chooses_the_length(
    lengths: tuple[int, ...], choose: Literal["accuracy", "loss"]
) -> None:
    job = tiny_job(n=200, seed=7)
    schedule = Schedule(
        1, 0.02, "adamw", "one-cycle", batch_size=32, lengths=lengths, choose=choose
    )
    classifier = job.new_classifier("stage")
    outcome = job.train(
        "stage", {"classifier": classifier}, cross_entropy_step, schedule, score=noisy_label_score
    )
    tried = {o.epochs: o.metrics for o in job.bench.outcomes}
    assert sorted(tried) == [1, 2, 8]
    by_loss = min(tried, key=lambda e: tried[e]["val_loss"])
    by_accuracy = max(tried, key=lambda e: (tried[e]["val_accuracy"], -tried[e]["val_loss"]))
    assert by_loss != by_accuracy
    ranked = by_loss if choose == "loss" else by_accuracy
    assert outcome.epochs == ranked == job.bench.lengths["stage"]
    assert sum(o.examples_seen for o in job.bench.outcomes) == 11 * len(job.split.train)
    # The weights are those of the chosen length, trained from the common start.
    alone = tiny_job(n=200, seed=7)
    other = alone.new_classifier("stage")
    one = replace(schedule, epochs=ranked, lengths=())
    alone.train(
        f"stage/{ranked}-epochs",
        {"classifier": other},
        cross_entropy_step,
        one,
        score=noisy_label_score,
    )
    assert weights_of(classifier) == weights_of(other)


@pytest.mark.parametrize(("reluctance", "longest"), [(0.0, False), (100.0, True)])
def test_a_longer_training_is_kept_unless_its_loss_is_clearly_higher(
    reluctance: float, longest: bool
) -> None:
    job = tiny_job(n=200, seed=7)
    schedule = Schedule(
        1, 0.02, "adamw", batch_size=32, lengths=(2, 8), choose="loss", reluctance=reluctance
    )
    modules = {"classifier": job.new_classifier("stage")}
    job.train("stage", modules, cross_entropy_step, schedule, score=noisy_label_score)
    shorter, longer = (outcome.metrics["val_loss"] for outcome in job.bench.outcomes)
    assert shorter < longer
    assert (job.bench.lengths["stage"] == 8) is longest


def test_without_validation_the_longest_is_trained_alone() -> None:
    job = tiny_job(validation=0.0)
    schedule = Schedule(1, 0.02, batch_size=32, lengths=(1, 3))
    modules = {"classifier": job.new_classifier("stage")}
    job.train("stage", modules, cross_entropy_step, schedule, score=noisy_label_score)
    assert [o.epochs for o in job.bench.outcomes] == [3]


def test_an_interrupted_choice_of_length_goes_on_where_it_was() -> None:
    def fit(stop_at: int | None, store: MemoryStore) -> tuple[dict[str, bytes], list[str]]:
        count = 0

        def stop() -> bool:
            nonlocal count
            count += 1
            return count == stop_at

        job = tiny_job(store=store, stop_requested=stop)
        schedule = replace(SCHEDULE, lengths=(1, 3))
        modules = {"classifier": job.new_classifier("stage")}
        job.train("stage", modules, cross_entropy_step, schedule, score=noisy_label_score)
        return weights_of(modules["classifier"]), [o.stage for o in job.bench.outcomes]

    whole = fit(None, MemoryStore())
    for stop_at in (2, 6, 9):
        store = MemoryStore()
        with pytest.raises(Interrupted):
            fit(stop_at, store)
        assert fit(None, store) == whole
