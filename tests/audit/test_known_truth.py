"""Audits of problems whose right labels are known."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score
from tests.audit.problems import class_dependent, instance_dependent, pair, symmetric

from bltm.audit import audit


def test_p_wrong_is_the_true_posterior() -> None:
    problem = instance_dependent(3000, 5, 0.3)
    found = audit(problem.labels, problem.f, problem.T)
    truth = 1 - problem.posterior[np.arange(3000), problem.labels]
    assert found.p_wrong == pytest.approx(truth, abs=1e-4)
    assert (found.suggested == problem.posterior.argmax(axis=1)).mean() > 0.999
    assert found.kind == "probability"


def test_p_wrong_is_calibrated_when_f_and_t_are_true() -> None:
    problem = instance_dependent(40_000, 5, 0.3)
    found = audit(problem.labels, problem.f, problem.T)
    for low in np.arange(0.0, 1.0, 0.1):
        inside = (found.p_wrong >= low) & (found.p_wrong < low + 0.1)
        p = found.p_wrong[inside]
        error = 4 * np.sqrt((p * (1 - p)).sum()) / inside.sum()
        assert problem.wrong[inside].mean() == pytest.approx(p.mean(), abs=error + 1e-4)
    rate = found.summary.noise_rate
    assert rate.low <= problem.wrong.mean() <= rate.high
    assert rate.value == pytest.approx(problem.wrong.mean(), abs=0.01)
    for row in found.summary.by_right:
        own = problem.right == row.label
        assert row.rate.value == pytest.approx(problem.wrong[own].mean(), abs=0.02)
    for row in found.summary.by_given:
        own = problem.labels == row.label
        assert row.rate.value == pytest.approx(problem.wrong[own].mean(), abs=0.02)
        assert row.rate.low <= row.rate.value <= row.rate.high


def test_the_null_check_foretells_how_many_flags_are_false() -> None:
    problem = instance_dependent(20_000, 5, 0.3)
    found = audit(problem.labels, problem.f, problem.T)
    check = found.summary.null_check
    assert check is not None
    flagged = found.verdict != 0
    assert check.false_flags == pytest.approx((~problem.wrong)[flagged].mean(), abs=0.02)
    assert check.flagged == pytest.approx(flagged.mean(), abs=0.02)
    assert check.found == pytest.approx(flagged[problem.wrong].mean(), abs=0.02)
    relabelled = found.positions("relabel")
    right = found.suggested[relabelled] == problem.right[relabelled]
    assert check.relabel_precision == pytest.approx(right.mean(), abs=0.02)
    assert "which fits" in check.words


def test_the_null_check_says_when_f_and_t_do_not_fit_the_data() -> None:
    problem = class_dependent(5000, symmetric(4, 0.4), blur=0.02)
    found = audit(problem.labels, problem.f, symmetric(4, 0.05))
    assert found.summary.null_check is not None
    assert "do not describe it well" in found.summary.null_check.words


def test_t_of_each_example_ranks_better_than_one_t() -> None:
    problem = instance_dependent(5000, 5, 0.3)
    own = audit(problem.labels, problem.f, problem.T)
    one = audit(problem.labels, problem.f, problem.T.mean(axis=0))
    ap = [average_precision_score(problem.wrong, -a.p_right) for a in (own, one)]
    assert ap[0] > ap[1] + 0.01


def test_the_diagnosis_finds_instance_dependent_noise() -> None:
    problem = instance_dependent(4000, 5, 0.3)
    found = audit(problem.labels, problem.f, problem.T).summary.diagnosis
    assert found.instance_dependent is True
    assert found.low is not None
    assert found.low > 0
    assert "instance-dependent" in found.words


def test_the_diagnosis_recommends_the_simple_method_where_t_is_the_same_for_all() -> None:
    T = pair(5, 0.3)
    problem = class_dependent(8000, T)
    rng = np.random.default_rng(1)
    wobbly = T + 0.05 * rng.dirichlet(np.ones(5), (8000, 5))
    wobbly /= wobbly.sum(axis=2, keepdims=True)
    found = audit(problem.labels, problem.f, wobbly).summary.diagnosis
    assert found.instance_dependent is False
    assert "--method forward" in found.words


def test_the_diagnosis_does_not_speak_of_too_few_examples() -> None:
    problem = instance_dependent(30, 3, 0.3)
    found = audit(problem.labels, problem.f, problem.T).summary.diagnosis
    assert found.instance_dependent is None
    assert found.p_value is None


def test_the_most_confused_pairs_are_those_of_t() -> None:
    problem = class_dependent(4000, pair(4, 0.3))
    found = audit(problem.labels, problem.f, pair(4, 0.3)).summary
    assert {(p.given, p.suggested) for p in found.pairs[:4]} == {(1, 0), (2, 1), (3, 2), (0, 3)}
    for p in found.pairs[:4]:
        true = int(((problem.labels == p.given) & (problem.right == p.suggested)).sum())
        assert p.expected == pytest.approx(true, rel=0.2)
    assert found.average_transition == pytest.approx(pair(4, 0.3))
