"""The summary says what was found and how far to trust it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bltm.core.evidence import Evidence
from bltm.core.records import Collected, Posterior, Split, Suspicion
from bltm.runs.artifacts import read_evidence, write_evidence
from bltm.runs.config import RunConfig
from bltm.runs.summary import summarise

N = 400


def evidence(agreement: float, coverage: tuple[int, ...] = (150, 150)) -> Evidence:
    """Return evidence of a classifier that agrees with a share of the given labels."""
    labels = np.arange(N) % 2
    agrees = np.arange(N) % 100 < 100 * agreement
    probs = np.eye(2, dtype=np.float32)[np.where(agrees, labels, 1 - labels)]
    count = sum(coverage)
    return Evidence(
        ids=[f"e{i}" for i in range(N)],
        id_name="name",
        classes=["cat", "dog"],
        labels=labels,
        weights=np.ones(N),
        trusted=np.zeros(N, dtype=bool),
        probs=probs,
        suspicion=Suspicion(1.0 - probs[np.arange(N), labels], "score", "in sample"),
        split=Split(np.arange(0, 300), np.arange(300, 400)),
        posterior=Posterior(probs, True, "three networks"),
        collected=Collected(
            np.arange(count), labels[:count], 0.65, np.array(coverage), "cross-fitted"
        ),
    )


def words(found: Evidence, rate: float | None) -> str:
    findings = {"seconds": 90.0} | ({} if rate is None else {"noise_rate": rate})
    return summarise(RunConfig("x.csv", seed=7), found, findings, Path("run"))


def test_summary__consistent_estimate__is_said_to_fit() -> None:
    text = words(evidence(0.8), 0.2)
    assert text.startswith("bltm-v learned from 400 examples of 2 classes in 1.5 minutes (seed 7).")
    assert "About 20 % of the labels seem to be wrong" in text
    assert "agrees with the given label for 80 %" in text
    assert "not its accuracy" in text
    assert "The two fit together" in text
    assert "inferred for 300 of 300 training examples" in text
    assert "Few or none" not in text
    assert text.endswith("Next: bltm predict run NEW_DATA --out predictions.csv")


def test_summary__inconsistent_estimate__warns() -> None:
    assert "do not rely on the estimate" in words(evidence(0.5), 0.1)


def test_summary__thin_classes__are_named() -> None:
    text = words(evidence(0.8, (290, 0)), 0.2)
    assert "Few or none were inferred for: dog (0)." in text


def test_summary__method_without_estimate_or_held_out_examples() -> None:
    plain = replace(evidence(0.8), collected=None, posterior=None)
    text = words(plain, None)
    assert "seem to be wrong" not in text
    assert "disagrees with every wrong label" in text
    small = replace(plain, split=Split(np.arange(N), np.arange(0)))
    assert "nothing checks this result" in words(small, None)


@pytest.mark.parametrize("ids", [["a", "ü", ""], [1, 2, 3]])
def test_evidence__through_a_file__is_the_same(tmp_path: Path, ids: list[object]) -> None:
    found = replace(evidence(0.8), ids=ids)
    write_evidence(found, tmp_path / "posteriors.safetensors")
    again = read_evidence(tmp_path / "posteriors.safetensors")
    assert again.ids == ids
    assert (again.id_name, again.classes) == ("name", ["cat", "dog"])
    assert again.posterior is not None
    assert found.posterior is not None
    assert again.collected is not None
    assert found.collected is not None
    np.testing.assert_array_equal(again.posterior.probs, found.posterior.probs)
    np.testing.assert_array_equal(again.collected.indices, found.collected.indices)
    np.testing.assert_array_equal(again.split.validation, found.split.validation)
    np.testing.assert_array_equal(again.probs, found.probs)
    write_evidence(replace(found, posterior=None, collected=None), tmp_path / "less.safetensors")
    assert read_evidence(tmp_path / "less.safetensors").collected is None
