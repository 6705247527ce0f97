"""Where stages run: devices, seed, store and progress in one place.

A stage is finished once. What it left behind is written to the store, so that a run that is
started again takes finished stages from there and goes on inside the unfinished one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TypeVar

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import nn

from bltm.core.errors import InputError
from bltm.core.random import stream, torch_stream
from bltm.engine.checkpoint import pack, unpack
from bltm.engine.loop import TrainState, train
from bltm.engine.progress import Reporter
from bltm.engine.selection import Best, HeldOut, improves
from bltm.engine.stage import Stage
from bltm.engine.store import Artifact, Store, named_weights

Record = TypeVar("Record")
OUTCOMES = "outcomes of stages"
MEMORY = "memory"


class Interrupted(Exception):
    """The user asked to stop; everything is saved and the run can be resumed."""


@dataclass(frozen=True)
class Outcome:
    """What a training stage did: epochs, the one selected, its figures, and the examples seen.

    Examples are counted for each network that they train. ``lr`` is the learning rate, None in
    stages that an earlier version left. ``memory`` is what the stage remembered when its last epoch
    ended; only its caller gets it.
    """

    stage: str
    epochs: int
    selected_epoch: int
    metrics: dict[str, float]
    examples_seen: float
    lr: float | None = None
    memory: Mapping[str, torch.Tensor] = field(default_factory=dict, repr=False, compare=False)


@dataclass
class Workbench:
    """Runs stages.

    Attributes
    ----------
    fabric
        Devices and processes.
    seed
        The one seed; every random stream is named from it.
    store
        Where finished stages and the running one's state go.
    reporter
        Who tells the user.
    checkpoint_every
        Seconds between two saves of the running stage inside an epoch.
    checkpoint_least
        Seconds that must have passed for the end of an epoch to be saved.
    stop_requested
        Asked after each step; when it says yes the state is saved and :class:`Interrupted` raised.
    watch
        Called with the stage and the number of finished epochs after each of them. It looks at the
        stage's modules as they are then; nothing of what it finds comes back.
    outcomes
        What the stages so far did.
    lengths
        The number of epochs that noisy validation chose, by stage, where there was a choice.
    """

    fabric: Fabric
    seed: int
    store: Store = field(default_factory=Store)
    reporter: Reporter = field(default_factory=Reporter)
    checkpoint_every: float = 60.0
    checkpoint_least: float = 1.0
    stop_requested: Callable[[], bool] = lambda: False
    watch: Callable[[Stage, int], None] = lambda stage, epoch: None
    outcomes: list[Outcome] = field(default_factory=list)
    lengths: dict[str, int] = field(default_factory=dict)

    @property
    def device(self) -> torch.device:
        """Return the device of this process."""
        return self.fabric.device

    def stream(self, *names: str | int) -> np.random.Generator:
        """Return a named random stream of the run's seed."""
        return stream(self.seed, *names)

    def new(self, name: str, make: Callable[[], nn.Module]) -> nn.Module:
        """Make a module with weights drawn from its own stream, laid out for speed."""
        with torch_stream(self.seed, name, "weights"):
            module = make().to(self.device)
        return module.to(memory_format=torch.channels_last)  # type: ignore[no-any-return, call-overload]

    def fit(self, stage: Stage) -> Outcome:
        """Train the stage's modules in place and leave them with the selected weights.

        Where the schedule has several lengths, all of them start from the same weights, and the
        one that does best on the noisy validation data is kept; without such data the longest.
        """
        if len(stage.task) < 2 * self.fabric.world_size:
            raise InputError(
                "X",
                f"leaves {len(stage.task)} examples for stage '{stage.name}', too few to train on",
                "Give more examples that differ from each other, or use fewer processes.",
            )
        candidates = stage.schedule.candidates(len(stage.task))
        if stage.validation is None or len(stage.validation) == 0:
            candidates = candidates[-1:]
        if len(candidates) == 1:
            return self._fit_once(replace(stage, schedule=candidates[0]))
        assert stage.score is not None
        assert stage.validation is not None
        start = Best.of(stage.modules, 0, {})
        best: Best | None = None
        judged: HeldOut | None = None
        for schedule in candidates:
            start.restore(stage.modules)
            name = f"{stage.name}/{schedule.epochs}-epochs"
            outcome = self._fit_once(replace(stage, name=name, schedule=schedule))
            if schedule.choose == "loss":
                own = HeldOut.of(stage.modules, stage.score, stage.validation, self.fabric)
                if judged and own.worse_than(judged, schedule.reluctance):
                    continue
                judged = own
            elif not improves(outcome.metrics, best, schedule.choose):
                continue
            best, chosen = Best.of(stage.modules, schedule.epochs, outcome.metrics), outcome
        assert best is not None
        best.restore(stage.modules)
        self.lengths[stage.name] = chosen.epochs
        return chosen

    def _fit_once(self, stage: Stage) -> Outcome:
        finished = self.store.load(stage.name)
        if finished is None:
            finished = self._train(stage)
        else:
            for name, module in stage.modules.items():
                module.load_state_dict(finished.part(name))
        outcome = Outcome(**finished.values)
        # The list lives as long as the fit: it is kept free of tensors.
        self.outcomes.append(outcome)
        return replace(outcome, memory=finished.part(MEMORY))

    def record(self, stage: str, kind: type[Record], compute: Callable[[], Record]) -> Record:
        """Compute a record (a dataclass of arrays and plain values) once and keep it."""
        finished = self.store.load(stage)
        if finished is not None:
            arrays = {name: tensor.numpy() for name, tensor in finished.tensors.items()}
            values = dict(finished.values)
            self.outcomes += [Outcome(**outcome) for outcome in values.pop(OUTCOMES, [])]
            return kind(**arrays, **values)
        before = len(self.outcomes)
        result = compute()
        tensors: dict[str, torch.Tensor] = {}
        # What was trained to compute it is not trained again, but still counts.
        values = {OUTCOMES: [asdict(outcome) for outcome in self.outcomes[before:]]}
        for item in fields(result):  # type: ignore[arg-type]
            value = getattr(result, item.name)
            if isinstance(value, np.ndarray):
                tensors[item.name] = torch.from_numpy(np.ascontiguousarray(value))
            else:
                values[item.name] = value
        self.store.save(stage, Artifact(tensors, values))
        return result

    def _train(self, stage: Stage) -> Artifact:
        schedule = stage.schedule
        state = TrainState.of(stage)
        partial = f"{stage.name}.partial"
        saved = self.store.load(partial)
        if saved is not None:
            unpack(saved, state)
        self.store.rewind(stage.name, state.epoch)
        self.reporter.begin(stage.name, schedule.epochs, state.epoch)
        clock = _Clock()

        def tick(state: TrainState, steps: int) -> None:
            self.reporter.step(state.epoch + state.position / steps)
            if self.stop_requested():
                self.store.save(partial, pack(state))
                raise Interrupted
            if self.store.persistent and clock.elapsed() >= self.checkpoint_every:
                self.store.save(partial, pack(state))
                clock.restart()

        metrics: dict[str, float] = {}
        try:
            for record in train(state, stage, self.fabric, seed=self.seed, tick=tick):
                self.store.append(record.to_json())
                self.reporter.epoch(record)
                metrics = record.metrics
                # Before the state is saved: an epoch that is not made again has been watched.
                self.watch(stage, record.epoch)
                if self.store.persistent and clock.elapsed() >= self.checkpoint_least:
                    self.store.save(partial, pack(state))
                    clock.restart()
        finally:
            self.reporter.end()
        selected = schedule.epochs
        if state.best is not None:
            state.best.restore(state.modules)
            selected, metrics = state.best.epoch, state.best.metrics
        outcome = Outcome(stage.name, schedule.epochs, selected, metrics, state.seen, schedule.lr)
        memory = {f"{MEMORY}/{name}": values for name, values in state.memory.items()}
        finished = Artifact(named_weights(stage.modules) | memory, asdict(outcome))
        self.store.save(stage.name, finished)
        self.store.discard(partial)
        return finished


class _Clock:
    """Seconds since it was last restarted."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._since = time.monotonic()

    def elapsed(self) -> float:
        return time.monotonic() - self._since
