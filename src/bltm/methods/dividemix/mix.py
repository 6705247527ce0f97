"""Mix: one step of MixMatch with co-refined and co-guessed labels (section 3.3, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional

from bltm.engine.augment import Augmentation
from bltm.engine.batches import Batch, Moment
from bltm.engine.stage import Modules
from bltm.losses import (
    cross_entropy,
    entropy,
    prior_cross_entropy,
    soft_cross_entropy,
    squared_error,
    weighted_mean,
)

NETWORKS = ("first", "second")
CLEAN = "clean"
"""In the memory of the stage: w of each example by each network, shape (N, 2)."""


def warm_up_step(confidence_penalty: bool, modules: Modules, batch: Batch) -> torch.Tensor:
    """Return the cross-entropy of both networks, less their entropy where confidence is penalised.

    A network that is sure of everything has no losses by which labels could be told apart.
    """
    losses = torch.zeros_like(batch.weight)
    for name in NETWORKS:
        logits = modules[name](batch.x)
        losses = losses + cross_entropy(logits, batch.y)
        if confidence_penalty:
            losses = losses - entropy(logits)
    return losses


def ensemble_score(modules: Modules, batch: Batch) -> torch.Tensor:
    """Return log-probabilities by the mean logits of both networks."""
    logits = torch.stack([modules[name](batch.x) for name in NETWORKS])
    return functional.log_softmax(logits.mean(dim=0), dim=1)


def learner(moment: Moment) -> int:
    """Return which network learns: the first in the first half of an epoch, then the second."""
    return int(2 * moment.position >= moment.positions)


@dataclass(frozen=True)
class MixStep:
    """The loss of a batch of labelled and unlabelled examples, for the network whose turn it is.

    Attributes
    ----------
    prior
        Class frequencies that the mean prediction is held to, shape (C,).
    lambda_u
        Weight of the unlabelled loss when it is fully there.
    ramp
        Share of the epochs in which it gets there.
    alpha
        Of the Beta distribution of MixUp's coefficient.
    temperature
        Of sharpening.
    threshold
        Labels with w above it are kept as labels.
    augment
        Gives a view of a batch's inputs; None leaves them as they are, and then one view is enough.
    """

    prior: torch.Tensor
    lambda_u: float
    ramp: float
    alpha: float
    temperature: float
    threshold: float
    augment: Augmentation | None

    def __call__(self, modules: Modules, batch: Batch) -> torch.Tensor:
        """Return the loss, a scalar."""
        turn = learner(batch.moment)
        network, peer = modules[NETWORKS[turn]].train(), modules[NETWORKS[1 - turn]].eval()
        w = batch.moment.memory[CLEAN][batch.index, 1 - turn]
        # The labelled examples come first in a batch.
        n_labelled = int((w > self.threshold).sum())
        views = [batch.x] if self.augment is None else [self.augment(batch.x) for _ in range(2)]
        inputs = torch.cat(views)
        with torch.no_grad():
            # In training mode, as published: the statistics of batch normalisation then come
            # from images that are not mixed as well, and those are what the network is used on.
            own = mean_prediction(network(inputs), len(views))
            refined = co_refined(own[:n_labelled], batch.y[:n_labelled], w[:n_labelled].to(own))
            guessed = own[n_labelled:]
            if len(guessed):
                unlabelled = torch.cat([view[n_labelled:] for view in views])
                guessed = (guessed + mean_prediction(peer(unlabelled), len(views))) / 2
            targets = sharpened(torch.cat([refined, guessed]), self.temperature)
        mixed, mixed_targets = mix_up(inputs, targets.repeat(len(views), 1), self.alpha)
        logits = network(mixed)
        labelled = (torch.arange(len(w), device=logits.device) < n_labelled).repeat(len(views))
        weights = batch.weight.repeat(len(views))
        loss = prior_cross_entropy(logits, self.prior, weights)
        if n_labelled > 0:
            losses = soft_cross_entropy(logits, mixed_targets)
            loss = loss + weighted_mean(losses, weights * labelled)
        lambda_u = ramped(self.lambda_u, batch.moment, self.ramp)
        if n_labelled < len(w) and lambda_u > 0.0:
            errors = squared_error(logits, mixed_targets)
            loss = loss + lambda_u * weighted_mean(errors, weights * ~labelled)
        return loss


def mean_prediction(logits: torch.Tensor, n_views: int) -> torch.Tensor:
    """Return the probabilities of each example, the mean over its views, shape (B, C)."""
    return logits.softmax(dim=1).reshape(n_views, -1, logits.shape[1]).mean(dim=0)


def co_refined(predicted: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Return ``w · label + (1 - w) · prediction`` for labelled examples, shape (B, C).

    Examples
    --------
    >>> co_refined(torch.tensor([[0.5, 0.5]]), torch.tensor([1]), torch.tensor([0.8]))
    tensor([[0.1000, 0.9000]])
    """
    given = functional.one_hot(labels, predicted.shape[1])
    return w[:, None] * given + (1.0 - w[:, None]) * predicted


def sharpened(probs: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return ``p^(1/temperature)`` with rows that sum to one again, shape (B, C).

    Examples
    --------
    >>> sharpened(torch.tensor([[0.75, 0.25]]), 0.5)
    tensor([[0.9000, 0.1000]])
    """
    return (probs.log() / temperature).softmax(dim=1)


def mix_up(
    inputs: torch.Tensor, targets: torch.Tensor, alpha: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return each example mixed with a random one, itself having the larger share.

    Draws from torch's generator, which the training loop sets for each step.
    """
    share = float(torch.distributions.Beta(alpha, alpha).sample())
    share = max(share, 1.0 - share)
    partner = torch.randperm(len(inputs)).to(inputs.device)
    mixed = torch.lerp(inputs[partner], inputs, share)
    return mixed, torch.lerp(targets[partner], targets, share)


def ramped(full: float, moment: Moment, ramp: float) -> float:
    """Return the weight of the unlabelled loss: nought at first, in a line up to all of it.

    Examples
    --------
    >>> ramped(25.0, Moment(epoch=0, epochs=10), 0.2), ramped(25.0, Moment(epoch=1, epochs=10), 0.2)
    (0.0, 12.5)
    """
    halfway = moment.positions / 2
    done = moment.epoch + (moment.position % halfway) / halfway
    return full * min(1.0, done / (ramp * moment.epochs))
