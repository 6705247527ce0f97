"""Posteriors without a transition matrix: T is counted."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import cross_val_predict
from tests.audit.problems import class_dependent, pair, symmetric

from bltm.audit import audit
from bltm.audit.unmixing import make_unmix, predicts_given
from bltm.transition.surest import surest_transition


def scores_of_peers(probs: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Self-confidence, normalised margin and confidence-weighted entropy, larger is worse."""
    n = np.arange(len(labels))
    own, others = probs[n, labels], probs.copy()
    others[n, labels] = -1
    entropy = -(probs * np.log(np.maximum(probs, 1e-12))).sum(axis=1)
    return {
        "self-confidence": -own,
        "margin": others.max(axis=1) - own,
        "entropy": entropy / np.maximum(own, 1e-6),
    }


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.4])
@pytest.mark.parametrize("kind", [pair, symmetric])
def test_true_noisy_posteriors_are_ranked_as_well_as_by_any_peer(
    kind: Callable[[int, float], np.ndarray], rate: float
) -> None:
    problem = class_dependent(6000, kind(6, rate), blur=0.1)
    found = audit(problem.labels, problem.noisy)
    assert "noisy labels" in found.source
    ours = average_precision_score(problem.wrong, -found.p_right)
    for name, score in scores_of_peers(problem.noisy, problem.labels).items():
        theirs = average_precision_score(problem.wrong, score)
        assert ours > theirs - 0.005, name
    rate_found = found.summary.noise_rate
    assert rate_found.value == pytest.approx(problem.wrong.mean(), abs=0.03)
    assert rate_found.low <= problem.wrong.mean() <= rate_found.high


def test_a_fitted_model_is_ranked_better_than_by_any_peer() -> None:
    """Classes 0 and 1 overlap, which peers take for noise; the noise is elsewhere."""
    rng = np.random.default_rng(0)
    right = rng.integers(0, 4, 4000)
    centres = np.array([[0.0, 0.0], [1.5, 0.0], [8.0, 8.0], [-8.0, 8.0]])
    x = centres[right] + rng.standard_normal((4000, 2))
    labels = np.where((right >= 2) & (rng.random(4000) < 0.3), 5 - right, right)
    probs = cross_val_predict(LogisticRegression(), x, labels, cv=3, method="predict_proba")
    wrong = right != labels
    ours = average_precision_score(wrong, -audit(labels, probs).p_right)
    theirs = max(average_precision_score(wrong, s) for s in scores_of_peers(probs, labels).values())
    assert ours > theirs + 0.05


def test_probabilities_of_right_labels_are_recognised() -> None:
    problem = class_dependent(20_000, symmetric(5, 0.3), blur=0.05)
    right_ones, noisy_ones = audit(problem.labels, problem.f), audit(problem.labels, problem.noisy)
    assert "right labels" in right_ones.source
    assert "noisy labels" in noisy_ones.source
    for found in (right_ones, noisy_ones):
        assert found.summary.noise_rate.value == pytest.approx(problem.wrong.mean(), abs=0.03)


@pytest.mark.parametrize("limit", [1, 100])
def test_unmixing_takes_symmetric_noise_out_again(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many classes only the common part of T is undone, and here that is all of it."""
    monkeypatch.setattr("bltm.audit.unmixing.MULTIPLIED_CLASSES", limit)
    problem = class_dependent(20_000, symmetric(5, 0.3), blur=0.1)
    likeliest, height = problem.noisy.argmax(axis=1), problem.noisy.max(axis=1)
    counted = surest_transition(likeliest, height, problem.labels, 5)
    f = make_unmix(counted, steps=20)(problem.noisy.astype(np.float32))
    assert f.sum(axis=1) == pytest.approx(np.ones(20_000), abs=1e-5)
    assert np.abs(f - problem.f).mean() < 0.02
    assert np.abs(problem.noisy - problem.f).mean() > 0.06


def test_a_step_of_unmixing_is_a_step_of_em_twice_as_far() -> None:
    """An oracle in plain Python."""
    problem = class_dependent(500, pair(4, 0.3), blur=0.1)
    likeliest, height = problem.noisy.argmax(axis=1), problem.noisy.max(axis=1)
    counted = surest_transition(likeliest, height, problem.labels, 4)
    found = make_unmix(counted, steps=2)(problem.noisy.astype(np.float32))
    T = counted.T.tolist()
    for noisy, row in zip(problem.noisy[:20].tolist(), found[:20].tolist(), strict=True):
        f = noisy
        for _ in range(2):
            given = [sum(f[i] * T[i][j] for i in range(4)) for j in range(4)]
            step = [sum(T[i][j] * noisy[j] / given[j] for j in range(4)) for i in range(4)]
            f = [f[i] * step[i] ** 2 for i in range(4)]
            f = [value / sum(f) for value in f]
        assert row == pytest.approx(f, abs=1e-4)


def test_labels_that_go_wrong_on_hard_examples_are_ranked_as_well_as_by_any_peer() -> None:
    """What is counted on easy examples says little of where the labels of hard ones went."""
    rng = np.random.default_rng(3)
    n, right = 8000, rng.integers(0, 5, 8000)
    ease = rng.uniform(0.0, 6.0, (n, 1))
    doubt = softmax(1.5 * rng.standard_normal((n, 5)) + ease * np.eye(5)[right], axis=1)
    given = (doubt.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    labels = np.where(rng.random(n) < 0.04, (right + 1) % 5, given)
    noisy = 0.96 * doubt + 0.04 * np.roll(doubt, 1, axis=1)
    wrong = labels != right
    ours = average_precision_score(wrong, -audit(labels, noisy).p_right)
    theirs = max(average_precision_score(wrong, s) for s in scores_of_peers(noisy, labels).values())
    assert ours > theirs - 0.003


@pytest.mark.parametrize("classes", [30, 300])
def test_pairs_of_many_classes_are_found(classes: int) -> None:
    problem = class_dependent(8000, pair(classes, 0.3), blur=0.01)
    ours = average_precision_score(problem.wrong, -audit(problem.labels, problem.noisy).p_right)
    peers = scores_of_peers(problem.noisy, problem.labels).values()
    assert ours > max(average_precision_score(problem.wrong, score) for score in peers) + 0.1


def test_the_reading_is_the_more_probable_one() -> None:
    problem = class_dependent(2000, symmetric(5, 0.3), blur=0.05)
    everyone, T = np.arange(2000), symmetric(5, 0.3)
    assert predicts_given(problem.noisy, problem.labels, T, everyone)
    assert not predicts_given(problem.f, problem.labels, T, everyone)


def test_probabilities_of_a_model_that_saw_the_labels_give_a_score() -> None:
    problem = class_dependent(500, symmetric(3, 0.2))
    found = audit(problem.labels, problem.noisy, in_sample=True)
    assert found.kind == "score"
    assert "had seen the labels" in found.source
    assert any("score" in line for line in found.summary.words)


def test_the_certificate_states_its_condition_and_never_a_guarantee() -> None:
    problem = class_dependent(5000, pair(4, 0.2), blur=0.05)
    found = audit(problem.labels, problem.noisy)
    certificate = found.summary.certificate
    assert certificate is not None
    assert certificate.assumed == "estimate"
    assert certificate.threshold == pytest.approx((1 + certificate.rho_max) / 2)
    assert certificate.bound is not None
    assert certificate.bound.low <= 0.2 <= certificate.bound.high
    assert "if two things hold" in certificate.condition
    assert "guarantee" not in " ".join(found.summary.words).lower()
    counts = [step.collected for step in certificate.sweep]
    assert counts == sorted(counts, reverse=True)
    assert sum(certificate.coverage) == certificate.collected == (found.collected > 0).sum()
    kept = problem.noisy.max(axis=1) > certificate.threshold
    assert (found.collected > 0).tolist() == kept.tolist()
    other = problem.noisy.argmax(axis=1) != problem.labels
    assert ((found.collected == 2) == (kept & other)).all()
    for step in certificate.sweep:
        at = problem.noisy.max(axis=1).astype(np.float32) > (1 + step.rho) / 2
        assert step.collected == at.sum()
        if at.any():
            assert step.agreement == pytest.approx((~other)[at].mean())
        classes = len(set(problem.noisy.argmax(axis=1)[at]))
        assert step.classes_without == 4 - classes
    step = next(s for s in certificate.sweep if s.rho == 0.2)
    at = problem.noisy.max(axis=1) > 0.6
    truth = (problem.noisy.argmax(axis=1) == problem.right)[at].mean()
    assert step.purity == pytest.approx(truth, abs=0.03)


def test_classes_without_collected_examples_are_named() -> None:
    probs = np.array([[0.9, 0.1, 0.0]] * 50 + [[0.1, 0.9, 0.0]] * 50)
    found = audit(np.repeat(["a", "b"], 50), probs, classes=["a", "b", "c"])
    assert found.summary.certificate is not None
    assert found.summary.certificate.zero_coverage == ("c",)
    assert any("'c'" in line for line in found.summary.words)


def test_calibration_is_measured_on_collected_examples() -> None:
    problem = class_dependent(5000, symmetric(4, 0.2), blur=0.05)
    found = audit(problem.labels, problem.noisy)
    calibration = found.summary.calibration
    assert calibration is not None
    assert calibration.n == pytest.approx((found.collected > 0).sum() / 2, abs=4)
    assert calibration.gap == pytest.approx(calibration.predicted - calibration.observed)
    assert calibration.observed == pytest.approx(problem.wrong.mean(), abs=0.03)
    assert sum(row.n for row in calibration.bins) == calibration.n
    assert abs(calibration.gap) < 0.03


def test_the_words_say_how_many_labels_could_be_wrong_where_nothing_tells() -> None:
    hard, clear = class_dependent(3000, pair(4, 0.1), blur=1.0), class_dependent(3000, pair(4, 0.1))
    trusted = np.arange(3000) < 500
    found = audit(hard.labels, hard.noisy, trusted=trusted).summary
    differs = (hard.noisy.argmax(axis=1) != hard.labels)[~trusted]
    assert found.disagreement == pytest.approx(differs.mean())
    assert found.disagreement > found.noise_rate.high
    assert any("up to that many can be wrong" in line for line in found.words)
    sharp = audit(clear.labels, np.eye(4)[clear.right] * 0.96 + 0.01).summary
    assert sharp.disagreement == pytest.approx(clear.wrong.mean())
    assert not any("up to that many" in line for line in sharp.words)
