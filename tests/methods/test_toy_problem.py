"""The paper's claims on a problem of which everything is known, from noisy labels to the end."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from bltm.core.records import Split
from bltm.data.toy import ToyProblem
from bltm.engine.correction import forward_step
from bltm.engine.job import Job
from bltm.engine.posteriors import network_probs
from bltm.engine.schedule import Schedule
from bltm.engine.supervised import fit_cross_entropy
from bltm.engine.workbench import Workbench
from bltm.methods.bltm import BLTMClassifier
from bltm.methods.bltm.collect import COLLECTORS, threshold_of
from bltm.methods.cross_entropy import CrossEntropyClassifier
from bltm.transition import bayes_posterior
from engine.helpers import FABRIC, noisy_data

PLAIN = ToyProblem()
EASY = ToyProblem(radius=2.5)
# The noise is so one-sided that the likeliest noisy label is often not the Bayes label.
ONE_SIDED = ToyProblem(low=0.1, high=0.7, lean=1.0)
MARGIN = 0.02


def polynomial_model() -> object:
    return make_pipeline(PolynomialFeatures(4), StandardScaler(), LogisticRegression(max_iter=300))


@pytest.mark.parametrize("problem", [PLAIN, EASY, ONE_SIDED], ids=["plain", "easy", "one-sided"])
def test_section_4_2_exact_posteriors_give_bayes_labels_only(problem: ToyProblem) -> None:
    data = problem.sample(20_000, seed=0)
    threshold = threshold_of(problem.rho_max)
    positions, labels = COLLECTORS["in-sample"](problem.noisy_posterior(data.x), threshold)
    assert len(positions) > 200
    assert (labels == data.y_bayes[positions]).all()
    # The Bayes label need not be the label that was drawn.
    assert (labels != data.y_clean[positions]).any()


def test_section_4_2_fails_below_the_true_bound() -> None:
    """The guarantee has a condition, and the test above can fail."""
    data = ONE_SIDED.sample(20_000, seed=0)
    rule = COLLECTORS["in-sample"]
    positions, labels = rule(ONE_SIDED.noisy_posterior(data.x), threshold_of(0.1))
    assert (labels != data.y_bayes[positions]).sum() > 100


def test_section_4_2_estimated_posteriors_give_bayes_labels_nearly_always() -> None:
    data = PLAIN.sample(20_000, seed=0)
    half = 10_000
    model = polynomial_model().fit(data.x[:half], data.y_noisy[:half])  # type: ignore[attr-defined]
    probs = model.predict_proba(data.x[half:])
    threshold = threshold_of(PLAIN.rho_max + MARGIN)
    positions, labels = COLLECTORS["cross-fitted"](probs, threshold)
    assert len(positions) > 3000
    assert (labels == data.y_bayes[half:][positions]).mean() >= 0.995
    assert (labels != data.y_clean[half:][positions]).sum() > 50


@pytest.mark.slow
def test_section_4_2_holds_for_what_the_estimator_collects() -> None:
    data = PLAIN.sample(20_000, seed=0)
    model = BLTMClassifier(rho_max=PLAIN.rho_max + MARGIN, rounds=1, epochs=4, random_state=0)
    model.fit(data.x, data.y_noisy)
    found = model.collected_
    assert len(found) > 6000
    assert (found.bayes_labels == data.y_bayes[found.indices]).mean() >= 0.995
    assert (found.bayes_labels != data.y_clean[found.indices]).sum() > 50
    assert (found.bayes_labels != data.y_noisy[found.indices]).sum() > 500


@pytest.mark.slow
def test_eq_5_with_the_true_transition_finds_bayes_labels_where_cross_entropy_does_not() -> None:
    n, data, test = 6000, ONE_SIDED.sample(6000, seed=1), ONE_SIDED.sample(4000, seed=2)
    x = np.concatenate([data.x, test.x])
    noisy = noisy_data(x.astype(np.float32), np.concatenate([data.y_noisy, test.y_noisy]), 3)
    job = Job(noisy, Split(np.arange(n), np.arange(0)), Workbench(FABRIC, 0), "mlp")
    T = ONE_SIDED.bayes_transition(x)
    columns = torch.from_numpy(T[np.arange(len(x)), :, noisy.labels]).float().log()
    schedule = Schedule(20, 5e-3, "adamw", "one-cycle")
    corrected = job.new_classifier("corrected")
    extras = {"columns": columns}
    job.train("corrected", {"classifier": corrected}, forward_step, schedule, extras=extras)
    plain = fit_cross_entropy(job, "plain", schedule)
    held_out = np.arange(n, len(x))
    agreement = [
        (network_probs(job, network)[held_out].argmax(axis=1) == test.y_bayes).mean()
        for network in (corrected, plain)
    ]
    assert agreement[0] > 0.98
    assert agreement[1] < 0.85


def test_section_4_1_the_true_transition_inverts_the_noisy_posterior() -> None:
    data = ONE_SIDED.sample(2000, seed=3)
    q, T = ONE_SIDED.noisy_posterior(data.x), ONE_SIDED.bayes_transition(data.x)
    found = bayes_posterior(q, T)
    assert (found.argmax(axis=1) == data.y_bayes).all()
    assert (q.argmax(axis=1) == data.y_bayes).mean() < 0.8
    np.testing.assert_allclose(found[np.arange(2000), data.y_bayes], 1.0, atol=1e-6)


@pytest.mark.slow
def test_sections_4_1_and_4_4_the_estimated_transition_finds_bayes_labels() -> None:
    data, test = ONE_SIDED.sample(6000, seed=1), ONE_SIDED.sample(4000, seed=2)
    q = polynomial_model().fit(data.x, data.y_noisy).predict_proba(test.x)  # type: ignore[attr-defined]
    baseline = CrossEntropyClassifier(random_state=0).fit(data.x, data.y_noisy)
    model = BLTMClassifier(rho_max=ONE_SIDED.rho_max, random_state=0).fit(data.x, data.y_noisy)
    T = np.asarray(model.predict_transition(test.x))
    inverted = bayes_posterior(q, T).argmax(axis=1)
    right = {
        "noisy posterior": (q.argmax(axis=1) == test.y_bayes).mean(),
        "cross-entropy": (baseline.predict(test.x) == test.y_bayes).mean(),
        "inversion": (inverted == test.y_bayes).mean(),
        "classifier": (model.predict(test.x) == test.y_bayes).mean(),
    }
    assert right["inversion"] > right["noisy posterior"] + 0.07, right
    assert right["classifier"] > right["cross-entropy"] + 0.1, right


@pytest.mark.slow
def test_the_row_of_the_bayes_label_is_nearer_than_any_class_dependent_row() -> None:
    data, test = PLAIN.sample(6000, seed=1), PLAIN.sample(4000, seed=2)
    model = BLTMClassifier(rho_max=PLAIN.rho_max, random_state=0).fit(data.x, data.y_noisy)
    rows = np.asarray(model.predict_transition(test.x, rows=test.y_bayes))
    truth = PLAIN.bayes_row(test.x)
    best = np.stack([truth[test.y_bayes == label].mean(axis=0) for label in range(3)])
    errors = [np.abs(found - truth).sum(axis=1).mean() for found in (rows, best[test.y_bayes])]
    assert errors[0] < errors[1], errors


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "gain"), [(PLAIN, 0.0), (EASY, -0.003)], ids=["plain", "easy"])
def test_bltm_against_cross_entropy_over_several_samples(problem: ToyProblem, gain: float) -> None:
    """It is ahead, and costs next to nothing where cross-entropy is right for 99 % already."""
    test = problem.sample(5000, seed=2)
    right = np.zeros((3, 2))
    for number in range(3):
        data = problem.sample(3000, seed=1 + 10 * number)
        for column, kind in enumerate((CrossEntropyClassifier, BLTMClassifier)):
            model = kind(random_state=number).fit(data.x, data.y_noisy)
            right[number, column] = (model.predict(test.x) == test.y_bayes).mean()
    plain, corrected = right.mean(axis=0)
    assert corrected > plain + gain
    assert right[:, 1].min() > 0.92
