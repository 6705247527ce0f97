"""Schedules and choices of Algorithm 1: the paper's, the authors' code's, and ours."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bltm.engine.protocol import CYCLE, LENGTHS
from bltm.engine.schedule import Schedule


@dataclass(frozen=True)
class Recipe:
    """Everything that Algorithm 1 leaves open.

    Attributes
    ----------
    warm_up, transition, classifier, revision
        Schedules of the four networks' training. Where the classifier's has several lengths, the
        first round chooses for all.
    collector
        Name of the rule that collects Bayes labels.
    folds
        Number of folds of cross-fitted posteriors.
    averaged
        Whether these are the mean over the epochs of the warm-up, calibrated.
    rounds
        How often the steps after the warm-up are run; later rounds collect where the classifier
        of the round before is sure.
    sure
        How sure it has to be.
    start_from_warm_up
        Whether classifier and transition network start from the warmed-up network.
    residual
        Whether T*(x) is a residual on a counted class-dependent matrix.
    penalty
        Weights of the squared departure from that matrix in the transition network's loss: in the
        row of the Bayes label, and in the other rows, of which x says nothing.
    hold_back
        Whether T*(x) departs from that matrix only as far as held-out noisy labels bear it out.
    redirect
        Whether the linear part of T*(x) is learned from all examples, from the second round on.
    moderate
        Whether labels are corrected by half of T*(x) from the second round on, unless held-out
        noisy labels speak against it.
    correction
        The share of T*(x) that they are corrected by.
    least_share
        The part of the share of its labels that each class is held to in what the classifier
        predicts, so that none is lost; 0 for no such bound.
    least_shares
        These shares, once they are known from the noisy posterior.
    last_starts
        How many classifiers the last round trains, each from a random start of its own. As many
        judge labels that they have not seen.
    carry_on
        Whether the classifier of a round starts from that of the round before. The last one answers
        then; otherwise all do together, by the mean of their logits.
    mirror
        Whether classifiers that learned from mirrored images answer for both views of an image.
    augment_all
        Where images are augmented, whether they are for the warm-up and the transition network,
        too; else the classifier alone sees them changed.
    revise_at_once
        Whether the revision is learned together with the classifier from the start, as the paper
        does it, instead of after it.
    revision_rate
        Factor on the learning rate of the revision.
    revision_proof
        Standard errors by which held-out labels have to speak for a revision where the weights
        before it compete with it.
    normalised_rate
        Factor on the learning rate of the other stages where the network normalises its layers,
        starts from random weights and has enough examples.
    normalised_examples
        How many are enough.
    normalised_reluctance
        Standard errors by which held-out labels have to speak against the longer training of the
        classifier there.
    """

    warm_up: Schedule
    transition: Schedule
    classifier: Schedule
    revision: Schedule
    collector: str = "in-sample"
    folds: int = 3
    averaged: bool = False
    rounds: int = 1
    sure: float = 0.8
    start_from_warm_up: bool = True
    residual: bool = False
    penalty: tuple[float, float] = (0.0, 0.0)
    hold_back: bool = False
    redirect: bool = False
    moderate: bool = False
    correction: float = 1.0
    least_share: float = 0.0
    least_shares: tuple[float, ...] = ()
    last_starts: int = 1
    carry_on: bool = False
    mirror: bool = False
    augment_all: bool = True
    revise_at_once: bool = True
    revision_rate: float = 1.0
    revision_proof: float = 0.0
    normalised_rate: float = 1.0
    normalised_examples: int = 0
    normalised_reluctance: float = 0.0

    def judging(self) -> Schedule:
        """Return how long a classifier learns that judges labels which it has not seen."""
        rounds = self.rounds if self.carry_on else 1
        return replace(self.classifier, epochs=rounds * self.classifier.epochs, lengths=())

    def with_overrides(
        self,
        epochs: int | None,
        batch_size: int | None,
        lr: float | None,
    ) -> Recipe:
        """Return the recipe with the user's epochs, batch size and learning rate in every stage."""
        return replace(
            self,
            warm_up=self.warm_up.overridden(epochs, batch_size, lr),
            transition=self.transition.overridden(epochs, batch_size, lr),
            classifier=self.classifier.overridden(epochs, batch_size, lr),
            revision=self.revision.overridden(epochs, batch_size, lr),
            normalised_rate=self.normalised_rate if lr is None else 1.0,
        )

    def for_normalised(self, n_examples: int) -> Recipe:
        """Return the recipe for a network that normalises its layers and so many examples."""
        factor = self.normalised_rate if n_examples >= self.normalised_examples else 1.0
        stages = {name: getattr(self, name) for name in ("warm_up", "transition", "classifier")}
        suited = {
            name: replace(schedule, lr=factor * schedule.lr) for name, schedule in stages.items()
        }
        suited["classifier"] = replace(suited["classifier"], reluctance=self.normalised_reluctance)
        return replace(self, normalised_rate=1.0, **suited)


# Section 5.1.2. The classifier starts from the warmed-up network: at a rate of 5e-7 a random
# start could not learn.
PAPER = Recipe(
    warm_up=Schedule(5, 0.01, select="accuracy"),
    transition=Schedule(5, 0.01),
    classifier=Schedule(50, 5e-7, "adam", weight_decay=1e-4, select="accuracy"),
    revision=Schedule(50, 5e-7, "adam", weight_decay=1e-4, select="accuracy"),
)

# The same for a network that comes with weights and a million images.
PAPER_CLOTHING1M = replace(
    PAPER,
    warm_up=replace(PAPER.warm_up, lr=1e-3),
    classifier=replace(PAPER.classifier, epochs=10),
    revision=replace(PAPER.revision, epochs=10),
)

# The epochs and the threshold that the authors' published code uses.
AUTHORS = replace(
    PAPER,
    warm_up=replace(PAPER.warm_up, epochs=10),
    transition=replace(PAPER.transition, epochs=50),
    classifier=replace(PAPER.classifier, epochs=20),
    revision=replace(PAPER.revision, epochs=20),
)

_CYCLE = replace(CYCLE, lengths=(), select="last")

DEFAULT = Recipe(
    warm_up=_CYCLE,
    # With 12 epochs as elsewhere the budget would not hold where all examples are collected.
    transition=replace(_CYCLE, epochs=6),
    classifier=replace(_CYCLE, lengths=LENGTHS[1:], choose="loss"),
    revision=replace(_CYCLE, epochs=2, lr=2e-4, min_steps=20, select="loss", keep_start=True),
    collector="cross-fitted",
    averaged=True,
    rounds=3,
    last_starts=2,
    mirror=True,
    start_from_warm_up=False,
    residual=True,
    penalty=(1e-2, 1e-1),
    hold_back=True,
    redirect=True,
    moderate=True,
    least_share=0.5,
    revise_at_once=False,
    revision_rate=5.0,
    revision_proof=2.0,
    normalised_rate=3.0,
    normalised_examples=2000,
    normalised_reluctance=2.0,
)

PRESETS = {
    "default": DEFAULT,
    "paper": PAPER,
    "paper-clothing1m": PAPER_CLOTHING1M,
    "authors": AUTHORS,
}
# Labels and their noise belong to the images as they are. A classifier that sees them changed does
# not learn its labels by heart, and can go on learning from round to round.
PLUS_PRESETS = {
    name: replace(recipe, carry_on=True, last_starts=1, augment_all=False)
    for name, recipe in PRESETS.items()
}
RHO_MAX = {"default": 0.3, "paper": 0.3, "paper-clothing1m": 0.3, "authors": 0.1}
