"""DivideMix as a whole: its stages, its defaults, and divisions that go wrong."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from bltm.core.errors import InputError
from bltm.engine.batches import Batch
from bltm.engine.protocol import BUDGET
from bltm.engine.stage import Modules
from bltm.methods.dividemix import DivideMixClassifier, estimator
from bltm.methods.dividemix.divide import LossMixture
from bltm.methods.dividemix.mix import CLEAN, NETWORKS, MixStep
from bltm.nets.ensemble import Ensemble
from bltm.noise import make_noise
from engine.helpers import tiny_job, weights_of

from .helpers import sample

DATA = sample(120)
pytestmark = pytest.mark.filterwarnings("ignore::bltm.core.errors.DataQualityWarning")


def quick(**parameters: Any) -> DivideMixClassifier:
    settings = {"epochs": 2, "batch_size": 32, "noise_rate": 0.4, "random_state": 0}
    return DivideMixClassifier(**(settings | parameters))


def test_it_learns_digits_and_finds_wrong_labels() -> None:
    x, y = load_digits(return_X_y=True)
    x, y = x[:1000] / 16.0, y[:1000]
    noisy = make_noise(x, y, "instance", 0.3, 0).y_noisy
    model = quick(epochs=8, noise_rate=None).fit(x, noisy)
    assert (model.predict(x) == y).mean() > 0.75
    assert model.suspicion_.kind == "probability"
    assert roc_auc_score(noisy != y, model.suspicion_.values) > 0.8
    assert 0.15 < model.findings_["noise_rate"] < 0.45


def test_the_classifier_is_the_mean_of_both_networks() -> None:
    model = quick().fit(DATA.x, DATA.y_noisy)
    assert isinstance(model.classifier_, Ensemble)
    first, second = model.classifier_.networks
    assert weights_of(first) != weights_of(second)
    examples = model.encoder_.encode(model._source(DATA.x, for_prediction=True))
    with torch.no_grad():
        logits = (first(examples.values) + second(examples.values)) / 2
    np.testing.assert_allclose(
        model.predict_proba(DATA.x), logits.double().softmax(1).numpy(), atol=1e-6
    )


def test_suspicion_is_what_both_final_networks_leave_to_the_upper_component() -> None:
    model = quick().fit(DATA.x, DATA.y_noisy)
    values = model.suspicion_.values
    assert len(values) == len(DATA.x)
    given = model.predict_proba(DATA.x)[np.arange(len(DATA.x)), DATA.y_noisy]
    # Not monotone in the classifier's probability, but clearly tied to it.
    assert np.corrcoef(values, given)[0, 1] < -0.5
    share = model.findings_["labelled_share"]
    assert len(share) == 2
    assert all(0.0 < value <= 1.0 for value in share)


def test_the_budget_is_kept_with_all_lengths() -> None:
    stages = DivideMixClassifier().plan(10_000)
    assert [stage.stage for stage in stages] == [
        "noise_rate",
        "noise_rate",
        "warm_up",
        "divide_and_mix",
    ]
    assert sum(stage.work for stage in stages) / 10_000 == 6 + 2 * 6 + 4 * (6 + 12) <= BUDGET
    assert len(DivideMixClassifier(noise_rate=0.3).plan(100)) == 2
    assert len(DivideMixClassifier(lambda_u=0.0).plan(100)) == 2


def test_the_paper_preset_is_the_published_schedule() -> None:
    *_, warm_up, main = DivideMixClassifier(preset="paper").plan(50_000)
    assert warm_up.schedule.epochs + main.schedule.epochs == 300
    assert warm_up.schedule.epochs + main.schedule.milestones[0] == 150
    for stage in (warm_up, main):
        schedule = stage.schedule
        assert (schedule.optimizer, schedule.lr, schedule.momentum) == ("sgd", 0.02, 0.9)
        assert (schedule.weight_decay, schedule.batch_size) == (5e-4, 2 * 64)
    assert estimator.PRESETS["paper"].ramp * main.schedule.epochs == 16


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_passes_count_every_view_of_every_network(preset: str) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    images = rng.integers(0, 60, (60, 8, 8, 1), dtype=np.uint8)
    images[y == 1] += 150
    fits = {
        augment: quick(preset=preset, augment=augment, net="mlp").fit(images, y)
        for augment in ("auto", "none")
    }
    n, epochs = fits["auto"].findings_["training_examples"], 2
    planned = {
        augment: sum(stage.work for stage in model.plan(n)) / n for augment, model in fits.items()
    }
    passes = {augment: model.findings_["passes"] for augment, model in fits.items()}
    if preset == "default":
        assert planned == passes == {"auto": 2 * epochs + 4 * epochs, "none": 4 * epochs}
    else:
        assert planned == {"auto": 2 * epochs + 8 * epochs, "none": 6 * epochs}
        assert all(0 < passes[augment] <= planned[augment] for augment in planned)


@pytest.mark.filterwarnings("ignore::bltm.core.errors.CollapseWarning")
def test_images_are_augmented_by_default_and_tables_are_not() -> None:
    images = np.random.default_rng(0).integers(0, 255, (40, 8, 8), dtype=np.uint8)
    y = np.arange(40) % 2
    assert quick(epochs=1).fit(images, y).findings_["augment"] == "crop-flip"
    assert quick(epochs=1, augment="crop").fit(images, y).findings_["augment"] == "crop"
    assert quick(epochs=1).fit(DATA.x, DATA.y_noisy).findings_["augment"] == "none"
    with pytest.raises(InputError, match="augment: 'crop-flip' is for images"):
        quick(augment="crop-flip").fit(DATA.x, DATA.y_noisy)


def test_the_views_of_a_step_differ_and_the_losses_that_divide_are_of_plain_images(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[torch.Tensor] = []

    def watched(x: torch.Tensor) -> torch.Tensor:
        calls.append(x)
        return x + torch.rand(())

    job = tiny_job(n=60)
    object.__setattr__(job, "augment", watched)
    model = quick(lambda_u=5.0)
    model._fit(job)
    steps = sum(line["epochs"] == line["epoch"] for line in job.bench.store.history)
    assert steps == 2
    per_network = -(-len(job.split.train) // 32)
    # Two epochs of two networks with two views; the warm-up has plain images.
    assert len(calls) == 2 * 2 * 2 * per_network
    assert all(torch.equal(a, b) for a, b in zip(calls[::2], calls[1::2], strict=True))


class Watched(MixStep):
    """Keeps what each step of the main stage found."""

    seen: list[dict[str, Any]] = []

    def __call__(self, modules: Modules, batch: Batch) -> torch.Tensor:
        self.seen.append(
            {
                "moment": batch.moment,
                "index": batch.index,
                "w": batch.moment.memory[CLEAN].clone(),
                "weights": [weights_of(modules[name]) for name in NETWORKS],
                "lambda_u": self.lambda_u,
                "prior": self.prior,
            }
        )
        return super().__call__(modules, batch)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.setattr(estimator, "MixStep", Watched)
    monkeypatch.setattr(Watched, "seen", [])
    return Watched.seen


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_each_network_learns_half_an_epoch_from_the_division_of_the_other(
    watched: list[dict[str, Any]], preset: str
) -> None:
    model = quick(preset=preset, epochs=2).fit(DATA.x, DATA.y_noisy)
    n = model.findings_["training_examples"]
    assert {len(step["weights"]) for step in watched} == {2}
    for before, after in zip(watched[:-1], watched[1:], strict=True):
        moment = before["moment"]
        turn = int(moment.position >= moment.positions / 2)
        moved = [a != b for a, b in zip(before["weights"], after["weights"], strict=True)]
        assert moved == [turn == 0, turn == 1]
    for epoch in range(2):
        steps = [step for step in watched if step["moment"].epoch == epoch]
        half = len(steps) // 2
        w = steps[0]["w"]
        assert all(torch.equal(step["w"], w) for step in steps), "divided once, before the epoch"
        for turn, part in enumerate((steps[:half], steps[half:])):
            index = torch.cat([step["index"] for step in part])
            clean = w[index, 1 - turn] > 0.5
            n_clean = int(clean.sum())
            assert len(set(index[clean].tolist())) == n_clean
            if preset == "default":
                assert len(set(index.tolist())) == len(index) == n
            elif n_clean < n:
                assert len(index) == 2 * n_clean
    assert not torch.equal(watched[0]["w"], watched[-1]["w"]), "divided anew"


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("case", ["no noisy", "no clean", "one clean", "a class without clean"])
def test_divisions_that_go_wrong_leave_something_to_learn(
    watched: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, case: str, preset: str
) -> None:
    labels: list[int] = []

    def division(job: Any, network: Any, index: np.ndarray, *_: Any) -> np.ndarray:
        labels[:] = job.data.labels.tolist()
        w = {
            "no noisy": np.full(len(index), 0.9),
            "no clean": np.full(len(index), 0.1),
            "one clean": np.where(index == index[0], 0.9, 0.1),
            "a class without clean": np.where(job.data.labels[index] == 0, 0.1, 0.9),
        }[case]
        monkeypatch.setattr(
            LossMixture, "clean_probability", lambda self, losses: w.astype(np.float32)
        )
        return real(job, network, index, *_)

    real = estimator.clean_probabilities
    monkeypatch.setattr(estimator, "clean_probabilities", division)
    model = quick(preset=preset).fit(DATA.x, DATA.y_noisy)
    assert np.isfinite(model.predict_proba(DATA.x)).all()
    assert all(np.isfinite(line["loss"]) for line in model.history_)
    n = model.findings_["training_examples"]
    for step in watched:
        clean = step["w"][step["index"], 0] > 0.5
        assert clean.any(), "every batch has a label to learn from"
        if case in ("no noisy", "no clean"):
            assert clean.all()
        if case == "a class without clean":
            assert all(labels[row] != 0 for row in step["index"][clean])
    if case == "no clean":
        assert (model.suspicion_.values == 0.0).all()
    if case == "one clean" and preset == "default":
        first = [step for step in watched if step["moment"].epoch == 0]
        assert len(first) == 2 * -(-n // 32)


@pytest.mark.parametrize("n", [2, 5, 30])
@pytest.mark.filterwarnings("ignore::bltm.core.errors.CollapseWarning")
def test_tiny_data_without_validation(n: int) -> None:
    y = np.arange(n) % 2
    x = np.random.default_rng(0).standard_normal((n, 3)) + y[:, None]
    # Two examples are too few to estimate the noise rate by cross-fitting.
    rate = 0.3 if n == 2 else None
    model = quick(batch_size=16, epochs=1, noise_rate=rate).fit(x, y)
    assert np.isfinite(model.predict_proba(x)).all()


def test_absent_classes_and_weights(watched: list[dict[str, Any]]) -> None:
    weights = np.where(DATA.y_noisy == 0, 3.0, 1.0)
    model = quick(classes=[0, 1, 2, 3]).fit(DATA.x, DATA.y_noisy, sample_weight=weights)
    assert np.isfinite(model.predict_proba(DATA.x)).all()
    prior = watched[0]["prior"]
    counts = np.bincount(DATA.y_noisy, weights, 4)
    np.testing.assert_allclose(prior, counts / counts.sum(), atol=0.03)
    assert prior[3] == 0.0
    watched.clear()
    quick(prior="uniform").fit(DATA.x, DATA.y_noisy)
    np.testing.assert_allclose(watched[0]["prior"], 1 / 3, rtol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"noise_rate": 0.2}, 0.0),
        ({"noise_rate": 0.45}, 0.0),
        ({"noise_rate": 0.35, "confidence_penalty": False}, 12.5),
        ({"noise_rate": 0.8}, 25.0),
        ({"noise_rate": 0.8, "lambda_u": 3.0}, 3.0),
    ],
)
def test_the_weight_of_the_unlabelled_loss_follows_the_noise_rate_or_is_given(
    watched: list[dict[str, Any]], parameters: dict[str, Any], expected: float
) -> None:
    model = quick(epochs=1, **parameters).fit(DATA.x, DATA.y_noisy)
    assert watched[0]["lambda_u"] == pytest.approx(expected)
    assert model.findings_["lambda_u"] == pytest.approx(expected)
    assert ("assumed_noise_rate" in model.findings_) == ("lambda_u" not in parameters)


def test_an_estimated_noise_rate_is_recorded() -> None:
    found = quick(noise_rate=None).fit(DATA.x, DATA.y_noisy).findings_
    assert found["assumed_noise_rate_source"] == "estimated"
    assert found["lambda_u"] == estimator.usual_lambda_u(found["assumed_noise_rate"], True)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0.0}, "alpha: must be above 0"),
        ({"temperature": -1.0}, "temperature: must be above 0"),
        ({"temperature": float("nan")}, "temperature: must be above 0"),
        ({"threshold": 1.0}, "threshold: must lie between 0 and 1"),
        ({"lambda_u": -1.0}, "lambda_u: must be finite and not negative"),
        ({"noise_rate": 1.0}, "noise_rate: must be at least 0 and below 1"),
        ({"prior": "flat"}, "prior: unknown: 'flat'"),
        ({"preset": "none"}, "preset: unknown: 'none'"),
    ],
)
def test_bad_parameters_are_refused_before_training(
    parameters: dict[str, Any], message: str
) -> None:
    model = quick(**parameters)
    with pytest.raises(InputError, match=message):
        model.plan(100)
    with pytest.raises(InputError, match=message):
        model.fit(DATA.x, DATA.y_noisy)
