"""T(x) from parts: a function of x alone, the same in training, in validation and afterwards."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from bltm.core.errors import CoverageWarning
from bltm.core.matrix import normalise_rows
from bltm.core.records import Posterior
from bltm.data.splits import split_noisy
from bltm.engine.job import Job
from bltm.engine.parts_transition import PartsTransition, find_parts_transition, frozen_trunk
from bltm.engine.posteriors import in_sample_posterior
from bltm.engine.schedule import Schedule
from bltm.engine.supervised import fit_cross_entropy
from bltm.engine.transition_model import column_of_given_label
from bltm.engine.workbench import Workbench
from bltm.transition import anchor_transition
from bltm.transition.revision import Revision

from .helpers import FABRIC, MemoryStore, blobs, noisy_data, tiny_job

SHORT = Schedule(2, 0.01, "adam", batch_size=16)
X = torch.from_numpy(blobs(60)[0])

pytestmark = pytest.mark.filterwarnings("ignore::bltm.core.errors.CoverageWarning")


def some(n_parts: int = 4, revision: Revision | None = None) -> PartsTransition:
    generator = torch.Generator().manual_seed(0)
    matrices = torch.randn(n_parts, 3, 3, generator=generator).softmax(-1)
    parts = torch.rand(n_parts, 4, generator=generator)
    return PartsTransition(nn.Identity(), parts, matrices, revision)


def found(job: Job, n_parts: int = 3) -> PartsTransition:
    warm = fit_cross_entropy(job, "warm_up", SHORT)
    return find_parts_transition(job, "parts", warm, in_sample_posterior(job, warm), n_parts)


def test_rows_columns_and_noisy_posteriors_agree_with_the_matrices() -> None:
    transition = some()
    labels = torch.arange(60) % 3
    every = torch.arange(60)
    T = transition(X)
    torch.testing.assert_close(T.sum(dim=2), torch.ones(60, 3))
    torch.testing.assert_close(transition.rows(X, labels), T[every, labels])
    torch.testing.assert_close(transition.log_columns(X, labels).exp(), T[every, :, labels])
    probs = torch.rand(60, 3).softmax(1)
    noisy = transition.log_noisy(X, probs.log()).exp()
    torch.testing.assert_close(noisy, (probs[:, None] @ T)[:, 0])


def test_an_offset_that_clips_nothing_revises_the_mixture() -> None:
    revision = Revision(3)
    with torch.no_grad():
        revision.delta.copy_(torch.tensor([[0.3, 0.0, 0.1], [0.0, 0.2, 0.0], [0.05, 0.0, 0.4]]))
        expected = normalise_rows(some()(X) + revision.delta)
        torch.testing.assert_close(some(revision=revision)(X), expected)


def test_negative_features_count_as_zero() -> None:
    torch.testing.assert_close(some()(X), some()(X.clamp_min(0.0)))


def test_t_of_an_example_does_not_depend_on_its_place() -> None:
    """Public code looks coefficients up by the position in a loader that must not be shuffled."""
    job = tiny_job()
    transition = found(job)
    T = transition(X)
    order = torch.randperm(60, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(transition(X[order]), T[order])
    torch.testing.assert_close(transition(X[7:8]), T[7:8])
    labels = torch.from_numpy(job.data.labels)
    columns = column_of_given_label(job, transition)
    torch.testing.assert_close(columns.exp(), T[torch.arange(60), :, labels])
    np.testing.assert_array_less(0.01, np.ptp(T.numpy(), axis=0).max())


def test_examples_in_another_order_have_the_same_t() -> None:
    x, labels = blobs(60)
    order = np.random.default_rng(0).permutation(60)
    results = []
    for places in (np.arange(60), order):
        data = noisy_data(x[places], labels[places], 3)
        job = Job(data, split_noisy(data, 0.2, 0), Workbench(fabric=FABRIC, seed=0), "mlp")
        results.append(found(job)(X))
    torch.testing.assert_close(results[0], results[1], atol=1e-4, rtol=0)


@pytest.mark.parametrize("net", ["mlp", "compact"])
def test_features_are_those_of_the_trained_network(net: str) -> None:
    x = np.random.default_rng(0).random((20, 12, 12, 1)).astype(np.float32)
    data = noisy_data(x if net == "compact" else x.reshape(20, -1), np.arange(20) % 2, 2)
    job = Job(data, split_noisy(data, 0.0, 0), Workbench(fabric=FABRIC, seed=0), net)
    network = fit_cross_entropy(job, "warm_up", SHORT).eval()
    trunk = frozen_trunk(job, "parts", network)
    (batch,) = data.examples.batches([torch.arange(20)], torch.device("cpu"))
    with torch.no_grad():
        expected = network.features(batch)  # type: ignore[operator]
        torch.testing.assert_close(trunk(batch), expected)
    assert not any(part.training for part in trunk.modules())
    assert not any(p.requires_grad for p in trunk.parameters())


def test_a_network_of_the_users_own_needs_no_features() -> None:
    def own(n_outputs: int) -> nn.Module:
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, n_outputs))

    job = tiny_job(net=own)
    warm = fit_cross_entropy(job, "warm_up", SHORT)
    transition = find_parts_transition(job, "parts", warm, in_sample_posterior(job, warm), 3)
    assert transition.parts.shape == (3, 128)
    T = transition(X)
    torch.testing.assert_close(T.sum(dim=2), torch.ones(60, 3))
    kept = warm.state_dict()
    for name, value in transition.trunk.state_dict().items():
        assert torch.equal(value, kept[name]) == (not name.startswith("3."))


def test_one_part_is_the_anchor_matrix_for_all_x() -> None:
    job = tiny_job()
    warm = fit_cross_entropy(job, "warm_up", SHORT)
    posterior = in_sample_posterior(job, warm)
    transition = find_parts_transition(job, "parts", warm, posterior, 1)
    expected = anchor_transition(posterior.probs[job.split.train])
    T = transition(X).double().numpy()
    np.testing.assert_allclose(T, np.broadcast_to(expected, T.shape), atol=1e-6)


def test_validation_and_trusted_examples_do_not_shape_the_matrices() -> None:
    trusted = np.arange(60) % 4 == 0
    job = tiny_job(trusted=trusted)
    warm = fit_cross_entropy(job, "warm_up", SHORT)
    posterior = in_sample_posterior(job, warm)
    first = find_parts_transition(job, "parts", warm, posterior, 3)
    probs = posterior.probs.copy()
    probs[trusted] = probs[job.split.validation[0]] = np.eye(3)[2]
    second = find_parts_transition(job, "parts", warm, Posterior(probs, False, ""), 3)
    assert torch.equal(first.matrices, second.matrices)


def test_an_absent_class_has_the_identitys_row_and_all_trusted_labels_are_right() -> None:
    job = tiny_job()
    job = replace(job, data=replace(job.data, classes=np.arange(4)))
    T = found(job)(X)
    torch.testing.assert_close(T[:, 3], torch.eye(4)[3].expand(60, 4))
    T = found(tiny_job(trusted=np.ones(60, dtype=bool)))(X)
    assert (T.diagonal(dim1=1, dim2=2) > 0.95).all()


def test_anchors_that_repeat_are_warned_of() -> None:
    """Sixty examples have one or two anchors at the percentiles from 97 to 99."""
    with pytest.warns(CoverageWarning, match="The 6 anchor points of class 0, 1, 2 repeat"):
        found(tiny_job(), n_parts=6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found(tiny_job(), n_parts=1)


def test_parts_that_are_found_are_not_computed_again() -> None:
    store = MemoryStore()
    first = found(tiny_job(store=store))
    saved = list(store.saved)
    again = found(tiny_job(store=store))
    assert store.saved == saved
    assert torch.equal(first.matrices, again.matrices)
    assert torch.equal(first(X), again(X))
    assert not torch.equal(first.parts, found(tiny_job(seed=1)).parts)
