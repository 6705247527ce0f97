"""Whither labels go wrong, by the input itself: step 3 of Algorithm 1 from all examples.

The transition network learns from collected examples, of which few have wrong labels. Once there is
a classifier f of right labels, every example says something of T*(x): it is of class i with

    P(Y* = i | x, noisy label) ∝ f_i(x) T*(x)[i, noisy label],

and Eq. 3 is weighed by that instead of being taken where f is sure (steps of expectation
maximisation). What is learned so is the linear part of T*(x), see :mod:`bltm.nets.redirect`.

f has seen the labels and is surer than it can be, and a linear function of the pixels may say
nothing of how people err. So the likelihood of held-out noisy labels under f·T*(x) chooses a
temperature for f and the penalty of the weights; if it does not gain, T*(x) stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from bltm.core.blocks import blocks
from bltm.core.matrix import log_entries
from bltm.core.posterior import right_label_posterior
from bltm.core.records import FloatArray, IntArray, Posterior
from bltm.engine.class_transition import doubted_examples
from bltm.engine.job import Job
from bltm.engine.transition_model import TransitionModel
from bltm.nets.redirect import RedirectedHead, Seeing, view_size
from bltm.nets.transition import TransitionNetwork
from bltm.transition.destinations import learn_destinations

Floats = NDArray[np.float32]
TEMPERATURES = (1.0, 1.5, 2.0)
# From the strongest to the weakest; the temperature is chosen with the one between.
PENALTIES = (100.0, 30.0, 10.0, 3.0, 1.0)
MIDDLE = 10.0
STEPS = 2
# With fewer held-out labels chance decides, and T*(x) stays as it was learned.
LEAST_LABELS = 200
# Weights that are learned without a thought for time: those of 30 classes and 8×8 pixels in colour.
MOST_WEIGHTS = 200_000
# Examples that are less likely of a class have no say in where its labels go.
LEAST_BELIEF = 1e-3
# A column of the bare input that hardly varies is not enlarged beyond this.
LEAST_SCALE = 0.05
ROWS = 4096


@dataclass(frozen=True, eq=False)
class Redirection:
    """What was learned: weights (C, C, d + 1), or none where held-out labels do not gain.

    ``mean`` and ``scale`` are those of the view, shape (d,); ``temperature`` is that of f, and
    ``penalty`` that of the weights; ``gain`` is what held-out labels gain, in nats.
    """

    weights: Floats
    mean: Floats
    scale: Floats
    temperature: float
    penalty: float
    gain: float


def redirect(
    job: Job, stage: str, model: TransitionModel, belief: Posterior
) -> tuple[TransitionModel, float]:
    """Return T*(x) with flips redirected by the input, and the log-likelihood gained by it.

    Parameters
    ----------
    job, stage
        The fit, and the stage's name. Trusted labels say nothing of the noise.
    model
        T*(x) so far.
    belief
        What the classifier of the round before makes of all examples.
    """
    size, classes = view_size(job.data.examples.shape), job.data.n_classes
    held_out = job.split.validation[~job.data.trusted[job.split.validation]]
    # Between two classes a flip has one place to go.
    if classes == 2 or len(held_out) < LEAST_LABELS or classes**2 * size > MOST_WEIGHTS:
        return model, 0.0
    network = model.network.redirected(job.data.examples.shape)
    assert isinstance(network.trunk, Seeing)
    assert isinstance(network.head, RedirectedHead)
    network.to(job.bench.device).requires_grad_(False).eval()

    def compute() -> Redirection:
        return _Learner(job, network, belief, held_out).learn()

    found = job.bench.record(stage, Redirection, compute)
    if found.gain <= 0.0:
        return model, 0.0
    view = network.trunk.view
    view.mean.copy_(torch.from_numpy(found.mean))
    view.scale.copy_(torch.from_numpy(found.scale))
    _set(network.head, found.weights)
    return TransitionModel(network).requires_grad_(False).eval(), found.gain


class _Learner:
    """Steps of expectation maximisation, and the choice of temperature and penalty."""

    def __init__(
        self, job: Job, network: TransitionNetwork, belief: Posterior, held_out: IntArray
    ) -> None:
        head = network.head
        assert isinstance(head, RedirectedHead)
        self.head, self.labels = head, job.data.labels
        self.weights, self.held_out = job.data.weights, held_out
        self.train = doubted_examples(job)
        # The view is scaled by what is learned from, after the network has made it.
        features = job.outputs(network, lambda x, _: network.features(x)).numpy()
        inner, view = np.split(features, [-head.n_view], axis=1)
        self.mean = view[self.train].mean(axis=0)
        self.scale = np.maximum(view[self.train].std(axis=0), LEAST_SCALE).astype(np.float32)
        self.view = (view - self.mean) / self.scale
        self.features = torch.from_numpy(np.concatenate([inner, self.view], axis=1))
        self.log_f = log_entries(torch.from_numpy(belief.probs))
        self.used = np.concatenate([self.train, held_out])

    def learn(self) -> Redirection:
        """Return the weights of the temperature and penalty that held-out labels like best."""
        nothing = np.zeros((*self.head.bias.shape, self.head.n_view + 1), dtype=np.float32)
        before = max(self._judge(nothing, tau) for tau in TEMPERATURES)
        first = {tau: self._improved(nothing, tau, MIDDLE) for tau in TEMPERATURES}
        tau = max(TEMPERATURES, key=lambda tau: self._judge(first[tau], tau))
        weights, best = nothing, (-np.inf, nothing, 0.0)
        for penalty in PENALTIES:
            for _ in range(STEPS):
                weights = self._improved(weights, tau, penalty)
            likelihood = self._judge(weights, tau)
            if likelihood < best[0]:
                break
            best = (likelihood, weights, penalty)
        gained, weights, penalty = best
        return Redirection(weights, self.mean, self.scale, tau, penalty, gained - before)

    def _improved(self, weights: Floats, tau: float, penalty: float) -> Floats:
        """Return the weights after one step: whose label an example's is, then whither it went."""
        labels = self.labels[self.train]
        right, _ = right_label_posterior(
            self._softened(self.train, tau), self._columns(weights, self.train)
        )
        right *= self.weights[self.train, None].astype(np.float32)
        found = np.empty_like(weights)
        for label, start in enumerate(weights):
            chosen = np.flatnonzero((right[:, label] > LEAST_BELIEF) & (labels != label))
            index = self.train[chosen]
            inner = self.features[index, : -self.head.n_view].to(self.head.bias.device)
            own = torch.full((len(index),), label, device=inner.device)
            log_belief = self.head.inner.rows(inner, own)[0].cpu().numpy()
            log_belief[:, label] = -np.inf
            found[label] = learn_destinations(
                self.view[index], labels[chosen], right[chosen, label], log_belief, penalty, start
            )
        return found

    def _judge(self, weights: Floats, tau: float) -> float:
        """Return the mean log-likelihood of held-out labels."""
        f, columns = self._softened(self.held_out, tau), self._columns(weights, self.held_out)
        likelihood = np.log(np.einsum("nc,nc->n", f, columns).clip(np.finfo(np.float32).tiny))
        return float(np.average(likelihood, weights=self.weights[self.held_out]))

    def _softened(self, index: IntArray, tau: float) -> Floats:
        return (self.log_f[index] / tau).softmax(1).numpy()

    @torch.no_grad()
    def _columns(self, weights: Floats, index: IntArray) -> Floats:
        """Return T*(x)[:, given label] of some examples, shape (M, C)."""
        _set(self.head, weights)
        device = self.head.bias.device
        given = torch.from_numpy(self.labels)
        found = []
        for rows in blocks(len(index), ROWS):
            part = torch.from_numpy(index[rows])
            features = self.features[part].to(device)
            found.append(self.head.log_columns(features, given[part].to(device)).cpu())
        return torch.cat(found).exp().numpy()


def _set(head: RedirectedHead, weights: Floats | FloatArray) -> None:
    values = torch.from_numpy(weights)
    head.weight.copy_(values[..., :-1])
    head.bias.copy_(values[..., -1])
