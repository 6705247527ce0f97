"""Step 2 of Algorithm 1: which Bayes labels are collected."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.linear_model import LogisticRegression

from bltm.core.errors import CoverageWarning, InputError
from bltm.core.records import Posterior
from bltm.methods.bltm.collect import (
    COLLECTORS,
    CoveringCollector,
    ThresholdCollector,
    collect,
    get_collector,
    threshold_of,
)
from engine.helpers import tiny_job

from .helpers import quick_bltm, sample

posteriors = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 30), st.integers(2, 4)),
    elements=st.sampled_from([0.01, 0.2, 0.5, 1.0, 3.0]),
).map(lambda weights: weights / weights.sum(axis=1, keepdims=True))
bounds = st.sampled_from([0.0, 0.1, 0.3, 0.6, 0.9])


def above(probs: np.ndarray, threshold: float) -> dict[int, int]:
    """The paper's rule as a loop."""
    found = {}
    for i, row in enumerate(probs.tolist()):
        for label, value in enumerate(row):
            if value > threshold:
                assert i not in found, "at most one class can qualify"
                found[i] = label
    return found


def covered(probs: np.ndarray, threshold: float, at_least: int) -> dict[int, int]:
    """The covering rule as a loop."""
    found = above(probs, threshold)
    for label in range(probs.shape[1]):
        own = [i for i, row in enumerate(probs) if list(row).index(max(row)) == label]
        short = at_least - sum(found.get(i) == label for i in own)
        if short > 0:
            best = sorted(own, key=lambda i: (-probs[i, label], i))[:at_least]
            found |= dict.fromkeys(best, label)
    return found


@given(posteriors, bounds)
def test_the_threshold_rule_takes_the_one_class_above(probs: np.ndarray, rho: float) -> None:
    positions, labels = COLLECTORS["cross-fitted"](probs, threshold_of(rho))
    expected = above(probs, (1 + rho) / 2)
    assert dict(zip(positions.tolist(), labels.tolist(), strict=True)) == expected


@given(posteriors, bounds, st.integers(0, 5))
def test_the_covering_rule_adds_the_surest_of_classes_that_fall_short(
    probs: np.ndarray, rho: float, at_least: int
) -> None:
    positions, labels = CoveringCollector(at_least=at_least)(probs, threshold_of(rho))
    expected = covered(probs, (1 + rho) / 2, at_least)
    assert dict(zip(positions.tolist(), labels.tolist(), strict=True)) == expected
    for label in range(probs.shape[1]):
        possible = int((probs.argmax(axis=1) == label).sum())
        assert (labels == label).sum() >= min(at_least, possible)


@pytest.mark.parametrize("rho", [-0.1, 1.0, 1.5, float("nan")])
def test_an_impossible_bound_is_refused(rho: float) -> None:
    with pytest.raises(InputError, match=r"rho_max: must lie in \[0, 1\)"):
        threshold_of(rho)
    data = sample()
    with pytest.raises(InputError, match="rho_max"):
        quick_bltm(rho_max=rho).fit(data.x, data.y_noisy)


def test_the_three_collectors_have_the_posteriors_they_want() -> None:
    assert {name: rule.out_of_sample for name, rule in COLLECTORS.items()} == {
        "in-sample": False,
        "cross-fitted": True,
        "covering": True,
    }
    assert all(rule.name == name for name, rule in COLLECTORS.items())
    for unknown in ("best", 3, None):
        with pytest.raises(InputError, match="Use one of in-sample, cross-fitted, covering"):
            get_collector(unknown)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("error::bltm.core.errors.CoverageWarning")
def test_thin_classes_are_named_with_their_counts() -> None:
    job = tiny_job(n=90, validation=0.0)
    probs = np.full((90, 3), 0.05, dtype=np.float32)
    probs[:, 0] = 0.9
    probs[:4] = [0.05, 0.9, 0.05]
    posterior = Posterior(probs, True, "")
    with pytest.warns(CoverageWarning, match=r"2 of 3 classes .* 0.65: 1 \(4\), 2 \(0\)"):
        collected = collect(job, "collect", posterior, COLLECTORS["cross-fitted"], 0.65)
    assert collected.coverage.tolist() == [86, 4, 0]
    assert len(collected) == 90


@pytest.mark.filterwarnings("error::bltm.core.errors.CoverageWarning")
def test_covered_classes_are_not_warned_of() -> None:
    job = tiny_job(n=90, validation=0.0)
    posterior = Posterior(np.eye(3, dtype=np.float32)[np.arange(90) % 3], True, "")
    collected = collect(job, "collect", posterior, COLLECTORS["cross-fitted"], 0.65)
    assert collected.coverage.tolist() == [30, 30, 30]


def test_only_training_examples_are_collected() -> None:
    job = tiny_job(n=90)
    posterior = Posterior(np.eye(3, dtype=np.float32)[np.arange(90) % 3], True, "")
    collected = collect(job, "collect", posterior, COLLECTORS["cross-fitted"], 0.65)
    assert collected.indices.tolist() == job.split.train.tolist()
    assert collected.bayes_labels.tolist() == (job.split.train % 3).tolist()


class EveryOther:
    """A user's own rule."""

    name = "every other"
    out_of_sample = False

    def __init__(self) -> None:
        self.thresholds: list[float] = []

    def __call__(self, probs: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
        self.thresholds.append(threshold)
        positions = np.arange(0, len(probs), 2)
        return positions, probs[positions].argmax(axis=1)


def test_a_collector_of_the_users_own_is_used() -> None:
    data, rule = sample(), EveryOther()
    model = quick_bltm(collector=rule, rho_max=0.2).fit(data.x, data.y_noisy)
    assert rule.thresholds == [0.6]
    assert model.collected_.collector == "every other"
    assert len(model.collected_) == (model.findings_["training_examples"] + 1) // 2
    assert not model.posterior_.out_of_sample


@pytest.mark.parametrize(
    ("collector", "out_of_sample"), [("cross-fitted", True), ("in-sample", False)]
)
def test_a_model_of_the_users_own_gives_the_posteriors(collector: str, out_of_sample: bool) -> None:
    data = sample(300)
    model = quick_bltm(posterior=LogisticRegression(), collector=collector, epochs=8)
    model.fit(data.x, data.y_noisy)
    assert "LogisticRegression" in model.posterior_.source
    assert model.posterior_.out_of_sample == out_of_sample
    assert len(model.collected_) > 100
    assert (model.predict(data.x) == data.y_bayes).mean() > 0.85
    assert not any(line["stage"].startswith("warm_up") for line in model.history_)


def test_collected_labels_of_the_estimator_are_above_the_threshold() -> None:
    data = sample(300)
    model = quick_bltm(epochs=15, rho_max=0.4).fit(data.x, data.y_noisy)
    found = model.collected_
    assert found.threshold == pytest.approx(0.7)
    probs = model.posterior_.probs[found.indices]
    assert (probs[np.arange(len(found)), found.bayes_labels] > 0.7).all()
    assert model.posterior_.out_of_sample


def test_a_rule_prints_as_what_it_is() -> None:
    assert ThresholdCollector("in-sample", False) == COLLECTORS["in-sample"]
