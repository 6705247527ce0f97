"""BLTM with one thing changed: what each difference of paper, authors' code and package costs.

All of them start from ``PAPER_CPU``, which keeps the structure of the paper's algorithm, so that a
difference is not made up for by what the default preset adds to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch import nn

from bltm.core.records import FitResult
from bltm.engine.batches import Batch
from bltm.engine.job import Job
from bltm.engine.schedule import Schedule
from bltm.engine.stage import Modules, Step
from bltm.engine.workbench import Outcome, Workbench
from bltm.methods.bltm import BLTMClassifier, Collector
from bltm.methods.bltm.collect import get_collector, threshold_of
from bltm.methods.bltm.presets import DEFAULT, PAPER, RHO_MAX, Recipe
from bltm.transition.revision import Revision

EPOCHS = 12
MOVING = 1e-3
"""A learning rate at which Adam moves the classifier; the paper has 5e-7."""

PAPER_CPU = replace(
    PAPER,
    warm_up=DEFAULT.warm_up,
    # Trained to the end: not the default's, which is shorter to leave room for more rounds.
    transition=DEFAULT.warm_up,
    classifier=replace(PAPER.classifier, epochs=EPOCHS, lr=MOVING),
    revision=replace(PAPER.revision, epochs=EPOCHS, lr=MOVING),
)
"""The paper's algorithm with networks that learn, at a size for two cores.

As in the paper: in-sample posteriors, one round, threshold 0.65, a plain head for T*(x) with no
class-dependent matrix to fall back on, classifier and transition network started from the warm-up,
and the revision learned together with the classifier. Not as in the paper:

- Warm-up and transition network are trained by one cycle of twelve epochs. Five epochs on 10,000
  images are a fifth of the paper's steps: the network is then sure of no example of some classes,
  and nothing that comes after it can be told from noise.
- The classifier is trained for twelve epochs instead of fifty, at a rate that moves it.
"""

FROZEN = replace(PAPER_CPU, classifier=replace(PAPER_CPU.classifier, lr=PAPER.classifier.lr))
"""The classifier at the paper's learning rate."""

FIVE_EPOCHS = replace(PAPER_CPU, transition=PAPER.transition)
"""The transition network with the paper's schedule."""


@dataclass(eq=False, repr=False, kw_only=True)
class ScaledPaper(BLTMClassifier):
    """BLTM, or with ``revision`` BLTM-V, by a recipe of the benchmark.

    Parameters
    ----------
    recipe
        In place of a preset.
    """

    recipe: Recipe = PAPER_CPU
    revision: bool = False
    preset: str = field(default="default", init=False)
    rounds: int | None = field(default=None, init=False)
    folds: int | None = field(default=None, init=False)

    def _recipe(self) -> tuple[Recipe, Collector, float]:
        recipe = self.recipe.with_overrides(self.epochs, self.batch_size, self.lr)
        collector = get_collector(recipe.collector if self.collector is None else self.collector)
        rho_max = RHO_MAX["paper"] if self.rho_max is None else self.rho_max
        return recipe, collector, threshold_of(rho_max)


@dataclass(eq=False, repr=False, kw_only=True)
class OneStepPerEpoch(ScaledPaper):
    """The transition network learns from the last batch of an epoch only.

    In the authors' code loss, backward pass and step stand behind the loop over batches. The other
    batches go through the network all the same and move its batch statistics, but no weight.
    """

    def _fit(self, job: Job) -> FitResult:
        return super()._fit(_LastBatchJob(**vars(job)))


@dataclass(eq=False, repr=False, kw_only=True)
class RandomStart(ScaledPaper):
    """The classifier starts at random; the transition network still starts from the warm-up."""

    def _fit(self, job: Job) -> FitResult:
        return super()._fit(_RandomStartJob(**vars(job)))


@dataclass(eq=False, repr=False, kw_only=True)
class ColumnNormalised(ScaledPaper):
    """BLTM-V whose revised matrices have columns that sum to one, as in the authors' code."""

    revision: bool = field(default=True, init=False)

    def _fit(self, job: Job) -> FitResult:
        return super()._fit(replace(job, bench=cast(Workbench, _ColumnBench(job.bench))))


class ColumnRevision(Revision):
    """``T ↦ colnorm(max(T + ΔT, 0))``: wrong on purpose.

    Examples
    --------
    >>> T = torch.tensor([[0.9, 0.1], [0.5, 0.5]])
    >>> revised = ColumnRevision(2)(T)
    >>> torch.allclose(revised.sum(0), torch.ones(2)), torch.allclose(revised.sum(1), torch.ones(2))
    (True, False)
    """

    def forward(self, T: torch.Tensor) -> torch.Tensor:
        """Return the revised matrices; ``T`` is (C, C) or (B, C, C)."""
        revised = (T + self.delta).clamp_min(0.0)
        return revised / revised.sum(dim=-2, keepdim=True).clamp_min(1e-12)


def last_batch_only(step: Step) -> Step:
    """Return a step that has something to learn in the last batch of an epoch only."""

    def limited(modules: Modules, batch: Batch) -> torch.Tensor | None:
        if batch.moment.position == batch.moment.positions - 1:
            return step(modules, batch)
        with torch.no_grad():
            step(modules, batch)
        return None

    return limited


@dataclass(frozen=True)
class _LastBatchJob(Job):
    def train(
        self,
        name: str,
        modules: Modules,
        step: Step,
        schedule: Schedule,
        **options: Any,
    ) -> Outcome:
        if "transition" in modules:
            step = last_batch_only(step)
        return super().train(name, modules, step, schedule, **options)


@dataclass(frozen=True)
class _RandomStartJob(Job):
    def train(
        self,
        name: str,
        modules: Modules,
        step: Step,
        schedule: Schedule,
        **options: Any,
    ) -> Outcome:
        if "classifier" in modules and name != "warm_up":
            modules["classifier"].load_state_dict(self.new_classifier(name).state_dict())
        return super().train(name, modules, step, schedule, **options)


class _ColumnBench:
    """A workbench, but for the revisions that it makes."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bench, name)

    def new(self, name: str, make: Callable[[], nn.Module]) -> nn.Module:
        def changed() -> nn.Module:
            module = make()
            return ColumnRevision(len(module.delta)) if isinstance(module, Revision) else module

        return self._bench.new(name, changed)
