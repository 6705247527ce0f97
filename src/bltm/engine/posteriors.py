"""Noisy class posteriors P(noisy label | x): of a network, cross-fitted, or of the user's model.

Section 4.2 needs them, and so does every method that estimates a transition matrix. In-sample
posteriors come from a model that has seen the labels it is asked about; cross-fitted ones do not.

Where two labels are about equally common among like examples, it is chance which of them a network
finds likelier in the end. Early in training it sees no difference between an example and others of
its kind, whose labels it knows. The mean over the epochs keeps both; it is less sure than it can
be, which a temperature mends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter
from torch import nn

from bltm.core.errors import InputError
from bltm.core.random import derived_seed
from bltm.core.records import Examples, FloatArray, IntArray, Posterior, Split
from bltm.data.splits import folds
from bltm.engine.batches import Moment
from bltm.engine.job import Job
from bltm.engine.predict import predict
from bltm.engine.schedule import Schedule
from bltm.engine.stage import Modules
from bltm.engine.supervised import cross_entropy_step, fit_cross_entropy, noisy_label_score

Probs = NDArray[np.float32]
Fit = Callable[[Job, str], nn.Module]
Judge = Callable[[Job, str], Probs]
# In steps of five per cent: rounding must not decide.
TEMPERATURES = np.geomspace(0.25, 4.0, 57)


def network_probs(job: Job, network: nn.Module) -> Probs:
    """Return a classification network's probabilities for all N examples."""
    return torch.softmax(job.outputs(network), dim=1).numpy()


def in_sample_posterior(job: Job, network: nn.Module) -> Posterior:
    """Return the posteriors of a network that was trained on these labels."""
    return Posterior(network_probs(job, network), False, "network")


def cross_fitted_posterior(job: Job, stage: str, schedule: Schedule, k: int) -> Posterior:
    """Return posteriors in which no example is judged by a network that saw its label.

    The training split is cut into ``k`` folds; each fold is judged by a network trained on the
    others. Examples outside the training split are judged by the mean of all networks.
    """

    def judge(rest: Job, name: str) -> Probs:
        return network_probs(rest, fit_cross_entropy(rest, name, schedule))

    return cross_fitted(job, stage, k, judge)


def averaged_posterior(job: Job, stage: str, schedule: Schedule, k: int) -> Posterior:
    """Return cross-fitted posteriors that are the mean over the networks' epochs, calibrated."""
    posterior = cross_fitted(
        job, stage, k, lambda rest, name: mean_over_epochs(rest, name, schedule)
    )
    return calibrated(job, posterior)


def mean_over_epochs(job: Job, stage: str, schedule: Schedule) -> Probs:
    """Return what a network makes of examples it does not learn from, the mean over its epochs.

    Rows of examples that it learns from are zero.
    """
    unseen = np.setdiff1d(np.arange(len(job.data)), job.split.train)
    classifier = job.new_classifier(stage)

    def add(probs: torch.Tensor) -> None:
        logits = predict(classifier, job.data.examples, unseen, job.bench.fabric)
        probs[torch.from_numpy(unseen)] += torch.softmax(logits, dim=1)

    def remember(modules: Modules, moment: Moment) -> None:
        if moment.epoch:
            add(moment.memory["probs"])

    outcome = job.train(
        stage,
        {"classifier": classifier},
        cross_entropy_step,
        schedule,
        score=noisy_label_score,
        memory={"probs": torch.zeros(len(job.data), job.data.n_classes)},
        before_epoch=remember,
    )
    total = outcome.memory["probs"].clone()
    add(total)
    mean: Probs = (total / max(outcome.epochs, 1)).numpy()
    return mean


def calibrated(job: Job, posterior: Posterior) -> Posterior:
    """Return posteriors at the temperature at which the given labels are likeliest.

    They have to be out of sample. Labels that the user trusts say nothing of noisy ones.
    """
    from scipy.special import log_softmax, softmax

    data, index = job.data, job.split.all
    asked = index[~data.trusted[index]]
    if len(asked) == 0:
        return posterior
    log_probs = np.log(np.maximum(posterior.probs, np.finfo(np.float32).tiny))
    own, labels, weights = log_probs[asked].astype(np.float64), data.labels[asked], data.weights

    def likelihood(temperature: float) -> float:
        given = log_softmax(own / temperature, axis=1)[np.arange(len(own)), labels]
        return float(given @ weights[asked])

    temperature = max(TEMPERATURES, key=likelihood)
    probs = softmax(log_probs / np.float32(temperature), axis=1).astype(np.float32)
    return replace(posterior, probs=probs)


def cross_fitted(job: Job, stage: str, k: int, judge: Judge) -> Posterior:
    """Return what networks make of examples whose labels they have not seen.

    Parameters
    ----------
    job, stage, k
        The fit, the name of the stage, and the number of folds.
    judge
        Trains a network on the training split of a job, under a name, and returns what it makes of
        examples outside of that, shape (N, C).
    """
    train = job.split.train
    fold_of = folds(job.data, train, k, job.bench.seed)
    k = int(fold_of.max()) + 1
    own_fold = _spread(fold_of, train, job.data.group)
    probs = np.zeros((len(job.data), job.data.n_classes), dtype=np.float32)
    for number in range(k):
        rest = replace(job, split=Split(train[fold_of != number], job.split.validation))
        fold_probs = judge(rest, f"{stage}/fold-{number + 1}")
        probs += np.where((own_fold == number)[:, None], fold_probs, 0.0)
        probs += np.where((own_fold < 0)[:, None], fold_probs / k, 0.0)
    return Posterior(probs, True, f"{k} cross-fitted networks")


def model_posterior(job: Job, model: Any, k: int | None) -> Posterior:
    """Return the posteriors of a scikit-learn classifier, cross-fitted when ``k`` is given.

    Parameters
    ----------
    job
        The fit.
    model
        Any classifier with ``predict_proba``; it is cloned, and sees flat numeric inputs.
    k
        Number of folds, or None for in-sample posteriors.
    """
    if not hasattr(model, "predict_proba"):
        raise InputError(
            "posterior",
            f"{type(model).__name__} has no predict_proba",
            "Give a probabilistic classifier such as LogisticRegression().",
        )
    inputs = flat_inputs(job.data.examples)
    train, everyone = job.split.train, np.arange(len(job.data))
    if k is None:
        probs = _fitted_probs(job, model, inputs, train, everyone)
        return Posterior(probs, False, type(model).__name__)
    fold_of = folds(job.data, train, k, job.bench.seed)
    own_fold = _spread(fold_of, train, job.data.group)
    probs = np.zeros((len(job.data), job.data.n_classes), dtype=np.float32)
    n_folds = int(fold_of.max()) + 1
    for number in range(n_folds):
        fold_probs = _fitted_probs(job, model, inputs, train[fold_of != number], everyone)
        probs += np.where((own_fold == number)[:, None], fold_probs, 0.0)
        probs += np.where((own_fold < 0)[:, None], fold_probs / n_folds, 0.0)
    return Posterior(probs, True, f"cross-fitted {type(model).__name__}")


def flat_inputs(examples: Examples) -> Probs:
    """Return all inputs as rows of numbers, for models that are not networks."""
    index = [torch.arange(len(examples))]
    batches = examples.batches(index, torch.device("cpu"))
    return torch.cat([x.reshape(len(x), -1) for x in batches]).numpy()


def _fitted_probs(job: Job, model: Any, inputs: Probs, train: IntArray, index: IntArray) -> Probs:
    fitted = clone(model)
    if "random_state" in fitted.get_params():
        fitted.set_params(random_state=derived_seed(job.bench.seed, "posterior") % 2**31)
    _fit_weighted(fitted, inputs[train], job.data.labels[train], job.data.weights[train])
    probs = np.zeros((len(index), job.data.n_classes), dtype=np.float32)
    probs[:, np.asarray(fitted.classes_, dtype=np.int64)] = fitted.predict_proba(inputs[index])
    return probs


def _fit_weighted(model: Any, inputs: Probs, labels: IntArray, weights: FloatArray) -> None:
    """Fit a model on weighted rows; one that takes no weights gets whole weights as copies."""
    if (weights == weights[0]).all():
        model.fit(inputs, labels)
    elif has_fit_parameter(model, "sample_weight"):
        model.fit(inputs, labels, sample_weight=weights)
    elif (weights == np.round(weights)).all():
        rows = np.repeat(np.arange(len(labels)), weights.astype(np.int64))
        model.fit(inputs[rows], labels[rows])
    else:
        raise InputError(
            "posterior",
            f"{type(model).__name__} takes no sample_weight, and the weights are not whole numbers",
            "Give a model whose fit has sample_weight, such as LogisticRegression().",
        )


def _spread(fold_of: IntArray, train: IntArray, group: IntArray) -> IntArray:
    """Return the fold of every example; copies share it, and -1 means none."""
    by_group = np.full(int(group.max()) + 1, -1, dtype=np.int64)
    by_group[group[train]] = fold_of
    return by_group[group]
