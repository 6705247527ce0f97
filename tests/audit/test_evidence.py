"""Audits of what a fit left behind."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.audit.problems import Problem, class_dependent, instance_dependent, pair, symmetric

from bltm.audit import Thresholds, audit
from bltm.audit.checks import null_check
from bltm.audit.transitions import ClassTransition
from bltm.core.errors import InputError
from bltm.core.evidence import Evidence
from bltm.core.records import Collected, Posterior, Split, Suspicion
from bltm.core.tempering import POWER, Tempering, find_tempering, judge_given


def evidence_of(problem: Problem, **parts: object) -> Evidence:
    """Return the evidence of a fit that found f and T(x) as they are."""
    n, c = problem.f.shape
    f = problem.f.astype(np.float32)
    columns = problem.T[np.arange(n), :, problem.labels]
    train, validation = np.arange(0, n - n // 4), np.arange(n - n // 4, n)
    noisy = problem.noisy.astype(np.float32)
    indices = train[noisy[train].max(axis=1) > 0.65]
    bayes = noisy[indices].argmax(axis=1)
    with np.errstate(divide="ignore"):
        log_columns = np.log(columns).astype(np.float32)
    tempering = find_tempering(f, log_columns, problem.labels, np.ones(n), np.arange(n))
    _, best = judge_given(f, log_columns, problem.labels, tempering)
    found = Evidence(
        ids=[f"row {k}" for k in range(n)],
        id_name="name",
        classes=[f"class {k}" for k in range(c)],
        labels=problem.labels,
        weights=np.ones(n),
        trusted=np.zeros(n, dtype=bool),
        split=Split(train, validation),
        probs=np.eye(c, dtype=np.float32)[problem.labels] * 0.9 + np.float32(0.1 / c),
        suspicion=Suspicion(np.full(n, 0.25, np.float32), "score", "a score of its own"),
        out_of_sample=f,
        columns=log_columns,
        rows=problem.T[np.arange(n), best].astype(np.float32),
        support=np.tile(np.array([0, 1, -1]), (n, 1)),
        posterior=Posterior(noisy, True, "networks"),
        collected=Collected(indices, bayes, 0.65, np.bincount(bayes, minlength=c), "threshold"),
    )
    return replace(found, **parts)  # type: ignore[arg-type]


PROBLEM = instance_dependent(4000, 4, 0.3)


def test_a_fit_is_judged_out_of_sample_by_default() -> None:
    evidence = evidence_of(PROBLEM)
    found = audit(evidence)
    assert evidence.columns is not None
    tempering = find_tempering(
        PROBLEM.f, evidence.columns, PROBLEM.labels, np.ones(4000), np.arange(4000)
    )
    p_right, suggested = judge_given(
        PROBLEM.f.astype(np.float32), evidence.columns, PROBLEM.labels, tempering
    )
    assert tempering.power == POWER
    assert found.p_wrong == pytest.approx(1 - p_right, abs=1e-5)
    assert (found.suggested == suggested).all()
    assert found.source.startswith("f·T^⅓")
    assert "out of sample" in found.source
    assert (found.ids == np.array(evidence.ids, dtype=object)).all()
    assert found.id_name == "name"
    assert found.held_out is not None
    assert found.held_out.sum() == 1000
    assert (audit(SimpleNamespace(evidence_=evidence)).p_wrong == found.p_wrong).all()


def test_partial_trust_in_t_changes_what_is_said_of_labels_and_not_of_t() -> None:
    trusted = np.arange(4000) % 5 == 0
    evidence = evidence_of(PROBLEM, trusted=trusted)
    found = audit(evidence)
    whole = audit(
        PROBLEM.labels, PROBLEM.f, classes=range(4), log_columns=evidence.columns, trusted=trusted
    )
    truth = 1 - PROBLEM.posterior[np.arange(4000), PROBLEM.labels]
    # A T that is given is trusted.
    assert whole.p_wrong[~trusted] == pytest.approx(truth[~trusted], abs=1e-4)
    assert whole.source.startswith("f·T")
    assert np.abs(found.p_wrong - whole.p_wrong).max() > 0.1
    assert found.p_wrong.mean() == pytest.approx(whole.p_wrong.mean(), abs=1e-6)
    assert found.summary.noise_rate.value == pytest.approx(whole.summary.noise_rate.value, abs=1e-6)
    mean = whole.summary.average_transition
    assert found.summary.average_transition == pytest.approx(mean, abs=1e-6)


def test_the_user_chooses_in_sample_probabilities() -> None:
    evidence = evidence_of(PROBLEM)
    seen = audit(evidence, in_sample=True)
    assert "in sample" in seen.source
    assert seen.p_wrong.mean() < audit(evidence).p_wrong.mean()
    alone = replace(evidence, out_of_sample=None)
    assert (audit(alone).p_wrong == seen.p_wrong).all()
    with pytest.raises(InputError) as caught:
        audit(alone, in_sample=False)
    assert caught.value.argument == "in_sample"


def test_known_rows_are_shown_for_the_suggested_label() -> None:
    found = audit(evidence_of(PROBLEM))
    rows = np.asarray(found.t_row)
    assert rows == pytest.approx(PROBLEM.T[np.arange(4000), found.suggested], abs=1e-5)
    # In sample another label may be suggested; its row is that of the average matrix.
    seen = audit(evidence_of(PROBLEM), in_sample=True)
    rows = np.asarray(seen.t_row)
    other = seen.suggested != found.suggested
    assert other.any()
    mean = seen.summary.average_transition[seen.suggested[other]]
    assert rows[other] == pytest.approx(mean, abs=1e-5)


def test_the_average_transition_is_near_the_true_one() -> None:
    found = audit(evidence_of(PROBLEM)).summary.average_transition
    assert np.abs(found - PROBLEM.T.mean(axis=0)).max() < 0.03
    assert found.sum(axis=1) == pytest.approx(np.ones(4))


def test_the_diagnosis_uses_held_out_examples() -> None:
    found = audit(evidence_of(PROBLEM)).summary.diagnosis
    assert found.n == 1000
    assert found.instance_dependent is True
    few = Split(np.arange(3990), np.arange(3990, 4000))
    assert audit(evidence_of(PROBLEM, split=few)).summary.diagnosis.instance_dependent is None


def test_one_t_behind_all_columns_is_recognised() -> None:
    problem = class_dependent(2000, symmetric(4, 0.3))
    found = audit(evidence_of(problem))
    assert "one T" in found.source
    assert found.summary.average_transition == pytest.approx(symmetric(4, 0.3), abs=1e-5)
    assert found.summary.diagnosis.instance_dependent is None
    assert found.summary.null_check is not None


def test_the_null_check_of_a_fit_is_about_right() -> None:
    found = audit(evidence_of(PROBLEM))
    check = found.summary.null_check
    assert check is not None
    flagged = found.verdict != 0
    assert check.false_flags == pytest.approx((~PROBLEM.wrong)[flagged].mean(), abs=0.06)


@pytest.mark.parametrize(("log_odds", "flagged"), [(-60.0, 0.0), (60.0, 1.0)])
def test_redrawn_labels_are_judged_as_the_given_ones_are(log_odds: float, flagged: float) -> None:
    check = null_check(
        PROBLEM.f,
        ClassTransition(symmetric(4, 0.3)),
        Tempering(0.5, log_odds),
        None,
        np.zeros(4000, np.int8),
        np.arange(4000),
        Thresholds(),
        np.random.default_rng(0),
    )
    assert check is not None
    assert check.flagged == check.found == check.false_flags_without_noise == flagged
    # They are drawn from f·T itself.
    if flagged:
        assert check.false_flags == pytest.approx(0.7, abs=0.03)


def test_collection_and_certificate_are_those_of_the_fit() -> None:
    evidence = evidence_of(PROBLEM)
    found = audit(evidence)
    assert evidence.collected is not None
    assert (np.flatnonzero(found.collected) == evidence.collected.indices).all()
    other = evidence.collected.bayes_labels != PROBLEM.labels[evidence.collected.indices]
    assert (found.collected[evidence.collected.indices] == np.where(other, 2, 1)).all()
    certificate = found.summary.certificate
    assert certificate is not None
    assert certificate.assumed == "fit"
    assert certificate.rho_max == pytest.approx(0.3)
    assert certificate.coverage == tuple(evidence.collected.coverage.tolist())
    assert "in doubt" in certificate.condition
    step = next(step for step in certificate.sweep if step.rho == 0.3)
    assert step.collected == len(evidence.collected)


def test_in_sample_posteriors_of_a_certificate_are_pointed_out() -> None:
    evidence = evidence_of(PROBLEM)
    assert evidence.posterior is not None
    seen = replace(evidence, posterior=replace(evidence.posterior, out_of_sample=False))
    certificate = audit(seen).summary.certificate
    assert certificate is not None
    assert "had seen the labels" in certificate.condition


def test_a_method_without_t_is_read_like_ready_probabilities() -> None:
    problem = class_dependent(3000, pair(4, 0.25))
    bare = evidence_of(problem, columns=None, rows=None, posterior=None, collected=None)
    found = audit(bare)
    assert "counted" in found.source
    assert found.kind == "probability"
    assert found.summary.noise_rate.value == pytest.approx(problem.wrong.mean(), abs=0.04)


def test_a_method_without_t_in_sample_gives_its_own_score() -> None:
    problem = class_dependent(3000, pair(4, 0.25))
    found = audit(
        evidence_of(
            problem, columns=None, rows=None, out_of_sample=None, posterior=None, collected=None
        )
    )
    assert found.kind == "score"
    assert found.source == "a score of its own"
    assert found.p_wrong == pytest.approx(np.full(3000, 0.25))
    assert found.t_row is None
    assert found.summary.null_check is None


def test_in_sample_is_in_sample_even_if_the_fit_has_better() -> None:
    evidence = evidence_of(PROBLEM, columns=None, rows=None)
    found = audit(evidence, in_sample=True)
    own = evidence.probs[np.arange(4000), PROBLEM.labels]
    assert found.p_wrong == pytest.approx(1 - own, abs=1e-6)
    assert found.kind == "score"
    assert any("likely to be higher" in line for line in found.summary.words)


def test_unused_examples_are_judged_but_not_counted() -> None:
    split = Split(np.arange(1000), np.arange(1000, 1500))
    parts = {"posterior": None, "collected": None}
    found = audit(evidence_of(PROBLEM, split=split, **parts))
    assert found.used.sum() == found.summary.used == 1500
    assert sum(found.summary.verdicts.values()) == 1500
    assert np.isfinite(found.p_wrong).all()


def test_arrays_beside_a_fit_are_refused() -> None:
    with pytest.raises(InputError, match="cannot be given with a fit"):
        audit(evidence_of(PROBLEM), PROBLEM.f)


def test_an_estimator_that_is_not_fitted_is_refused() -> None:
    with pytest.raises(InputError, match="not fitted"):
        audit(SimpleNamespace(fit=None))
