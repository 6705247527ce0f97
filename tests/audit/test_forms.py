"""What can be audited: labels, classes and transitions in all their forms."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from tests.audit.problems import class_dependent, instance_dependent, pair

import bltm
from bltm.audit import Audit, Thresholds, audit
from bltm.core.errors import InputError

PROBLEM = instance_dependent(300, 4, 0.3)
ONE_T = class_dependent(300, pair(4, 0.3))
PROBS = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]])


def same(one: Audit, other: Audit) -> bool:
    return bool(
        np.allclose(one.p_wrong, other.p_wrong, atol=1e-6)
        and (one.suggested == other.suggested).all()
        and (one.verdict == other.verdict).all()
    )


def test_the_package_is_callable_and_a_package() -> None:
    found = bltm.audit(PROBLEM.labels, PROBLEM.f, PROBLEM.T)
    assert isinstance(found, bltm.audit.Audit)
    assert bltm.audit.audit is audit


def test_an_audit_of_arrays_needs_no_torch_and_starts_fast() -> None:
    code = (
        "import bltm, numpy as np, sys; bltm.audit([0, 1], np.eye(2)); "
        "print([m for m in ('torch', 'sklearn', 'pandas', 'pyarrow') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "[]", result.stderr


def test_matrices_functions_and_columns_are_the_same_transition() -> None:
    T, labels, f = PROBLEM.T, PROBLEM.labels, PROBLEM.f
    whole = audit(labels, f, T)
    assert same(whole, audit(labels, f, lambda index: T[index]))
    columns = T[np.arange(300), :, labels]
    with np.errstate(divide="ignore"):
        assert same(whole, audit(labels, f, log_columns=np.log(columns)))


def test_one_matrix_for_all_is_the_same_in_every_form() -> None:
    T, labels, f = pair(4, 0.3), ONE_T.labels, ONE_T.f
    one = audit(labels, f, T)
    assert same(one, audit(labels, f, np.broadcast_to(T, (300, 4, 4))))
    with np.errstate(divide="ignore"):
        columns = audit(labels, f, log_columns=np.log(T[:, labels].T))
    assert same(one, columns)
    assert columns.summary.average_transition == pytest.approx(T)
    assert "one T" in columns.source


def test_rows_of_t_are_those_of_the_suggested_label() -> None:
    found = audit(PROBLEM.labels, PROBLEM.f, PROBLEM.T)
    rows = np.asarray(found.t_row)
    assert rows.shape == (300, 4)
    assert rows == pytest.approx(PROBLEM.T[np.arange(300), found.suggested], abs=1e-6)
    assert found.t_row is not None
    assert found.t_row[[5, 3]] == pytest.approx(rows[[5, 3]])
    assert found.t_row[7].shape == (4,)
    assert audit(PROBLEM.labels, PROBLEM.noisy).t_row is not None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inputs_are_left_as_they_are(dtype: Any) -> None:
    probs, labels = PROBLEM.noisy.astype(dtype), PROBLEM.labels.copy()
    before = probs.copy()
    first, second = audit(labels, probs), audit(labels, probs)
    assert (probs == before).all()
    assert (labels == PROBLEM.labels).all()
    assert (first.p_wrong == second.p_wrong).all()
    assert first.summary.to_json() == second.summary.to_json()


def test_the_order_of_the_examples_does_not_matter() -> None:
    order = np.random.default_rng(0).permutation(300)
    one = audit(PROBLEM.labels, PROBLEM.f, PROBLEM.T)
    other = audit(PROBLEM.labels[order], PROBLEM.f[order], PROBLEM.T[order])
    assert (one.p_wrong[order] == other.p_wrong).all()


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["b", "a", "b"], ["a", "b"]),
        (np.array(["b", "a", "b"]), ["a", "b"]),
        (np.array(["b", "a", "b"], dtype=object), ["a", "b"]),
        ([7, 3, 7], [3, 7]),
        ([True, False, True], [False, True]),
        ([1.0, 0.0, 1.0], [0, 1]),
        (np.array([[1], [0], [1]], dtype=np.uint8), [0, 1]),
    ],
)
def test_any_labels_are_taken_in_sorted_order(labels: Any, classes: list[Any]) -> None:
    found = audit(labels, PROBS)
    assert found.classes == classes
    assert found.labels.tolist() == [1, 0, 1]


def test_whole_numbers_are_column_numbers_even_if_some_are_absent() -> None:
    found = audit([0, 0, 2], np.full((3, 4), 0.25))
    assert found.classes == [0, 1, 2, 3]


def test_classes_name_the_columns() -> None:
    found = audit(["b", "a", "b"], PROBS, classes=["b", "a"])
    assert found.labels.tolist() == [0, 1, 0]
    assert audit([5, 4, 5], PROBS, classes=["5", "4"]).classes == [5, 4]


@pytest.mark.parametrize(
    ("arguments", "options", "argument"),
    [
        ((["a", "b", "c"], PROBS), {}, "labels"),
        ((["a", "b", None], PROBS), {}, "labels"),
        ((["a", 1, "b"], PROBS), {}, "labels"),
        (([0.5, 1, 1], PROBS), {}, "labels"),
        (([0, 1], PROBS), {}, "labels"),
        (([0, 1, 2], PROBS), {"classes": ["a", "b"]}, "labels"),
        (([0, 1, 1], PROBS), {"classes": ["a"]}, "classes"),
        (([0, 1, 1], PROBS), {"classes": ["a", "a"]}, "classes"),
        (([0, 1, 1],), {}, "pred_probs"),
        (([0, 1, 1], PROBS[:, 0]), {}, "pred_probs"),
        (([0, 1, 1], 3 * PROBS), {}, "pred_probs"),
        (([0, 1, 1], PROBS + [[0.5, -0.5]]), {}, "pred_probs"),
        (([0, 1, 1], np.where(PROBS == 0.9, np.nan, PROBS)), {}, "pred_probs"),
        (([0, 1, 1], PROBS[:0]), {}, "pred_probs"),
        (([0, 1, 1], PROBS, np.eye(3)), {}, "transition"),
        (([0, 1, 1], PROBS, np.full((2, 2), 0.6)), {}, "transition"),
        (([0, 1, 1], PROBS, lambda index: np.eye(2)), {}, "transition"),
        (([0, 1, 1], PROBS, np.eye(2)), {"log_columns": np.zeros((3, 2))}, "log_columns"),
        (([0, 1, 1], PROBS), {"log_columns": np.ones((3, 2))}, "log_columns"),
        (([0, 1, 1], PROBS), {"ids": ["a"]}, "ids"),
        (([0, 1, 1], PROBS), {"trusted": [True]}, "trusted"),
        (([0, 1, 1], PROBS), {"weights": [1, 1, -1]}, "weights"),
        (([0, 1, 1], PROBS), {"weights": [0, 0, 0]}, "weights"),
        (([0, 1, 1], PROBS), {"top_k": 0}, "top_k"),
    ],
)
def test_bad_input_is_named(arguments: Any, options: dict[str, Any], argument: str) -> None:
    with pytest.raises(InputError) as caught:
        audit(*arguments, **options)
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    "options", [{"relabel": 0.0}, {"drop": 1.5}, {"review": "much"}, {"review": 0.93}]
)
def test_bad_thresholds_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Thresholds(**options)


def test_thresholds_decide_the_verdicts() -> None:
    default = audit(PROBLEM.labels, PROBLEM.f, PROBLEM.T)
    strict = audit(
        PROBLEM.labels, PROBLEM.f, PROBLEM.T, thresholds=Thresholds(1.0, review=0.99, drop=1.0)
    )
    assert (strict.verdict == 0).sum() > (default.verdict == 0).sum()
    flagged = default.verdict != 0
    assert (default.p_wrong[flagged] >= 0.5).all()
    assert (default.p_wrong[~flagged] < 0.5).all()
    relabelled = default.positions("relabel")
    assert (default.top_probs[relabelled, 0] >= 0.9).all()
    assert (default.suggested[relabelled] != default.labels[relabelled]).all()
    assert default.summary.verdicts["relabel"] == len(relabelled)
    assert (np.diff(default.p_right[default.ranking()]) >= 0).all()


def test_trusted_labels_and_weights_of_zero_leave_the_summary() -> None:
    T, labels, f = PROBLEM.T, PROBLEM.labels, PROBLEM.f
    trusted = audit(labels, f, T, trusted=np.ones(300, bool))
    assert trusted.summary.noise_rate.value == 0
    assert trusted.summary.verdicts["keep"] == 300
    weights = PROBLEM.wrong.astype(float)
    chosen = audit(labels, f, T, weights=weights)
    assert chosen.summary.used == PROBLEM.wrong.sum()
    assert chosen.summary.noise_rate.value == pytest.approx(
        chosen.p_wrong[PROBLEM.wrong].mean(), abs=1e-6
    )
    assert (chosen.p_wrong == audit(labels, f, T).p_wrong).all()


def test_top_k_is_what_was_asked_for() -> None:
    assert audit(PROBLEM.labels, PROBLEM.f, PROBLEM.T, top_k=2).top.shape == (300, 2)
    assert audit(PROBLEM.labels, PROBLEM.f, PROBLEM.T, top_k=9).top.shape == (300, 4)


@pytest.mark.parametrize("n_classes", [1, 2])
def test_tiny_data_is_audited_too(n_classes: int) -> None:
    found = audit([0], np.eye(n_classes)[:1])
    assert found.p_wrong[0] < 0.5
    found.summary.to_json()
