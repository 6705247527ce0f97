"""Whether the noise is instance-dependent at all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bltm.audit.findings import Diagnosis
from bltm.audit.intervals import Z
from bltm.audit.transitions import ClassTransition, Codes, Floats, Transition
from bltm.core.posterior import right_label_posterior

FEWEST = 50
SIGNIFICANT = 0.01
SWEEPS = 15
# Pseudo-examples for each row of the class-dependent T.
PRIOR = 10.0
# Examples, and probabilities in all, that one T is fitted on.
MOST, MOST_ENTRIES = 20_000, 2**23
FLOOR = 1e-12
# A gain in log-likelihood per example that would be worth having.
NOTABLE = 0.02

SIMPLER = (
    "A method with one T for all examples, such as --method forward or --method t-revision, is "
    "simpler and as good here"
)


def fit_class_transition(f: Floats, labels: Codes, start: NDArray[np.float64]) -> ClassTransition:
    """Return the one T under which the given labels are most probable, for a fixed f.

    Expectation maximisation, from a matrix to start with, (C, C). Each row has a few
    pseudo-examples that are spread as in that matrix.

    Examples
    --------
    >>> f = np.repeat(np.eye(2, dtype=np.float32), 1000, axis=0)
    >>> labels = np.array([0] * 800 + [1] * 1200)
    >>> fit_class_transition(f, labels, np.full((2, 2), 0.5)).T.round(1).tolist()
    [[0.8, 0.2], [0.0, 1.0]]
    """
    n_classes = f.shape[1]
    order = np.argsort(labels, kind="stable")
    f, labels = f[order], labels[order]
    first = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
    prior = PRIOR * (0.9 * start + 0.1 / n_classes)
    found = ClassTransition(start)
    for _ in range(SWEEPS):
        right, _ = right_label_posterior(f, found.columns(slice(None), labels))
        counts = prior.copy()
        counts[:, labels[first]] += np.add.reduceat(right, first, axis=0, dtype=np.float64).T
        found = ClassTransition(counts / counts.sum(axis=1, keepdims=True))
    return found


def diagnose(
    probs: NDArray[np.floating[Any]],
    labels: Codes,
    transition: Transition | None,
    likelihood: Floats,
    fitted_on: NDArray[np.integer[Any]],
    held_out: NDArray[np.integer[Any]],
    start: NDArray[np.float64],
    rng: np.random.Generator,
) -> Diagnosis:
    """Compare how well T(x) and one T predict the labels of held-out examples.

    Parameters
    ----------
    probs
        f, shape (N, C).
    labels
        Given labels as codes, shape (N,).
    transition
        T(x).
    likelihood
        ``Σ_i f_i(x) T(x)[i, given label]``, shape (N,).
    fitted_on, held_out
        Examples to fit one T on, and examples whose labels neither f nor T has seen. Where both
        are the same, one half serves for the other.
    start
        A matrix to start from, (C, C).
    rng
        Random numbers.
    """
    if transition is None:
        return _nothing(0, "There is no T(x), so whether the noise depends on the example is open.")
    if isinstance(transition, ClassTransition):
        return _nothing(0, "There is one T for all examples, so nothing is compared.")
    if len(held_out) < FEWEST:
        return _nothing(
            len(held_out),
            f"Only {len(held_out)} examples were held out; whether the noise is "
            "instance-dependent cannot be told from so few.",
        )
    most = max(FEWEST, min(MOST, MOST_ENTRIES // probs.shape[1]))

    def sample(index: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        found = np.asarray(index, dtype=np.int64)
        return found if len(found) <= most else np.sort(rng.choice(found, most, replace=False))

    if np.array_equal(fitted_on, held_out):
        one, other = np.array_split(rng.permutation(sample(held_out)), 2)
        pairs = [(one, other), (other, one)]
    else:
        pairs = [(sample(fitted_on), sample(held_out))]
    differences = []
    for fit, test in pairs:
        T = fit_class_transition(probs[fit].astype(np.float32), labels[fit], start)
        _, simple = right_label_posterior(
            probs[test].astype(np.float32), T.columns(test, labels[test])
        )
        differences.append(
            np.log(np.maximum(likelihood[test], FLOOR).astype(np.float64))
            - np.log(np.maximum(simple, FLOOR).astype(np.float64))
        )
    return _tested(np.concatenate(differences))


def _tested(differences: NDArray[np.float64]) -> Diagnosis:
    from scipy.special import stdtr

    n, gain = len(differences), float(differences.mean())
    error = float(differences.std(ddof=1) / np.sqrt(n))
    t = gain / error if error > 0 else 0.0
    p_value = float(2.0 * stdtr(n - 1, -abs(t)))
    helps = gain > 0 and p_value < SIGNIFICANT
    numbers = (
        f"On {n:,} held-out noisy labels T(x) gains {gain:+.4f} in log-likelihood per example over "
        f"one T for all (95 % interval {gain - Z * error:+.4f} to {gain + Z * error:+.4f}, "
        f"p = {p_value:.2g})."
    )
    if helps:
        words = f"The noise is instance-dependent. {numbers} T(x) is worth its cost."
    elif gain < 0 and p_value < SIGNIFICANT:
        words = f"T(x) predicts the noise worse than one T. {numbers} {SIMPLER}, or better."
    elif gain + Z * error > NOTABLE:
        words = (
            f"There is no proof that T(x) helps, nor that it does not: {n:,} held-out labels are "
            f"too few to tell. {numbers} A method with one T, such as --method forward, is simpler "
            "and worth a try."
        )
    else:
        words = f"T(x) does not help: no sign of instance-dependent noise. {numbers} {SIMPLER}."
    return Diagnosis(n, gain, gain - Z * error, gain + Z * error, p_value, helps, words)


def _nothing(n: int, words: str) -> Diagnosis:
    return Diagnosis(n, None, None, None, None, None, words)
