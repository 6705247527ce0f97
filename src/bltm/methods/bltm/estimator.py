"""Algorithm 1 of the paper as an estimator: BLTM, and with revision BLTM-V."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import torch
from torch import nn

from bltm.core.errors import InputError
from bltm.core.records import Collected, FitResult, Posterior
from bltm.engine.class_transition import surest_matrix
from bltm.engine.conclusion import conclude_corrected
from bltm.engine.job import Job
from bltm.engine.posteriors import network_probs
from bltm.engine.schedule import PlannedStage
from bltm.engine.transition_model import Corrected, TransitionModel, column_of_given_label
from bltm.methods.base import NoisyLabelClassifier
from bltm.methods.bltm.collect import COLLECTORS, Collector, collect, get_collector, threshold_of
from bltm.methods.bltm.correct import correct, least_shares
from bltm.methods.bltm.hold_back import hold_back
from bltm.methods.bltm.learn_transition import learn_transition
from bltm.methods.bltm.moderate import moderate
from bltm.methods.bltm.presets import PRESETS, RHO_MAX, Recipe
from bltm.methods.bltm.redirect import redirect
from bltm.methods.bltm.revise import revise
from bltm.methods.bltm.warm_up import warm_up
from bltm.nets.base import normalises
from bltm.nets.ensemble import together


class Noise(NamedTuple):
    """What steps 2 and 3 of Algorithm 1 yield: how labels go wrong.

    ``columns`` is log T*(x)[:, noisy label] of all N examples, shape (N, C), as ``redirect`` wants
    classifiers to be corrected where it has changed T*(x). ``departure`` is the share that was left
    of T*(x)'s departure from one matrix, and ``redirected`` the log-likelihood that held-out labels
    gained where flips were redirected; None where that was not asked.
    """

    collected: Collected
    transition: TransitionModel
    columns: torch.Tensor
    departure: float | None
    redirected: float | None


class Round(NamedTuple):
    """What one pass through steps 2 to 4 yields; labels were corrected by a share of T*(x)."""

    noise: Noise
    result: Corrected
    correction: float


@dataclass(eq=False, repr=False, kw_only=True)
class BLTMClassifier(NoisyLabelClassifier):
    """Learn Bayes labels and the transition matrix T*(x) from noisy labels (Algorithm 1).

    Parameters
    ----------
    revision
        True for BLTM-V, which revises T*(x) by a shared offset; False for BLTM.
    preset
        "default", made for modest hardware; "paper", section 5.1.2; "authors", what the authors'
        code does where that is not a plain bug.
    rho_max
        The assumed bound on the noise, ``sup P(noisy = y | Y ≠ y, x)`` over all x and y: the
        largest probability with which an example that is not of a class is given that class's
        label. Bayes labels are collected where the noisy posterior is above
        ``(1 + rho_max) / 2``. It is *not* the flip rate of an example, which is spread over the
        wrong classes and can be larger. None takes the preset's (0.3, or 0.1 for "authors").
    collector
        "in-sample", "cross-fitted", "covering", an object with the ``Collector`` interface, or
        None for the preset's.
    posterior
        A scikit-learn classifier that estimates the noisy posteriors instead of a network.
    rounds, folds
        Override the preset's number of rounds and of cross-fitting folds.
    net, preset, epochs, batch_size, lr, augment, weights, validation_fraction, classes, image_size
        As for every method; see :class:`NoisyLabelClassifier`, also for the rest.

    References
    ----------
    Yang et al. (2022), Estimating Instance-dependent Bayes-label Transition Matrix using a Deep
    Neural Network, ICML.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BLTMClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> model.predict_transition(X[:2]).shape
    (2, 3, 3)
    """

    presets: ClassVar[Mapping[str, Recipe]] = PRESETS

    revision: bool = True
    rho_max: float | None = None
    collector: str | Collector | None = None
    posterior: Any = None
    rounds: int | None = None
    folds: int | None = None

    def _fit(self, job: Job) -> FitResult:
        recipe, collector, threshold = self._suited_recipe(job)
        posterior, warm = warm_up(
            _seen_as_is(job, recipe), recipe, collector.out_of_sample, self.posterior
        )
        start = warm if recipe.start_from_warm_up else None
        recipe = replace(recipe, least_shares=least_shares(job, recipe, posterior))
        noise = self._noise(job, recipe, "round-1", posterior, collector, threshold, start)
        rounds = [self._corrected(job, recipe, "round-1", noise, start)]
        recipe = replace(recipe, classifier=job.settled(recipe.classifier, "round-1/correct"))
        for number in range(2, recipe.rounds + 1):
            # Later rounds collect where the classifier of the round before is sure. One that was
            # corrected by half has learned the other half of the noise, so it is not asked.
            name, before = f"round-{number}", rounds[-1]
            asked = before if recipe.correction == 1.0 else rounds[0]
            sure = belief(job, f"{name}/belief", asked.result.classifier)
            rule = COLLECTORS["in-sample"]
            noise = self._noise(job, recipe, name, sure, rule, recipe.sure, start, later=True)
            if recipe.moderate and number == 2:
                recipe = replace(recipe, correction=moderate(job, sure, noise.columns))
            begin = before.result.classifier if recipe.carry_on else start
            rounds.append(self._corrected(job, recipe, name, noise, begin))
        last = rounds[-1]
        *others, result = _answers(job, recipe, rounds, start)
        if self.revision and not recipe.revise_at_once:
            through = noise.transition, result.classifier, noise.columns
            result = revise(job, recipe, "revise", *through)
        return self._concluded(
            job,
            recipe,
            [other.classifier for other in others],
            result,
            start,
            last,
            posterior=posterior,
            distilled=rounds[0].noise.collected,
            collected=last.noise.collected,
            findings={
                "collected": len(last.noise.collected),
                "coverage": last.noise.collected.coverage.tolist(),
                "correction": last.correction,
                "departure": _told(each.noise.departure for each in rounds),
                "redirected": _told(each.noise.redirected for each in rounds),
            },
        )

    def _noise(
        self,
        job: Job,
        recipe: Recipe,
        name: str,
        evidence: Posterior,
        collector: Collector,
        threshold: float,
        start: nn.Module | None,
        later: bool = False,
    ) -> Noise:
        """Go through steps 2 and 3 of Algorithm 1, once.

        Parameters
        ----------
        job, recipe, name
            The fit, its recipe, and the round's name.
        evidence, collector, threshold
            What Bayes labels are collected by.
        start
            The network that the transition network starts from, or None for a random start.
        later
            Whether the evidence is that of a classifier of right labels.
        """
        collected = collect(job, f"{name}/collect", evidence, collector, threshold)
        base = surest_matrix(job, evidence) if recipe.residual else None
        transition = learn_transition(
            _seen_as_is(job, recipe), recipe, f"{name}/transition", collected, base, start
        )
        departure, redirected, columns = None, None, None
        if recipe.hold_back and later:
            departure = hold_back(job, transition.network, evidence)
        if recipe.redirect and later:
            transition, columns, redirected = redirect(
                job, f"{name}/redirect", transition, evidence
            )
        if columns is None:
            columns = column_of_given_label(job, transition)
        return Noise(collected, transition, columns, departure, redirected)

    def _corrected(
        self, job: Job, recipe: Recipe, name: str, noise: Noise, start: nn.Module | None
    ) -> Round:
        """Go through step 4 of Algorithm 1, from a network or from a random start."""
        if self.revision and recipe.revise_at_once:
            stage = f"{name}/revise"
            result = revise(job, recipe, stage, noise.transition, start, noise.columns)
        else:
            stage = f"{name}/correct"
            result = correct(job, recipe, stage, noise.transition, start, noise.columns)
        return Round(noise, result, recipe.correction)

    def _concluded(
        self,
        job: Job,
        recipe: Recipe,
        others: list[nn.Module],
        result: Corrected,
        start: nn.Module | None,
        last: Round,
        **parts: Any,
    ) -> FitResult:
        """Let the classifiers answer together, except where one went on from the other.

        Where they learned from images and their mirror images they answer for both.
        """
        judging = replace(recipe, classifier=recipe.judging())
        mirrored = recipe.mirror and job.augment is not None and job.augment.flip

        def judge(rest: Job, name: str) -> nn.Module:
            names = [f"{name}/{number}" for number in range(1, recipe.last_starts + 1)]
            through = last.result.transition, start, last.result.columns
            fits = [correct(rest, judging, each, *through) for each in names]
            return together([fit.classifier for fit in fits], mirrored)

        answering = [*([] if recipe.carry_on else others), result.classifier]
        answer = together(answering, mirrored)
        return conclude_corrected(job, replace(result, classifier=answer), refit=judge, **parts)

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the training stages, as if every training example were collected."""
        recipe, collector, _ = self._recipe()
        cross_fitted = self.posterior is None and collector.out_of_sample
        stages = []
        if recipe.start_from_warm_up or (self.posterior is None and not cross_fitted):
            stages.append(PlannedStage("warm_up", recipe.warm_up, n))
        if cross_fitted:
            rest = n - n // recipe.folds
            stages += [PlannedStage("warm_up", recipe.warm_up, rest)] * recipe.folds
        at_once = self.revision and recipe.revise_at_once
        for number in range(1, recipe.rounds + 1):
            name = f"round-{number}"
            stages.append(PlannedStage(f"{name}/transition", recipe.transition, n))
            schedule = recipe.revision if at_once else recipe.classifier
            stages.append(PlannedStage(f"{name}/{'revise' if at_once else 'correct'}", schedule, n))
            # The first round has chosen the length.
            recipe = replace(recipe, classifier=replace(recipe.classifier, lengths=()))
        for number in range(2, recipe.last_starts + 1):
            stages.append(PlannedStage(f"{name}/correct-{number}", recipe.classifier, n))
        if self.revision and not at_once:
            stages.append(PlannedStage("revise", recipe.revision, n))
        return stages

    def _judge(self, stages: list[PlannedStage]) -> PlannedStage:
        """Return the stage that judges a fold: classifiers like those of the last round."""
        recipe, _, _ = self._recipe()
        return PlannedStage("audit", recipe.judging(), stages[-1].examples, recipe.last_starts)

    def _recipe(self) -> tuple[Recipe, Collector, float]:
        """Return the preset with the user's changes, the collector and its threshold."""
        recipe = self._chosen(self.presets).with_overrides(self.epochs, self.batch_size, self.lr)
        for name, least in (("rounds", 1), ("folds", 2)):
            value = getattr(self, name)
            if value is not None:
                if value < least:
                    raise InputError(name, f"must be at least {least}, got {value}")
                recipe = replace(recipe, **{name: value})
        rho_max = RHO_MAX[self.preset] if self.rho_max is None else self.rho_max
        collector = get_collector(recipe.collector if self.collector is None else self.collector)
        return recipe, collector, threshold_of(rho_max)

    def _suited_recipe(self, job: Job) -> tuple[Recipe, Collector, float]:
        """Return the same with the learning rate and the length that suit network and data."""
        recipe, collector, threshold = self._recipe()
        if job.weights is None and normalises(job.new_classifier("any")):
            recipe = recipe.for_normalised(len(job.split.train))
        return recipe, collector, threshold

    def _net(self, input_shape: tuple[int, ...]) -> str | Callable[[int], nn.Module]:
        """Return the architecture; the authors' ResNets have a stem without padding."""
        net = super()._net(input_shape)
        return f"{net}-unpadded" if self.preset == "authors" and net != self.net else net


def _told(found: Iterable[float | None]) -> list[float]:
    """Return what rounds found, without those that did not ask."""
    return [value for value in found if value is not None]


def _answers(
    job: Job, recipe: Recipe, rounds: list[Round], start: nn.Module | None
) -> list[Corrected]:
    """Return the classifiers that answer: one of each round, and further ones of the last.

    Between two classes half of the correction is a rule, and the first round's was too much.
    Between more it is a guess, and the classifier that was corrected in full answers as well.
    """
    last, several = rounds[-1], job.data.n_classes > 2
    answers = [each.result for each in rounds if several or each.correction == last.correction]
    for number in range(2, recipe.last_starts + 1):
        name = f"round-{recipe.rounds}/correct-{number}"
        noise = last.noise
        answers.append(correct(job, recipe, name, noise.transition, start, noise.columns))
    return answers


def _seen_as_is(job: Job, recipe: Recipe) -> Job:
    """Return the job of warm-up and transition network, which may see images unchanged."""
    return job if recipe.augment_all else replace(job, augment=None)


def belief(job: Job, stage: str, classifier: nn.Module) -> Posterior:
    """Return what the classifier of Bayes labels makes of all examples."""

    def compute() -> Posterior:
        probs = network_probs(job, classifier)
        return Posterior(probs, False, "classifier")

    return job.bench.record(stage, Posterior, compute)
