"""Reweighted training with T fixed, and with an offset that is learned."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from bltm.engine.batches import Batch
from bltm.engine.correction import fit_corrected
from bltm.engine.parts_transition import PartsTransition
from bltm.engine.reweighting import as_mixture, fit_revised, fit_reweighted, reweighted_step
from bltm.engine.schedule import Schedule
from bltm.engine.supervised import fit_cross_entropy
from bltm.engine.transition_model import ClassTransition, column_of_given_label
from bltm.losses import cross_entropy

from .helpers import blobs, tiny_job, weights_of

SHORT = Schedule(3, 0.01, "adam", batch_size=16)
T = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.25, 0.15, 0.6]])
X = torch.from_numpy(blobs(60)[0])


def class_transition() -> ClassTransition:
    return ClassTransition(T).eval()


def parts_transition() -> PartsTransition:
    """Two parts by the sign of things, over features that batch statistics would change."""
    torch.manual_seed(0)
    trunk = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.5))
    matrices = torch.stack([T, torch.eye(3) * 0.7 + 0.1])
    return PartsTransition(trunk, torch.rand(2, 6), matrices).requires_grad_(False).eval()


@pytest.mark.parametrize("fit", [fit_reweighted, fit_corrected])
def test_with_t_the_identity_training_is_cross_entropy_step_by_step(fit: object) -> None:
    identity = ClassTransition(torch.eye(3))
    job, other = tiny_job(validation=0.0), tiny_job(validation=0.0)
    corrected = fit(job, "same", SHORT, identity, None).classifier  # type: ignore[operator]
    plain = fit_cross_entropy(other, "same", SHORT)
    for one, two in zip(corrected.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, two, atol=1e-6, rtol=1e-5)


def test_trusted_labels_have_the_loss_of_cross_entropy() -> None:
    trusted = np.arange(60) % 2 == 0
    job = tiny_job(trusted=trusted)
    labels = torch.from_numpy(job.data.labels)
    columns = column_of_given_label(job, class_transition())
    net = job.new_classifier("net")
    batch = Batch(torch.arange(60), X, labels, torch.ones(60), {"columns": columns})
    loss = reweighted_step({"classifier": net}, batch)
    plain = cross_entropy(net(X), labels)
    torch.testing.assert_close(loss[trusted], plain[trusted])
    assert ((loss - plain)[~trusted].abs() > 1e-3).all()


def validation_loss(job: object, probs: torch.Tensor, matrices: torch.Tensor) -> float:
    index = torch.from_numpy(job.split.validation)  # type: ignore[attr-defined]
    labels = torch.from_numpy(job.data.labels)[index]  # type: ignore[attr-defined]
    noisy = (probs[index, None] @ matrices[index])[:, 0]
    return float(-noisy.gather(1, labels[:, None]).log().mean())


@pytest.mark.parametrize("transition", [class_transition(), parts_transition()])
@pytest.mark.parametrize("revised", [False, True])
def test_epochs_are_judged_by_noisy_labels_through_t(
    transition: ClassTransition | PartsTransition, revised: bool
) -> None:
    job = tiny_job()
    start = job.new_classifier("start")
    still = replace(SHORT, lr=0.0, epochs=1)
    if revised:
        result = fit_revised(job, "stage", still, transition, start, 1.0)
    else:
        result = fit_reweighted(job, "stage", still, transition, start)
    with torch.no_grad():
        probs, matrices = result.classifier.eval()(X).softmax(1), transition(X)
    line = job.bench.store.history[-1]
    assert line["val_loss"] == pytest.approx(validation_loss(job, probs, matrices), rel=1e-4)


@pytest.mark.parametrize("transition", [class_transition(), parts_transition()])
def test_with_an_offset_of_zero_the_first_loss_is_that_of_reweighting(
    transition: ClassTransition | PartsTransition,
) -> None:
    one_step = Schedule(1, 0.01, batch_size=60)
    jobs = [tiny_job(validation=0.0, trusted=np.arange(60) % 5 == 0) for _ in range(2)]
    start = jobs[0].new_classifier("start")
    fit_reweighted(jobs[0], "stage", one_step, transition, start)
    fit_revised(jobs[1], "stage", one_step, transition, start, 1.0)
    losses = [job.bench.store.history[0]["loss"] for job in jobs]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize("transition", [class_transition(), parts_transition()])
def test_the_offset_moves_by_its_own_rate_and_nothing_else_of_t_does(
    transition: ClassTransition | PartsTransition,
) -> None:
    before = weights_of(transition)
    start = tiny_job().new_classifier("start")
    initial = weights_of(start)
    for rate in (0.0, 5.0):
        result = fit_revised(tiny_job(), "stage", SHORT, transition, start, rate)
        revision = result.transition.revision
        moved = float(revision.delta.abs().max())  # type: ignore[union-attr, operator]
        assert (moved > 1e-3) == (rate > 0)
        with torch.no_grad():
            matrices = result.transition(X)
        assert (matrices >= 0).all()
        torch.testing.assert_close(matrices.sum(dim=2), torch.ones(60, 3))
        assert not any(p.requires_grad for p in result.transition.parameters())
        assert weights_of(result.classifier) != initial
    assert weights_of(transition) == before
    assert weights_of(start) == initial
    assert not any(part.training for part in transition.modules())


def test_the_revised_columns_are_those_of_the_revised_transition() -> None:
    job = tiny_job()
    start = job.new_classifier("start")
    result = fit_revised(job, "stage", SHORT, parts_transition(), start, 5.0)
    labels = torch.from_numpy(job.data.labels)
    with torch.no_grad():
        expected = result.transition(X)[torch.arange(60), :, labels]
    torch.testing.assert_close(result.columns.exp(), expected)


def test_one_matrix_is_a_mixture_of_one() -> None:
    job = tiny_job()
    weights, matrices = as_mixture(job, class_transition())
    assert weights.shape == (60, 1)
    torch.testing.assert_close(matrices, T[None])
    weights, matrices = as_mixture(job, parts_transition())
    mixed = torch.einsum("bk,kij->bij", weights, matrices)
    with torch.no_grad():
        torch.testing.assert_close(mixed, parts_transition()(X))


def test_a_frozen_network_stays_in_evaluation_mode() -> None:
    """Its batch statistics must not follow training batches, let alone validation data."""
    transition = parts_transition()
    before = weights_of(transition)
    job = tiny_job()
    classifier = fit_reweighted(job, "reweight", SHORT, transition, None).classifier
    fit_revised(job, "revise", SHORT, transition, classifier, 1.0)
    assert weights_of(transition) == before
    assert not any(part.training for part in transition.modules())
