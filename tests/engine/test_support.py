"""The nearest collected examples: right label, not the example itself, near by angle."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from bltm import CrossEntropyClassifier
from bltm.core.records import Collected
from bltm.engine import support
from bltm.engine.job import Job
from bltm.engine.support import NEAREST, nearest_support
from bltm.nets.ensemble import Ensemble

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.arange(60) % 3


@pytest.fixture(scope="module")
def fitted() -> tuple[Job, nn.Module]:
    jobs: list[Job] = []
    model = CrossEntropyClassifier(random_state=0, epochs=1)
    model.fit_source(model._source(X, Y), before=jobs.append)
    return jobs[0], model.classifier_


def collected(indices: list[int]) -> Collected:
    index = np.array(indices, dtype=np.int64)
    return Collected(index, Y[index], 0.5, np.bincount(Y[index], minlength=3), "test")


def test_against_a_plain_search(fitted: tuple[Job, nn.Module]) -> None:
    job, classifier = fitted
    chosen = list(range(0, 60, 2))
    wanted = (Y + 1) % 3
    found = nearest_support(job, classifier, collected(chosen), wanted)
    assert found is not None
    features = job.outputs(classifier, lambda x, _: classifier.features(x)).numpy()
    length = np.linalg.norm(features, axis=1)
    for n in range(60):
        candidates = [m for m in chosen if Y[m] == wanted[n] and m != n]
        likeness = {m: features[n] @ features[m] / (length[n] * length[m]) for m in candidates}
        best = sorted(candidates, key=lambda m: -likeness[m])[:NEAREST]
        np.testing.assert_allclose(
            [likeness[m] for m in found[n]], [likeness[m] for m in best], atol=1e-5
        )


def test_an_example_does_not_support_itself_and_few_are_filled_up(
    fitted: tuple[Job, nn.Module],
) -> None:
    job, classifier = fitted
    found = nearest_support(job, classifier, collected([0, 3]), Y)
    assert found is not None
    assert found[0].tolist() == [3, -1, -1]
    assert found[1].tolist() == [-1, -1, -1]
    assert set(found[6].tolist()) == {0, 3, -1}
    none = nearest_support(job, classifier, collected([]), Y)
    assert none is not None
    assert (none == -1).all()


def test_of_many_some_are_looked_at(
    fitted: tuple[Job, nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    job, classifier = fitted
    monkeypatch.setattr(support, "MOST", 5)
    found = nearest_support(job, classifier, collected(list(range(60))), Y)
    assert found is not None
    assert len(np.unique(found[found >= 0])) <= 5


def test_a_network_without_features_gives_none(fitted: tuple[Job, nn.Module]) -> None:
    job, _ = fitted
    plain = replace(job, net=lambda c: nn.Linear(4, c)).new_classifier("plain")
    assert nearest_support(job, plain, collected([0, 1]), Y) is None
    assert isinstance(plain(torch.zeros(1, 4)), torch.Tensor)


def test_of_an_ensemble_the_last_network_tells(fitted: tuple[Job, nn.Module]) -> None:
    job, classifier = fitted
    both = Ensemble([job.new_classifier("other"), classifier])
    bank = collected(list(range(60)))
    expected = nearest_support(job, classifier, bank, Y)
    found = nearest_support(job, both, bank, Y)
    assert found is not None
    np.testing.assert_array_equal(found, expected)
