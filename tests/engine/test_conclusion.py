"""What a method with a transition says of the labels at its end."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bltm.audit import audit
from bltm.core.evidence import Evidence
from bltm.core.posterior import right_label_posterior
from bltm.core.records import FitResult
from bltm.engine.conclusion import conclude_corrected
from bltm.engine.job import Job
from bltm.engine.transition_model import Corrected, Transition, column_of_given_label

from .helpers import tiny_job

N = 120


class Tilted(Transition):
    """Flips that depend on the first feature."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flip = 0.1 + 0.4 * torch.sigmoid(2 * x[:, 0])
        neighbour = torch.eye(3).roll(1, dims=1)
        return torch.eye(3) * (1 - flip)[:, None, None] + neighbour * flip[:, None, None]


def some_job(folds: int = 0) -> Job:
    job = tiny_job(N, trusted=np.arange(N) % 7 == 0)
    weights = np.random.default_rng(0).random(N) + 0.5
    return replace(job, data=replace(job.data, weights=weights), audit_folds=folds)


def concluded(job: Job) -> FitResult:
    classifier, transition = job.new_classifier("f"), Tilted()
    corrected = Corrected(classifier, transition, column_of_given_label(job, transition))
    return conclude_corrected(job, corrected, refit=lambda rest, name: rest.new_classifier(name))


@pytest.mark.parametrize("folds", [0, 2])
def test_as_many_labels_are_wrong_as_f_and_t_expect_before_they_see_them(folds: int) -> None:
    job = some_job(folds)
    result = concluded(job)
    f = result.probs if result.out_of_sample is None else result.out_of_sample
    assert result.columns is not None
    assert (result.out_of_sample is not None) == bool(folds)
    right, _ = right_label_posterior(f, np.exp(result.columns))
    as_it_is = 1 - right[np.arange(N), job.data.labels]
    as_it_is[job.data.trusted] = 0.0
    used = job.split.all
    T = job.outputs(Tilted()).numpy()
    expected = np.array([sum(f[n, i] * (1 - T[n, i, i]) for i in range(3)) for n in range(N)])
    np.testing.assert_allclose(result.expected, expected, atol=1e-6)
    expected[job.data.trusted] = 0.0
    rate = np.average(expected[used], weights=job.data.weights[used])
    assert result.findings["noise_rate"] == pytest.approx(rate, abs=1e-6)
    assert rate != pytest.approx(
        np.average(as_it_is[used], weights=job.data.weights[used]), abs=1e-3
    )
    assert np.abs(result.suspicion.values - as_it_is).max() > 0.02
    assert (result.suspicion.values[job.data.trusted] == 0).all()
    assert "f·T^⅓" in result.suspicion.source


@pytest.mark.parametrize("folds", [0, 2])
def test_an_audit_of_the_fit_says_the_same(folds: int) -> None:
    job = some_job(folds)
    result = concluded(job)
    found = audit(Evidence.of(job.data, job.split, result, "id"))
    np.testing.assert_allclose(found.p_wrong, result.suspicion.values, atol=1e-6)
    rate = found.summary.noise_rate.value
    assert rate == pytest.approx(result.findings["noise_rate"], abs=1e-6)
    # The rows are those of the labels that the audit suggests.
    T = job.outputs(Tilted()).numpy()
    np.testing.assert_allclose(result.rows, T[np.arange(N), found.suggested], atol=1e-6)
    np.testing.assert_allclose(found.t_row, result.rows, atol=1e-6)
