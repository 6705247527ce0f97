"""S2E-lite as an estimator: trials of forget rates by short Co-teaching, then the training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bltm.core.errors import InputError
from bltm.core.records import FitResult
from bltm.engine.batches import Moment
from bltm.engine.job import Job
from bltm.engine.pairs import Pair, conclude_pair, exchange_step, fit_pair, plan_pair
from bltm.engine.protocol import CT200, CYCLE
from bltm.engine.schedule import PlannedStage, Schedule
from bltm.methods.base import NoisyLabelClassifier
from bltm.methods.s2e.schedule import SIZE, FloatArray, forget_curve
from bltm.methods.s2e.search import Betas

STAGE, SEARCH = "s2e", "search"


@dataclass(frozen=True)
class Recipe:
    """The schedules of the training and of a trial; how many trials in how many rounds.

    ``clock`` is the number E of epochs that the curves count in every training, long or short:
    what a trial finds then holds for a training of another length.
    """

    training: Schedule
    trial: Schedule
    rounds: int
    trials: int
    clock: float


PRESETS = {
    # By the clock of the paper most curves would leave out a half in the first epoch of twelve.
    "default": Recipe(CYCLE, replace(CYCLE, epochs=3, lengths=(), min_steps=100), 3, 3, 20.0),
    "paper": Recipe(CT200, CT200, 10, 6, 200.0),
}


@dataclass(frozen=True)
class Found:
    """What the search found.

    ``x`` is the best draw, ``a`` and ``b`` the distributions after the last round, and
    ``accuracies`` those of all trials on noisy validation data, one row for each round.
    """

    x: FloatArray
    a: FloatArray
    b: FloatArray
    accuracies: FloatArray

    def findings(self, clock: float) -> dict[str, Any]:
        """Return what the result says of it."""
        quarters = [forget_curve(self.x, clock * quarter / 4, clock) for quarter in range(5)]
        return {
            "schedule_searched": self.accuracies.size > 0,
            "schedule": self.x.tolist(),
            "forget_rate_by_quarters": quarters,
            "trial_accuracies": self.accuracies.tolist(),
        }


@dataclass(eq=False, repr=False, kw_only=True)
class S2EClassifier(NoisyLabelClassifier):
    """Co-teaching whose forget rate is searched for (S2E-lite).

    Each trial trains two networks for a short time with a forget rate over time of its own, and
    the accuracy on *noisy* validation data says how good it was. Without validation data nothing
    can be searched for, and the mean of all curves is used.

    Parameters
    ----------
    rounds, trials
        Number of rounds, after each of which the distributions move towards the better trials, and
        of trials in a round; None takes the preset's (3 and 3, or 10 and 6 for "paper").

    References
    ----------
    Yao et al. (2020), Searching to Exploit Memorization Effect in Learning with Noisy Labels, ICML.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = S2EClassifier(rounds=1, trials=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> len(model.findings_["forget_rate_by_quarters"])
    5
    """

    couples_batch = "which examples are kept depends on the losses of the whole batch"

    rounds: int | None = None
    trials: int | None = None

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the trials of the search, and the training with what it found."""
        recipe = self._recipe()
        trials = recipe.rounds * recipe.trials
        return [
            *[plan_pair(SEARCH, recipe.trial, n)] * trials,
            plan_pair(STAGE, recipe.training, n),
        ]

    def _fit(self, job: Job) -> FitResult:
        recipe = self._recipe()
        found = search(job, recipe)
        pair = train(job, STAGE, recipe.training, found.x, recipe.clock)
        return conclude_pair(job, pair, found.findings(recipe.clock))

    def _recipe(self) -> Recipe:
        recipe = self._chosen(PRESETS)
        for name in ("rounds", "trials"):
            value = getattr(self, name)
            if value is not None:
                if value < 1:
                    raise InputError(name, f"must be at least 1, got {value}")
                recipe = replace(recipe, **{name: value})
        # A trial is not longer than the preset's, for there are many.
        epochs = None if self.epochs is None else min(self.epochs, recipe.trial.epochs)
        return replace(
            recipe,
            training=self._overridden(recipe.training),
            trial=recipe.trial.overridden(epochs, self.batch_size, self.lr),
        )


def train(job: Job, stage: str, schedule: Schedule, x: FloatArray, clock: float) -> Pair:
    """Train two networks by Co-teaching with the forget rate of ``x``."""

    def keep(moment: Moment) -> float:
        done = (moment.epoch + moment.position / moment.positions) / moment.epochs
        return 1.0 - forget_curve(x, done * clock, clock)

    return fit_pair(job, stage, schedule, exchange_step(keep))


def search(job: Job, recipe: Recipe) -> Found:
    """Return the forget rate that did best on noisy validation data, and how it was found."""
    betas = Betas.uniform(SIZE)
    if len(job.split.validation) == 0:
        return Found(betas.mean, betas.a, betas.b, np.zeros((0, recipe.trials)))
    found = job.bench.record(SEARCH, Found, lambda: _search(job, recipe, betas))
    for number in range(1, recipe.rounds + 1):
        for trial in range(1, recipe.trials + 1):
            # The weights of a trial are of no use once it is judged.
            job.bench.store.discard(_trial_name(number, trial))
    return found


def _search(job: Job, recipe: Recipe, betas: Betas) -> Found:
    best, best_score = betas.mean, (-1.0, 0.0)
    accuracies = np.zeros((recipe.rounds, recipe.trials))
    for number in range(1, recipe.rounds + 1):
        draws = []
        for trial in range(1, recipe.trials + 1):
            name = _trial_name(number, trial)
            x = betas.draw(job.bench.stream(name))
            metrics = train(job, name, recipe.trial, x, recipe.clock).outcome.metrics
            score = (metrics["val_accuracy"], -metrics["val_loss"])
            accuracies[number - 1, trial - 1] = score[0]
            draws.append((score, x))
            if score > best_score:
                best, best_score = x, score
        draws.sort(key=lambda draw: draw[0], reverse=True)
        better = [x for _, x in draws[: max(1, recipe.trials // 2)]]
        betas = betas.moved_to(np.stack(better))
    return Found(best, betas.a, betas.b, accuracies)


def _trial_name(number: int, trial: int) -> str:
    return f"{SEARCH}/round-{number}/trial-{trial}"
