"""Whither labels go wrong, by the input itself: step 3 of Algorithm 1 from all examples.

The transition network learns from collected examples, of which few have wrong labels. Once there is
a classifier f of right labels, every example says something of T*(x): it is of class i with

    P(Y* = i | x, noisy label) ∝ f_i(x) T*(x)[i, noisy label],

and Eq. 3 is weighed by that instead of being taken where f is sure (steps of expectation
maximisation). What is learned so is the linear part of T*(x), see :mod:`bltm.nets.redirect`.

f has seen the labels and is surer than it can be, and a linear function of the pixels may say
nothing of how people err. So the likelihood of held-out noisy labels under f·T*(x) chooses a
temperature for f and the penalty of the weights; if it does not gain, T*(x) stays as it is.

Nor may T*(x) explain a label by having seen it: a right label that f takes for wrong would be
learned as a flip and confirm f. What classifiers are corrected by is cross-fitted. And at x only
the row of x's own class has been learned; another could say that its labels go where those of x
come from, and the classifier could take the one class for the other. So classifiers are corrected
by rows that are redirected as far as f holds x for one of their class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from bltm.core.blocks import block_rows, blocks
from bltm.core.matrix import log_entries
from bltm.core.posterior import right_label_posterior
from bltm.core.records import IntArray, Posterior
from bltm.data.splits import folds
from bltm.engine.class_transition import doubted_examples
from bltm.engine.job import Job
from bltm.engine.predict import predict
from bltm.engine.transition_model import TransitionModel, column_of_given_label
from bltm.nets.redirect import RedirectedHead, Seeing, view_size
from bltm.nets.transition import TransitionNetwork
from bltm.transition.destinations import learn_destinations

Floats = NDArray[np.float32]
TEMPERATURES = (1.0, 1.5, 2.0)
# From the strongest to the weakest; the temperature is chosen with the one in the middle.
PENALTIES = (100.0, 30.0, 10.0, 3.0, 1.0)
STEPS = 2
FOLDS = 3
# With fewer held-out labels chance decides, and T*(x) stays as it was learned.
LEAST_LABELS = 200
# Weights that are learned without a thought for time: those of 22 classes and 8×8 pixels in colour.
MOST_WEIGHTS = 100_000
# A linear function needs no more examples.
MOST_EXAMPLES = 50_000
# Examples that are less likely of a class have no say in where its labels go.
LEAST_BELIEF = 1e-3
# A number of the view that hardly varies is not enlarged beyond this.
LEAST_SCALE = 0.05


class Redirected(NamedTuple):
    """T*(x) with flips redirected by the input, and what came of it.

    ``columns`` is what classifiers are corrected by, shape (N, C), or None where T*(x) is as it
    was: ``log T*(x)[:, noisy label]`` of all N examples, by weights that have not seen their labels
    and in each row redirected as far as f holds x for one of that class.
    ``gained`` is the log-likelihood that held-out labels gain.
    """

    model: TransitionModel
    columns: torch.Tensor | None = None
    gained: float = 0.0


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned, and how it was chosen.

    ``weights``, shape (C, C, d + 1), have seen the labels of all M examples that were learned from;
    ``unseen``, shape (M, C), are columns of T*(x) by weights that have not. ``mean`` and ``scale``
    are those of the view, shape (d,).
    """

    weights: Floats
    unseen: Floats
    mean: Floats
    scale: Floats
    temperature: float
    penalty: float
    gain: float


def redirect(job: Job, stage: str, model: TransitionModel, belief: Posterior) -> Redirected:
    """Return T*(x) with flips redirected by the input, as far as held-out labels bear it out.

    Parameters
    ----------
    job, stage
        The fit, and the stage's name. Trusted labels say nothing of the noise.
    model
        T*(x) so far.
    belief
        What the classifier of a round before makes of all examples.
    """
    size, classes = view_size(job.data.examples.shape), job.data.n_classes
    held_out = job.split.validation[~job.data.trusted[job.split.validation]]
    # Between two classes a flip has one place to go.
    if classes == 2 or len(held_out) < LEAST_LABELS or classes**2 * size > MOST_WEIGHTS:
        return Redirected(model)
    network = model.network.redirected(job.data.examples.shape)
    assert isinstance(network.trunk, Seeing)
    assert isinstance(network.head, RedirectedHead)
    network.to(job.bench.device).requires_grad_(False).eval()
    train = _learned_from(job, stage)

    def compute() -> Learned:
        return _Learner(job, network, belief, train, held_out).learn()

    found = job.bench.record(stage, Learned, compute)
    if found.gain <= 0.0:
        return Redirected(model)
    network.trunk.view.mean.copy_(torch.from_numpy(found.mean))
    network.trunk.view.scale.copy_(torch.from_numpy(found.scale))
    network.head.set(found.weights)
    redirected = TransitionModel(network).requires_grad_(False).eval()
    columns = column_of_given_label(job, redirected)
    columns[torch.from_numpy(train)] = log_entries(torch.from_numpy(found.unseen))
    own = _softened(torch.from_numpy(belief.probs), found.temperature)
    as_before = column_of_given_label(job, model)
    columns = log_entries(own * columns.exp() + (1.0 - own) * as_before.exp())
    return Redirected(redirected, columns, found.gain)


def _softened(probs: torch.Tensor, tau: float) -> torch.Tensor:
    """Return probabilities at a temperature."""
    return (log_entries(probs) / tau).softmax(1)


def _learned_from(job: Job, stage: str) -> IntArray:
    """Return the training examples that weights are learned from; of very many, some."""
    train = doubted_examples(job)
    if len(train) <= MOST_EXAMPLES:
        return train
    chosen = job.bench.stream(stage, "examples").permutation(len(train))[:MOST_EXAMPLES]
    return train[np.sort(chosen)]


class _Learner:
    """Steps of expectation maximisation, and the choice of temperature and penalty.

    All M + H arrays are of the examples that are learned from and, behind them, of those held out.
    Weights have shape (FOLDS, C, C, d + 1): those of a fold have not seen its labels.
    """

    def __init__(
        self,
        job: Job,
        network: TransitionNetwork,
        belief: Posterior,
        train: IntArray,
        held_out: IntArray,
    ) -> None:
        assert isinstance(network.head, RedirectedHead)
        self.head = network.head
        every = np.concatenate([train, held_out])
        self.labels, self.weights = job.data.labels[every], job.data.weights[every]
        self.f = torch.from_numpy(belief.probs[every])
        self.train, self.held_out = np.split(np.arange(len(every)), [len(train)])
        self.fold = folds(job.data, train, FOLDS, job.bench.seed)
        fabric, examples = job.bench.fabric, job.data.examples
        parts = [
            predict(network, examples, part, fabric, lambda x, _: network.features(x))
            for part in (train, held_out)
        ]
        self.inner, view = np.split(torch.cat(parts).numpy(), [-self.head.n_view], axis=1)
        self.mean = view[self.train].mean(axis=0)
        self.scale = np.maximum(view[self.train].std(axis=0), LEAST_SCALE)
        self.view = (view - self.mean) / self.scale

    def learn(self) -> Learned:
        """Return what was learned with the temperature and penalty that held-out labels prefer."""
        classes = self.head.n_classes
        nothing = np.zeros((FOLDS, classes, classes, self.head.n_view + 1), dtype=np.float32)
        before = max(self._judge(nothing, tau) for tau in TEMPERATURES)
        middle = PENALTIES[len(PENALTIES) // 2]
        first = {tau: self._step(nothing, tau, middle) for tau in TEMPERATURES}
        tau = max(TEMPERATURES, key=lambda tau: self._judge(first[tau], tau))
        weights, best = nothing, (-np.inf, nothing, 0.0)
        for penalty in PENALTIES:
            for _ in range(STEPS):
                weights = self._step(weights, tau, penalty)
            likelihood = self._judge(weights, tau)
            if likelihood <= best[0]:
                break
            best = (likelihood, weights, penalty)
        likelihood, weights, penalty = best
        right, everyone = self._right(weights, tau), np.ones(len(self.train), dtype=bool)
        return Learned(
            weights=self._fitted(weights.mean(axis=0), right, everyone, penalty),
            unseen=self._unseen(weights),
            mean=self.mean,
            scale=self.scale,
            temperature=tau,
            penalty=penalty,
            gain=likelihood - before,
        )

    def _step(self, weights: Floats, tau: float, penalty: float) -> Floats:
        """Return the weights after one step: whose labels they are, then whither they went."""
        right = self._right(weights, tau)
        return np.stack(
            [
                self._fitted(own, right, self.fold != number, penalty)
                for number, own in enumerate(weights)
            ]
        )

    def _right(self, weights: Floats, tau: float) -> Floats:
        """Return the weighted P(right label | x, given label) of the training examples, (M, C)."""
        right, _ = right_label_posterior(self._softened(self.train, tau), self._unseen(weights))
        right *= self.weights[self.train, None].astype(np.float32)
        return right

    def _fitted(
        self, start: Floats, right: Floats, used: NDArray[np.bool_], penalty: float
    ) -> Floats:
        """Return weights (C, C, d + 1) that were learned from some of the training examples."""
        labels, found = self.labels[self.train], np.empty_like(start)
        for label, own in enumerate(start):
            chosen = np.flatnonzero(used & (right[:, label] > LEAST_BELIEF) & (labels != label))
            log_belief = self._log_rows(chosen, label)
            log_belief[:, label] = -np.inf
            found[label] = learn_destinations(
                self.view[chosen], labels[chosen], right[chosen, label], log_belief, penalty, own
            )
        return found

    def _judge(self, weights: Floats, tau: float) -> float:
        """Return the mean log-likelihood of held-out labels, by the mean weights of all folds."""
        columns = self._columns(weights.mean(axis=0), self.held_out)
        _, likelihood = right_label_posterior(self._softened(self.held_out, tau), columns)
        likelihood = likelihood.clip(np.finfo(np.float32).tiny)
        return float(np.average(np.log(likelihood), weights=self.weights[self.held_out]))

    def _unseen(self, weights: Floats) -> Floats:
        """Return the columns of the training examples, by weights that have not seen them."""
        columns = np.empty((len(self.train), self.head.n_classes), dtype=np.float32)
        for number, own in enumerate(weights):
            fold = np.flatnonzero(self.fold == number)
            columns[fold] = self._columns(own, fold)
        return columns

    def _softened(self, index: IntArray, tau: float) -> Floats:
        softened: Floats = _softened(self.f[index], tau).numpy()
        return softened

    def _log_rows(self, index: IntArray, label: int) -> Floats:
        """Return log rows of T*(x) as it is before flips are redirected, shape (M, C)."""
        inner = torch.from_numpy(self.inner[index]).to(self.head.bias.device)
        own = torch.full((len(index),), label, device=inner.device)
        log_rows: Floats = self.head.inner.rows(inner, own)[0].cpu().numpy()
        return log_rows

    def _columns(self, weights: Floats, index: IntArray) -> Floats:
        """Return T*(x)[:, given label], shape (M, C)."""
        self.head.set(weights)
        columns = np.empty((len(index), self.head.n_classes), dtype=np.float32)
        for rows in blocks(len(index), block_rows(self.head.n_classes**2)):
            part = index[rows]
            features = np.concatenate([self.inner[part], self.view[part]], axis=1)
            found = self.head.log_columns(
                torch.from_numpy(features).to(self.head.bias.device),
                torch.from_numpy(self.labels[part]).to(self.head.bias.device),
            )
            columns[rows] = found.exp().cpu().numpy()
        return columns
