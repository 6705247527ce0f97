"""Polynomial-margin-diminishing noise: labels go wrong where a classifier hesitates.

References
----------
Zhang et al., Learning with feature-dependent label noise: a progressive approach, ICLR 2021.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bltm.core.errors import InputError
from bltm.core.matrix import FloatArray, check_rows, sample_rows
from bltm.core.random import derived_seed, stream
from bltm.core.records import IntArray
from bltm.noise.inputs import check_choice, check_features, check_labels, check_rate
from bltm.noise.record import NoisyLabels, assemble, unchanged

KINDS = ("I", "II", "III")
SCALES = ("keep_div", "tau_mul")
LOG_FACTORS = (-20.0, 20.0)


def pmd_noise(
    x: Any,
    y: ArrayLike,
    rate: float | None,
    seed: int,
    n_classes: int | None = None,
    *,
    kind: str = "I",
    scale: str = "keep_div",
    factor: float | None = None,
    eta: ArrayLike | None = None,
) -> NoisyLabels:
    """Give each example the first or second class of a clean classifier, by their margin.

    With u and s the two most probable classes under ``eta`` and ``D = eta_u - eta_s``, the label
    is s with probability tau(D) and u otherwise; see `flip_probability`. The clean label does not
    enter: where u differs from it the label is wrong from the start. So all rows of T(x) are
    equal, and the noise rate is measured against ``y``.

    Parameters
    ----------
    x
        Features; used only if ``eta`` is None.
    y
        Clean labels, shape (n,).
    rate
        Wanted noise rate; ``factor`` is then found by bisection. Rate 0 returns ``y``. None if
        ``factor`` is given.
    seed
        Seed of the streams of labels and folds.
    n_classes
        Number of classes C; by default that of ``eta``, or the largest label plus one.
    kind
        Type I, II or III.
    scale
        ``keep_div`` divides the probability of keeping u by the factor, as the public code does;
        ``tau_mul`` multiplies tau by it, as the text describes.
    factor
        The factor f; 1 leaves tau as it is.
    eta
        Clean class posteriors, shape (n, C), best judged on examples the classifier was not
        trained on. By default those of `out_of_fold_posterior`.

    Examples
    --------
    >>> eta = np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> pmd_noise(None, [0, 0], None, seed=0, eta=eta, factor=1).row.round(2).tolist()
    [[0.82, 0.18], [0.52, 0.48]]
    """
    given = None if eta is None else check_rows(eta, "eta", atol=1e-4)
    if given is not None and n_classes is None:
        n_classes = given.shape[-1]
    labels, count = check_labels(y, n_classes)
    if given is not None and given.shape != (len(labels), count):
        raise InputError("eta", f"needs shape {(len(labels), count)}, got {given.shape}")
    check_choice("kind", kind, KINDS)
    check_choice("scale", scale, SCALES)
    if (rate is None) == (factor is None):
        raise InputError(
            "rate", f"is {rate!r} and factor is {factor!r}", "Give one of the two, None the other."
        )
    if factor is not None and not 0.0 < factor < np.inf:
        raise InputError("factor", f"must be positive, got {factor}", "1 leaves tau as it is.")
    source = "out-of-fold logistic regression" if given is None else "given"
    options = {"kind": kind, "scale": scale, "factor": factor, "eta": source}
    nominal = None if rate is None else check_rate(rate, 1.0)
    if nominal == 0.0:
        return unchanged(model="pmd", seed=seed, y=labels, n_classes=count, options=options)
    posterior = out_of_fold_posterior(x, labels, count, seed) if given is None else given
    if factor is None:
        factor = factor_for_rate(posterior, labels, check_rate(nominal, 1.0), kind, scale)
    options = {**options, "factor": factor}
    row = _rows(posterior, factor, kind, scale)
    expected = float(1.0 - row[np.arange(len(labels)), labels].mean())
    return assemble(
        model="pmd",
        rate=expected if nominal is None else nominal,
        seed=seed,
        y=labels,
        y_noisy=sample_rows(row, stream(seed, "noise", "labels")),
        row=row,
        x=posterior,
        options=options,
        transition_of=lambda index: np.repeat(row[index][:, None, :], count, axis=1),
    )


def flip_probability(
    margin: FloatArray, kind: str = "I", factor: float = 1.0, scale: str = "keep_div"
) -> FloatArray:
    """Return the probability of the second class for margins D in [0, 1].

    tau is ``1/2 - D^2/2`` (type I), ``1 - D^3`` (II) or ``1 - (D^3 + D^2 + D)/3`` (III). With
    ``keep_div`` the result is ``1 - (1 - tau)/f``, with ``tau_mul`` it is ``f tau``, both clipped
    to [0, 1].

    Examples
    --------
    >>> flip_probability(np.array([0.0, 0.5, 1.0])).tolist()
    [0.5, 0.375, 0.0]
    """
    tau = {
        "I": 0.5 - margin**2 / 2,
        "II": 1 - margin**3,
        "III": 1 - (margin**3 + margin**2 + margin) / 3,
    }[kind]
    scaled = 1 - (1 - tau) / factor if scale == "keep_div" else factor * tau
    return np.clip(scaled, 0.0, 1.0)


def factor_for_rate(
    eta: FloatArray, y: IntArray, rate: float, kind: str = "I", scale: str = "keep_div"
) -> float:
    """Find by bisection the factor f at which the expected noise rate is ``rate``.

    Examples
    --------
    >>> eta = np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> round(factor_for_rate(eta, np.array([0, 0]), 0.5, scale="tau_mul"), 3)
    1.515
    """
    from scipy.optimize import bisect

    everyone = np.arange(len(y))

    def excess(log_factor: float) -> float:
        row = _rows(eta, math.exp(log_factor), kind, scale)
        return float(1.0 - row[everyone, y].mean()) - rate

    low, high = (excess(end) for end in LOG_FACTORS)
    # Where eta is wrong a larger factor mends labels, so the rate need not grow with the factor;
    # it is continuous, and a change of sign is all that bisection needs.
    if low * high > 0:
        lowest, highest = sorted((low + rate, high + rate))
        raise InputError(
            "rate",
            f"must lie in [{lowest:.3g}, {highest:.3g}] for this eta, got {rate:g}",
            "Labels are wrong from the start where the first class of eta is not y; "
            "give a better eta for a lower rate.",
        )
    return math.exp(bisect(excess, *LOG_FACTORS, xtol=1e-12))


def out_of_fold_posterior(x: Any, y: ArrayLike, n_classes: int, seed: int) -> FloatArray:
    """Estimate clean posteriors by logistic regression, each example judged out of its fold.

    Five stratified folds, fewer if a class has fewer examples; features are standardised. Classes
    without examples get probability zero.

    Examples
    --------
    >>> x = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]])
    >>> eta = out_of_fold_posterior(x, [0, 0, 0, 1, 1, 1], 2, seed=0)
    >>> eta.argmax(axis=1).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if x is None:
        raise InputError("x", "is None and so is eta", "Give features or posteriors eta (n, C).")
    labels, count = check_labels(y, n_classes)
    features = check_features(x, len(labels)).astype(np.float64)
    present, sizes = np.unique(labels, return_counts=True)
    if len(present) < 2 or sizes.min() < 2:
        raise InputError(
            "y",
            f"has {len(present)} classes, the smallest with {sizes.min()} examples",
            "Posteriors need two examples of each of two classes; give eta instead.",
        )
    folds = StratifiedKFold(
        n_splits=min(5, int(sizes.min())),
        shuffle=True,
        random_state=derived_seed(seed, "noise", "folds") % 2**32,
    )
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    eta = np.zeros((len(labels), count))
    eta[:, present] = cross_val_predict(
        classifier, features, labels, cv=folds, method="predict_proba"
    )
    return eta


def _rows(eta: FloatArray, factor: float, kind: str, scale: str) -> FloatArray:
    order = np.argsort(-eta, axis=1, kind="stable")
    first, second = order[:, 0], order[:, 1]
    everyone = np.arange(len(eta))
    margin = eta[everyone, first] - eta[everyone, second]
    flip = flip_probability(margin, kind, factor, scale)
    row = np.zeros_like(eta)
    row[everyone, first] = 1.0 - flip
    row[everyone, second] = flip
    return row
