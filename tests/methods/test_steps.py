"""Steps 3 and 4 of Algorithm 1 and the revision, each against its formula."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from bltm.core.records import Collected, Posterior
from bltm.engine.batches import Batch, Moment
from bltm.engine.correction import corrected_score, forward_step
from bltm.engine.job import Job
from bltm.engine.schedule import Schedule
from bltm.engine.supervised import cross_entropy_step, fit_cross_entropy
from bltm.engine.transition_model import TransitionModel, column_of_given_label
from bltm.losses import transition_nll
from bltm.methods.bltm.correct import correct, least_shares, recent
from bltm.methods.bltm.learn_transition import learn_transition
from bltm.methods.bltm.presets import DEFAULT, PAPER, Recipe
from bltm.methods.bltm.revise import revise
from bltm.nets.transition import TransitionNetwork, make_transition_network
from bltm.nets.weights import copy_fitting
from bltm.transition.revision import Revision
from engine.helpers import blobs, tiny_job, weights_of

SHORT = Schedule(3, 0.01, "adam", batch_size=16)
RECIPE = replace(DEFAULT, transition=SHORT, classifier=SHORT, revision=SHORT, revision_proof=0.0)
X = torch.from_numpy(blobs(60)[0])
BASE = np.full((3, 3), 0.1) + 0.7 * np.eye(3)


def identity_model() -> TransitionModel:
    """T*(x) that is the identity, exactly."""
    network = make_transition_network("mlp", (4,), 3)
    nn.init.zeros_(network.head.residual.weight)  # type: ignore[union-attr, arg-type]
    nn.init.zeros_(network.head.residual.bias)  # type: ignore[union-attr, arg-type]
    network.head.log_base = torch.eye(3).log()
    return TransitionModel(network)


def some_model(seed: int = 0) -> TransitionModel:
    torch.manual_seed(seed)
    network = make_transition_network("mlp", (4,), 3)
    nn.init.normal_(network.head.residual.weight, std=0.3)  # type: ignore[union-attr, arg-type]
    return TransitionModel(network.requires_grad_(False).eval())


def everything(job: Job) -> Collected:
    index = job.split.train
    labels = job.data.labels[index]
    return Collected(index, labels, 0.65, np.bincount(labels, minlength=3), "all")


def test_eq_3_has_a_gradient_through_the_row_of_the_bayes_label_only() -> None:
    network = make_transition_network("mlp", (4,), 3)
    assert isinstance(network, TransitionNetwork)
    bayes, noisy = torch.tensor([1, 1, 1]), torch.tensor([0, 1, 2])
    log_rows, _ = network(X[:3], bayes)
    transition_nll(log_rows, noisy).sum().backward()
    gradient = network.head.residual.weight.grad.view(3, 3, -1)  # type: ignore[union-attr, operator]
    assert (gradient[[0, 2]] == 0).all()
    assert (gradient[1] != 0).any()


def test_the_transition_network_learns_eq_3_and_is_frozen_afterwards() -> None:
    """All examples at one point: the row of their Bayes label tends to the frequencies."""
    job = tiny_job(validation=0.0)
    recipe = replace(PAPER, transition=Schedule(60, 0.05, "adam", batch_size=60))
    labels = np.zeros(60, dtype=np.int64)
    collected = Collected(np.arange(60), labels, 0.65, np.array([60, 0, 0]), "all")
    job.data.labels[:] = np.arange(60) % 5 % 3  # 0: 24, 1: 24, 2: 12
    job.data.examples.values[:] = 1.0  # type: ignore[attr-defined]
    model = learn_transition(job, recipe, "transition", collected, None, None)
    with torch.no_grad():
        row = model(torch.ones(1, 4))[0, 0]
    torch.testing.assert_close(row, torch.tensor([0.4, 0.4, 0.2]), atol=0.01, rtol=0)
    assert not any(p.requires_grad for p in model.parameters())
    assert not model.network.training


def test_the_penalty_holds_the_network_to_the_counted_matrix() -> None:
    job = tiny_job()
    distances = []
    for penalty in ((0.0, 0.0), (100.0, 100.0)):
        recipe = replace(RECIPE, penalty=penalty)
        model = learn_transition(job, recipe, "t", everything(job), BASE, None)
        base = model.network.head.log_base.softmax(-1)  # type: ignore[operator]
        with torch.no_grad():
            distances.append(float((model(X) - base).abs().max()))
    assert distances[1] < 0.1 * distances[0]


def test_next_to_nothing_collected_leaves_the_counted_matrix() -> None:
    job = tiny_job()
    nothing = Collected(np.arange(0), np.arange(0), 0.65, np.zeros(3, np.int64), "none")
    model = learn_transition(job, RECIPE, "t", nothing, BASE, None)
    base = model.network.head.log_base.softmax(-1)  # type: ignore[operator]
    with torch.no_grad():
        torch.testing.assert_close(model(X), base.expand(60, 3, 3))
    assert job.bench.outcomes == []


def test_the_trunk_starts_from_the_warmed_up_network_where_the_recipe_says_so() -> None:
    job = tiny_job()
    warm = fit_cross_entropy(job, "warm_up", SHORT)
    network = make_transition_network("mlp", (4,), 3)
    copy_fitting(warm, network.trunk)
    own = network.trunk.state_dict()
    for name, value in warm.state_dict().items():
        if not name.startswith("fc."):
            assert torch.equal(own[name], value)


def test_with_t_the_identity_correction_is_cross_entropy_step_by_step() -> None:
    job = tiny_job(validation=0.0)
    corrected = correct(job, RECIPE, "same", identity_model(), None).classifier
    plain = fit_cross_entropy(tiny_job(validation=0.0), "same", SHORT)
    losses = [line["loss"] for line in job.bench.store.history]
    for one, other in zip(corrected.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)
    assert losses == sorted(losses, reverse=True)


def test_one_corrected_step_with_t_the_identity_has_the_gradient_of_cross_entropy() -> None:
    job = tiny_job()
    labels = torch.from_numpy(job.data.labels)
    net = job.new_classifier("net")
    columns = column_of_given_label(job, identity_model())
    gradients = []
    for step in (forward_step, cross_entropy_step):
        net.zero_grad()
        batch = Batch(torch.arange(60), X, labels, torch.ones(60), {"columns": columns})
        step({"classifier": net}, batch).mean().backward()
        gradients.append([p.grad.clone() for p in net.parameters()])  # type: ignore[union-attr]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-8, rtol=1e-5)


def test_eq_5_is_the_noisy_likelihood_of_the_given_label() -> None:
    job, model = tiny_job(), some_model()
    net = job.new_classifier("net")
    labels = torch.from_numpy(job.data.labels)
    columns = column_of_given_label(job, model)
    batch = Batch(torch.arange(60), X, labels, torch.ones(60), {"columns": columns})
    with torch.no_grad():
        loss = forward_step({"classifier": net}, batch)
        probs, T = net(X).softmax(1).double(), model(X).double()
        expected = [
            -np.log(sum(float(probs[b, i] * T[b, i, labels[b]]) for i in range(3)))
            for b in range(60)
        ]
        score = corrected_score(model)({"classifier": net}, batch)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    np.testing.assert_allclose(-score[torch.arange(60), labels], expected, rtol=1e-5)
    np.testing.assert_allclose(score.exp().sum(dim=1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("step", ["correct", "revise"])
def test_a_share_of_the_correction_is_that_of_t_mixed_with_the_identity(step: str) -> None:
    one_step = Schedule(1, 0.0, batch_size=60)
    recipe = replace(RECIPE, classifier=one_step, revision=one_step, correction=0.25)
    job, model = tiny_job(validation=0.2), some_model()
    start = job.new_classifier("start")
    run = correct if step == "correct" else revise
    result = run(job, recipe, "stage", model, start)
    labels = torch.from_numpy(job.data.labels)
    with torch.no_grad():
        f, T = start(X).softmax(1).double(), model(X).double()
        noisy = (f[:, None] @ (0.75 * torch.eye(3) + 0.25 * T))[:, 0]
    losses = -noisy.log()[torch.arange(60), labels]
    (line,) = job.bench.store.history
    assert line["loss"] == pytest.approx(float(losses[job.split.train].mean()), rel=1e-5)
    held_out = float(losses[job.split.validation].mean())
    assert line["val_loss"] == pytest.approx(held_out, rel=1e-5)
    # What labels are judged by is all of T(x).
    torch.testing.assert_close(result.columns, column_of_given_label(job, model))


def test_the_least_share_is_that_of_given_or_of_likeliest_labels() -> None:
    """Class 1 has half of the labels and is seldom likeliest, with class 2 it is the reverse."""
    job = tiny_job(validation=0.2)
    probs = np.full((60, 3), 0.1, dtype=np.float32)
    train, n = job.split.train, len(job.split.train)
    given, likeliest = np.repeat([0, 1], n // 2), np.repeat([0, 1, 2], [n // 2, n // 8, 3 * n // 8])
    job.data.labels[train], probs[train, likeliest] = given, 0.8
    job.data.labels[job.split.validation] = 2
    posterior = Posterior(probs, True, "test")
    found = least_shares(job, replace(RECIPE, least_share=0.5), posterior)
    assert found == pytest.approx((0.25, 0.0625, 0.0))
    assert least_shares(job, PAPER, posterior) == ()


def test_weights_count_in_least_shares() -> None:
    job = tiny_job(validation=0.0)
    job.data.labels[:] = np.repeat([0, 1, 2], 20)
    job.data.weights[20:40] = 3.0
    posterior = Posterior(np.eye(3, dtype=np.float32)[job.data.labels], True, "test")
    found = least_shares(job, replace(RECIPE, least_share=1.0), posterior)
    assert found == pytest.approx((0.2, 0.6, 0.2))


@pytest.mark.parametrize(("shares", "kept"), [((), False), ((0.15,) * 3, True)])
def test_a_class_that_t_explains_away_is_kept_by_the_bound(
    shares: tuple[float, ...], kept: bool
) -> None:
    """Labels of class 2 are as likely where the right label is another, and f has given it up."""
    job = tiny_job(n=120, validation=0.0)
    start = job.new_classifier("start")
    with torch.no_grad():
        start.fc.bias[2] -= 12.0  # type: ignore[index, operator, union-attr]
    columns = torch.tensor([[0.5, 0.0, 0.0], [0.0, 0.5, 0.0], [0.5, 0.5, 0.5]]).clamp_min(1e-4)
    columns = columns.log()[torch.from_numpy(job.data.labels)]
    recipe = replace(
        RECIPE, classifier=Schedule(20, 0.01, "adam", batch_size=30), least_shares=shares
    )
    fitted = correct(job, recipe, "stage", some_model(), start, columns).classifier
    share = float(torch.softmax(job.outputs(fitted), dim=1)[:, 2].mean())
    assert (share > 0.1) == kept, share


def loss_on_right_labels(shares: tuple[float, ...]) -> float:
    """Return the loss of a classifier that was trained with batches of four examples."""
    job = tiny_job(n=120, validation=0.0)
    columns = torch.eye(3).clamp_min(1e-4).log()[torch.from_numpy(job.data.labels)]
    recipe = replace(
        RECIPE, classifier=Schedule(20, 0.01, "adam", batch_size=4), least_shares=shares
    )
    classifier = correct(job, recipe, "stage", some_model(), None, columns).classifier
    log_probs = job.outputs(classifier).log_softmax(dim=1)
    labels = torch.from_numpy(job.data.labels)[:, None]
    return float(-log_probs.gather(1, labels).mean())


def test_a_class_that_small_batches_lack_by_chance_is_not_called_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bound is far below the share of any class, so it should not act."""
    shares = (1 / 6,) * 3
    alone = loss_on_right_labels(())
    assert loss_on_right_labels(shares) == pytest.approx(alone, abs=0.01)
    monkeypatch.setattr("bltm.methods.bltm.correct.ENOUGH", 0.1)
    assert loss_on_right_labels(shares) > alone + 0.05


@pytest.mark.parametrize("pace", [1.0, 0.3])
def test_the_recent_mean_follows_the_batches(pace: float) -> None:
    memory = {"predicted": torch.full((2,), torch.nan)}
    expected = torch.zeros(2)
    for number, mean in enumerate(torch.tensor([[0.2, 0.8], [0.6, 0.4], [1.0, 0.0]])):
        expected = mean if number == 0 else (1 - pace) * expected + pace * mean
        moment = Moment(epoch=number // 2, position=number % 2, memory=memory)
        torch.testing.assert_close(recent(moment, mean, pace), expected)
        torch.testing.assert_close(memory["predicted"], expected)


@pytest.mark.parametrize("step", ["correct", "revise"])
def test_the_transition_network_does_not_move(step: str) -> None:
    job, model = tiny_job(), some_model()
    before = copy.deepcopy(weights_of(model))
    if step == "correct":
        correct(job, RECIPE, "stage", model, None)
    else:
        model = revise(job, RECIPE, "stage", model, None).transition
        assert model.revision is not None
    network = {f"network.{name}": value for name, value in weights_of(model.network).items()}
    assert network == {k: v for k, v in before.items() if k.startswith("network.")}
    assert not any(p.requires_grad for p in model.parameters())
    assert all(p.grad is None for p in model.network.parameters())


def with_dropout(n_outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, n_outputs)
    )


def test_a_frozen_network_with_dropout_and_batch_norm_stays_in_evaluation_mode() -> None:
    job = tiny_job(net=with_dropout)
    model = learn_transition(job, RECIPE, "transition", everything(job), BASE, None)
    before = weights_of(model)
    generator = torch.get_rng_state()
    correct(job, RECIPE, "correct", model, None)
    assert weights_of(model) == before
    assert torch.equal(torch.get_rng_state(), generator)
    assert not any(part.training for part in model.modules())
    revised = revise(job, RECIPE, "revise", model, None).transition
    assert weights_of(revised.network) == weights_of(model.network)
    assert not any(part.training for part in revised.modules())


def first_loss(job: Job, recipe: Recipe, step: str, columns: torch.Tensor | None) -> float:
    model = some_model()
    run = correct if step == "correct" else revise
    run(job, recipe, "stage", model, None, columns)
    return float(job.bench.store.history[0]["loss"])


@pytest.mark.parametrize("given", [False, True], ids=["of T*(x)", "that have not seen the labels"])
def test_with_an_offset_of_zero_the_revision_begins_where_the_correction_does(given: bool) -> None:
    one_step = Schedule(1, 0.01, batch_size=60)
    recipe = replace(RECIPE, classifier=one_step, revision=one_step)
    columns = torch.rand(60, 3, generator=torch.Generator().manual_seed(0)).log() if given else None
    losses = [
        first_loss(tiny_job(validation=0.0), recipe, step, columns)
        for step in ("correct", "revise")
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_the_offset_changes_given_columns_by_the_factors_of_those_of_t() -> None:
    job, model = tiny_job(), some_model()
    columns = torch.full((60, 3), 0.1).log()
    recipe = replace(RECIPE, revision_rate=5.0)
    result = revise(job, recipe, "stage", model, None, columns)
    after = column_of_given_label(job, result.transition)
    expected = columns + after - column_of_given_label(job, model)
    torch.testing.assert_close(result.columns, expected.clamp_max(0.0))


def test_the_offset_moves_and_revised_rows_sum_to_one() -> None:
    recipe = replace(RECIPE, revision_rate=5.0)
    model = revise(tiny_job(), recipe, "stage", some_model(), None).transition
    assert isinstance(model.revision, Revision)
    assert float(model.revision.delta.abs().max()) > 1e-3
    with torch.no_grad():
        T = model(X)
    assert (T >= 0).all()
    torch.testing.assert_close(T.sum(dim=2), torch.ones(60, 3))


def test_a_rate_of_zero_leaves_the_offset_at_zero() -> None:
    recipe = replace(RECIPE, revision_rate=0.0)
    model = revise(tiny_job(), recipe, "stage", some_model(), None).transition
    assert model.revision is not None
    assert (model.revision.delta == 0).all()


def test_the_revision_starts_from_the_classifier_it_is_given_and_leaves_it_alone() -> None:
    job = tiny_job()
    start = job.new_classifier("start")
    before = weights_of(start)
    frozen = replace(RECIPE, revision=replace(SHORT, lr=0.0))
    classifier = revise(job, frozen, "stage", some_model(), start).classifier
    assert weights_of(classifier) == before
    moved = revise(tiny_job(), RECIPE, "stage", some_model(), start).classifier
    assert weights_of(moved) != before
    assert weights_of(start) == before


@pytest.mark.parametrize(("proof", "taken"), [(-1e9, True), (1e9, False)])
def test_a_revision_that_held_out_labels_do_not_speak_for_is_not_taken(
    proof: float, taken: bool
) -> None:
    job = tiny_job(validation=0.3)
    start = job.new_classifier("start")
    before = weights_of(start)
    recipe = replace(RECIPE, revision_rate=5.0, revision_proof=proof)
    result = revise(job, recipe, "stage", some_model(), start)
    assert isinstance(result.transition, TransitionModel)
    assert result.transition.revision is not None
    moved = bool((result.transition.revision.delta != 0).any())
    assert moved == taken
    assert (weights_of(result.classifier) != before) == taken
