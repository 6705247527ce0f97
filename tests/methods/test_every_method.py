"""What holds for every method of the table, whatever it does."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

import bltm
from bltm.core.errors import InputError
from bltm.data.source import as_source
from bltm.engine.protocol import BUDGET
from bltm.engine.store import DirectoryStore
from bltm.engine.workbench import Interrupted, Workbench
from bltm.methods.base import NoisyLabelClassifier
from bltm.methods.registry import METHODS, make_method
from bltm.noise import make_noise
from engine.helpers import weights_of

from .helpers import sample

TINY = sample(90)
SHARED = {"random_state": 0, "device": "cpu"}

pytestmark = [
    pytest.mark.filterwarnings("ignore::bltm.core.errors.CollapseWarning"),
    pytest.mark.filterwarnings("ignore::bltm.core.errors.CoverageWarning"),
    pytest.mark.filterwarnings("ignore::bltm.core.errors.DataQualityWarning"),
]
every_method = pytest.mark.parametrize("name", METHODS)


@cache
def noisy_digits() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Real scans, noisy labels and right ones."""
    x, y = load_digits(return_X_y=True)
    x, y = x[:1200] / 16.0, y[:1200]
    return x, make_noise(x, y, "instance", 0.3, 0).y_noisy, y


@cache
def fitted_digits(name: str) -> NoisyLabelClassifier:
    x, noisy, _ = noisy_digits()
    return make_method(name, epochs=12, batch_size=32, **SHARED).fit(x, noisy)


def tiny(name: str, **parameters: Any) -> NoisyLabelClassifier:
    return make_method(name, **({"epochs": 2, "batch_size": 16} | SHARED | parameters))


def fit_in(
    directory: Path, model: NoisyLabelClassifier, stop: Callable[[], bool] = lambda: False
) -> NoisyLabelClassifier:
    def workbench(**parts: Any) -> Workbench:
        store = DirectoryStore(directory / "state", directory / "history.jsonl")
        return Workbench(store=store, stop_requested=stop, **parts)

    return model.fit_source(as_source(TINY.x, TINY.y_noisy), workbench)


def outcome(model: NoisyLabelClassifier) -> Any:
    findings = {k: v for k, v in model.findings_.items() if k != "seconds"}
    transition = None if model.transition_ is None else weights_of(model.transition_)
    return (
        weights_of(model.classifier_),
        transition,
        model.suspicion_.values.tobytes(),
        findings,
    )


def test_the_table_is_that_of_the_paper() -> None:
    assert list(METHODS) == [
        "cross-entropy",
        "gce",
        "apl",
        "decoupling",
        "mentornet",
        "coteaching",
        "coteaching-plus",
        "joint",
        "dmi",
        "forward",
        "reweight",
        "s2e",
        "t-revision",
        "ptd",
        "ptd-v",
        "dividemix",
        "bltm",
        "bltm-v",
        # Ours.
        "bltm+",
    ]


@every_method
def test_the_budget_is_kept(name: str) -> None:
    n = 10_000
    assert sum(stage.work for stage in make_method(name).plan(n)) / n <= BUDGET


@every_method
def test_the_passes_that_were_planned_are_those_that_were_made(name: str) -> None:
    model = tiny(name).fit(TINY.x, TINY.y_noisy)
    planned = sum(stage.work for stage in model.plan(81)) / 81
    # Stages on a part of the examples (collected, divided) are planned as if on all of them.
    assert 0 < model.findings_["passes"] <= planned * 1.05


@pytest.mark.slow
@every_method
def test_digits_are_learned_and_wrong_labels_found(name: str) -> None:
    x, noisy, right = noisy_digits()
    model = fitted_digits(name)
    assert (model.predict(x) == right).mean() > 0.6
    assert model.suspicion_.kind in ("probability", "score")
    assert model.suspicion_.values.min() >= 0.0
    assert model.suspicion_.values.max() <= 1.0
    assert roc_auc_score(noisy != right, model.suspicion_.values) > 0.75


@every_method
def test_one_seed_gives_one_result_and_another_seed_another(name: str) -> None:
    first, again, other = (
        outcome(tiny(name, random_state=seed).fit(TINY.x, TINY.y_noisy)) for seed in (0, 0, 1)
    )
    assert first == again
    assert first[0] != other[0]


@every_method
def test_a_fit_stopped_anywhere_ends_the_same(name: str, tmp_path: Path) -> None:
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 1
        return False

    whole = outcome(fit_in(tmp_path / "whole", tiny(name), count))
    rng = np.random.default_rng(0)
    for limit in sorted({1, steps, *rng.integers(1, steps, 4).tolist()}):
        directory, made = tmp_path / str(limit), 0

        def stop(limit: int = limit) -> bool:
            nonlocal made
            made += 1
            return made == limit

        with pytest.raises(Interrupted):
            fit_in(directory, tiny(name), stop)
        assert outcome(fit_in(directory, tiny(name))) == whole, f"stopped after step {limit}"


@every_method
def test_a_saved_model_says_the_same(name: str, tmp_path: Path) -> None:
    model = tiny(name).fit(TINY.x, TINY.y_noisy)
    model.save(tmp_path / "model")
    again = bltm.load(tmp_path / "model")
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.predict_proba(TINY.x), model.predict_proba(TINY.x))
    if METHODS[name].gives != "-":
        np.testing.assert_array_equal(
            again.predict_transition(TINY.x[:7]), model.predict_transition(TINY.x[:7])
        )


@every_method
def test_transitions_are_what_the_table_says(name: str) -> None:
    # Long enough for posteriors that are sure of something.
    model = tiny(name, epochs=20).fit(TINY.x, TINY.y_noisy)
    gives = METHODS[name].gives
    assert (model.transition_ is None) == (gives == "-")
    if gives != "-":
        T = np.asarray(model.predict_transition(TINY.x))
        assert T.shape == (90, 3, 3)
        assert T.min() >= 0.0
        np.testing.assert_allclose(T.sum(axis=2), 1.0, atol=1e-5)
        assert (gives == "T") == bool(np.ptp(T, axis=0).max() == 0.0)
        rows = np.asarray(model.predict_transition(TINY.x, rows=TINY.y_noisy))
        np.testing.assert_allclose(rows, T[np.arange(90), TINY.y_noisy], atol=1e-6)


@every_method
def test_two_classes_a_rare_one_an_absent_one_and_weights(name: str) -> None:
    rng = np.random.default_rng(0)
    y = np.array([0] * 27 + [1] * 30 + [2] * 3)
    x = rng.standard_normal((60, 4)) + 3.0 * np.eye(4)[y]
    two = tiny(name).fit(x[:57], np.array(["no", "yes"])[y[:57]])
    assert set(two.predict(x)) <= {"no", "yes"}
    weights = rng.integers(1, 4, 60)
    model = tiny(name, classes=[0, 1, 2, 3]).fit(x, y, sample_weight=weights)
    proba = model.predict_proba(x)
    assert proba.shape == (60, 4)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-6)


@every_method
def test_trusted_labels_are_not_suspected(name: str) -> None:
    trusted = np.arange(90) % 3 == 0
    model = tiny(name).fit(TINY.x, TINY.y_noisy, trusted=trusted)
    assert (model.suspicion_.values[trusted] == 0.0).all()
    assert (model.suspicion_.values[~trusted] > 0.0).any()


# Methods whose last stage cannot be trained alone on a part of the examples.
IN_SAMPLE_ONLY = {"joint", "dmi", "dividemix"}


@every_method
def test_labels_are_judged_by_classifiers_that_have_not_seen_them(
    name: str, tmp_path: Path
) -> None:
    plain, folded = (
        tiny(name).fit(TINY.x, TINY.y_noisy),
        tiny(name, audit_folds=2).fit(TINY.x, TINY.y_noisy),
    )
    # What is learned is the same; only the judgement of labels differs.
    assert (folded.predict_proba(TINY.x) == plain.predict_proba(TINY.x)).all()
    unseen = folded.evidence_.out_of_sample
    assert plain.evidence_.out_of_sample is None
    if name in IN_SAMPLE_ONLY:
        assert unseen is None
        return
    assert unseen is not None
    np.testing.assert_allclose(unseen.sum(axis=1), 1.0, atol=1e-5)
    assert "out of sample" in folded.suspicion_.source
    assert (unseen != folded.probs_).any()
    # A fold may be judged by several networks, each with a stage of its own.
    stages = {"/".join(line["stage"].split("/")[:2]) for line in folded.history_}
    assert {"audit/fold-1", "audit/fold-2"} <= stages
    again = fit_in(tmp_path, tiny(name, audit_folds=2))
    taken = fit_in(tmp_path, tiny(name, audit_folds=2))
    for other in (again, taken):
        assert (other.suspicion_.values == folded.suspicion_.values).all()
        assert other.findings_["passes"] == folded.findings_["passes"]


@every_method
def test_evidence_is_what_the_method_knows(name: str) -> None:
    model = tiny(name).fit(TINY.x, TINY.y_noisy)
    evidence = model.evidence_
    n, n_classes = len(TINY.y_noisy), len(model.classes_)
    assert evidence.ids == list(range(n))
    assert (np.asarray(evidence.classes)[evidence.labels] == TINY.y_noisy).all()
    assert (evidence.probs == model.probs_).all()
    if model.transition_ is None:
        assert evidence.columns is None
        assert evidence.rows is None
        return
    assert evidence.columns is not None
    assert evidence.rows is not None
    assert evidence.columns.shape == evidence.rows.shape == (n, n_classes)
    T = np.asarray(model.predict_transition(TINY.x))
    expected = T[np.arange(n), :, evidence.labels]
    np.testing.assert_allclose(np.exp(evidence.columns), expected, atol=1e-5)
    # The estimator and the audit say the same.
    found = bltm.audit(model)
    np.testing.assert_allclose(evidence.rows, T[np.arange(n), found.suggested], atol=1e-5)
    np.testing.assert_allclose(model.suspicion_.values, found.p_wrong, atol=1e-5)
    rate = found.summary.noise_rate.value
    assert model.findings_["noise_rate"] == pytest.approx(rate, abs=1e-6)


@every_method
def test_a_fit_without_validation_data(name: str) -> None:
    model = tiny(name, validation_fraction=0.0).fit(TINY.x, TINY.y_noisy)
    assert model.findings_["validation_examples"] == 0
    assert np.isfinite(model.predict_proba(TINY.x)).all()


@every_method
def test_images_are_learned_by_a_convolutional_net(name: str) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(48) % 3
    images = rng.integers(0, 60, (48, 12, 12, 3), dtype=np.uint8)
    images[np.arange(48), :, :, y] += 150
    model = tiny(name, net="compact", epochs=3).fit(images, y)
    assert (model.predict(images) == y).mean() > 0.5


@every_method
def test_the_noise_rate_is_given_or_estimated_and_the_result_says_which(name: str) -> None:
    needs = "noise rate" in METHODS[name].needs
    assert ("noise_rate" in make_method(name).get_params()) == needs
    if needs:
        found = tiny(name).fit(TINY.x, TINY.y_noisy).findings_
        assert found["assumed_noise_rate_source"] == "estimated"
        assert 0.0 <= found["assumed_noise_rate"] <= 0.9
        found = tiny(name, noise_rate=0.25).fit(TINY.x, TINY.y_noisy).findings_
        assert (found["assumed_noise_rate"], found["assumed_noise_rate_source"]) == (0.25, "given")
        with pytest.raises(InputError, match="noise_rate: must be at least 0 and below 1"):
            tiny(name, noise_rate=1.5).fit(TINY.x, TINY.y_noisy)


@every_method
def test_several_processes_are_refused_with_a_reason_where_a_batch_cannot_be_divided(
    name: str,
) -> None:
    model = make_method(name)
    if model.couples_batch is None:
        model.check_processes(2)
    else:
        with pytest.raises(InputError, match="devices: .* cannot be trained by 2 processes: "):
            model.check_processes(2)


@every_method
def test_unknown_presets_are_refused_and_the_published_one_is_there(name: str) -> None:
    with pytest.raises(InputError, match="preset: unknown: 'none'"):
        make_method(name, preset="none").plan(100)
    assert make_method(name, preset="paper").plan(1000)


@every_method
def test_every_method_has_a_page(name: str) -> None:
    docs = Path(__file__).parents[2] / "docs" / "methods"
    page = docs / f"{name.removesuffix('-v') if name in ('ptd-v', 'bltm-v') else name}.md"
    text = page.read_text(encoding="utf-8")
    assert f"--method {name}" in text


def test_the_pages_have_an_index_with_the_registrys_rows() -> None:
    index = Path(__file__).parents[2] / "docs" / "methods" / "README.md"
    lines = [line for line in index.read_text(encoding="utf-8").splitlines() if "| [" in line]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [row[1:] for row in rows] == [
        [m.family, ", ".join(m.needs) or "-", m.gives, m.paper] for m in METHODS.values()
    ]
    for row, name in zip(rows, METHODS, strict=True):
        text, _, page = row[0].strip("[)").partition("](")
        assert text == name
        assert (index.parent / page).is_file()
