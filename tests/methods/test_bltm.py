"""BLTM as a whole: which classifiers answer in the end."""

from typing import Any

import numpy as np
import pytest
import torch

from bltm.engine.job import Job
from bltm.engine.protocol import BUDGET
from bltm.engine.transition_model import Corrected
from bltm.methods.bltm import BLTMClassifier, estimator
from bltm.methods.bltm.correct import correct
from bltm.methods.bltm.presets import Recipe
from bltm.nets.ensemble import Ensemble
from engine.helpers import weights_of

from .helpers import sample

DATA = sample(120)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def fitted(**parameters: Any) -> BLTMClassifier:
    settings: dict[str, Any] = {"epochs": 2, "folds": 2, "random_state": 0}
    return BLTMClassifier(**(settings | parameters)).fit(DATA.x, DATA.y_noisy)


def test_the_classifiers_of_all_rounds_and_starts_answer_together() -> None:
    longer, shorter = fitted(revision=False), fitted(revision=False, rounds=2)
    assert isinstance(longer.classifier_, Ensemble)
    assert isinstance(shorter.classifier_, Ensemble)
    first, second, third, fourth = longer.classifier_.networks
    # The rounds are those of a shorter fit, and each starts anew; the last has two starts.
    assert weights_of(first) == weights_of(shorter.classifier_.networks[0])
    assert weights_of(second) == weights_of(shorter.classifier_.networks[1])
    assert len(shorter.classifier_.networks) == 3
    assert weights_of(third) != weights_of(second)
    assert weights_of(fourth) != weights_of(third)


def test_of_two_classes_a_first_round_that_was_corrected_more_does_not_answer() -> None:
    # Too few labels to speak against half of the correction.
    half = BLTMClassifier(epochs=2, folds=2, random_state=0).fit(DATA.x, DATA.y_noisy % 2)
    assert half.findings_["correction"] == 0.5
    assert len(half.classifier_.networks) == 3
    assert fitted().findings_["correction"] == 1.0
    alone = BLTMClassifier(epochs=2, folds=2, rounds=1, random_state=0)
    assert len(alone.fit(DATA.x, DATA.y_noisy % 2).classifier_.networks) == 2


def test_the_starts_of_the_last_round_share_one_transition() -> None:
    model = fitted(rho_max=0.0)
    stages = dict.fromkeys(record["stage"] for record in model.history_)
    trained = [stage for stage in stages if stage.startswith(("round-3", "revise"))]
    last = ["round-3/transition", "round-3/correct", "round-3/correct-2", "revise"]
    assert trained == [stage for stage in last if stage in stages]
    assert [stage.stage for stage in model.plan(100)[-4:]] == last


def test_all_classifiers_are_held_to_the_same_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []

    def spying(job: Job, recipe: Recipe, *rest: Any) -> Corrected:
        found.append(recipe.least_shares)
        return correct(job, recipe, *rest)

    monkeypatch.setattr(estimator, "correct", spying)
    fitted(audit_folds=2)
    # Three rounds, a second start of the last, and as many judges of each fold.
    assert len(found) == 4 + 2 * 2
    assert len(set(found)) == 1
    assert len(found[0]) == 3
    assert 0.0 < sum(found[0]) <= 0.5


def test_what_was_revised_takes_the_place_of_the_last() -> None:
    plain, revised = fitted(revision=False).classifier_, fitted().classifier_
    assert [weights_of(net) for net in plain.networks[:-1]] == [
        weights_of(net) for net in revised.networks[:-1]
    ]
    assert len(revised.networks) == 4


def test_a_published_preset_has_one_network() -> None:
    assert not isinstance(fitted(preset="paper").classifier_, Ensemble)


def test_the_default_keeps_to_the_budget() -> None:
    assert sum(stage.work for stage in BLTMClassifier().plan(9000)) <= BUDGET * 9000


def test_probabilities_are_those_of_the_mean_logits() -> None:
    model = fitted()
    examples = model.encoder_.encode(model._source(DATA.x, for_prediction=True))
    with torch.no_grad():
        logits = torch.stack([net(examples.values) for net in model.classifier_.networks]).mean(0)
    expected = logits.double().softmax(1).numpy()
    np.testing.assert_allclose(model.predict_proba(DATA.x), expected, atol=1e-6)


def test_labels_are_judged_by_as_many_networks_as_the_last_round_trains() -> None:
    model = fitted(audit_folds=2)
    judges = [record["stage"] for record in model.history_ if record["stage"].startswith("audit")]
    names = [f"audit/fold-{fold}/{number}" for fold in (1, 2) for number in (1, 2)]
    assert list(dict.fromkeys(judges)) == names
    planned = model.full_plan(108)[-2:]
    assert [(stage.examples, stage.passes) for stage in planned] == [(54, 2), (54, 2)]
