"""MentorNet keeps its own small losses."""

import numpy as np
import pytest
import torch

from bltm.core.errors import InputError
from bltm.engine.batches import Moment
from bltm.engine.forgetting import Forgetting
from bltm.engine.pairs import exchange_step
from bltm.engine.protocol import CT200
from bltm.engine.supervised import fit_cross_entropy
from bltm.methods.mentornet import MentorNetClassifier, self_paced_step
from engine.helpers import tiny_job, weights_of
from engine.pair_helpers import Fixed, batch_of, fixed_pair, random_logits

from .helpers import sample

LABELS = [0, 1, 2] * 4
LATE = Moment(9, 10)


def test_keeping_everything_is_cross_entropy() -> None:
    job = tiny_job()
    model = MentorNetClassifier(noise_rate=0.0, epochs=3, batch_size=16)
    result = model._fit(job)
    other = fit_cross_entropy(tiny_job(), "mentornet", model.plan(60)[-1].schedule)
    for one, two in zip(result.classifier.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, two)


def test_it_is_co_teaching_with_itself() -> None:
    forgetting = Forgetting(0.4, 0.5)
    logits = random_logits(0)
    batch = batch_of(LABELS, LATE, weight=torch.arange(1.0, 13.0))
    alone = {"classifier": Fixed(logits)}
    both = fixed_pair(logits, logits)
    one = self_paced_step(forgetting)(alone, batch)
    two = exchange_step(forgetting.keep)(both, batch)
    assert one is not None
    assert two is not None
    torch.testing.assert_close(2 * one, two)
    one.backward()
    two.backward()
    torch.testing.assert_close(alone["classifier"].logits.grad, both["peer"].logits.grad)


def test_the_largest_losses_are_left_out() -> None:
    modules = {"classifier": Fixed(random_logits(0))}
    losses = torch.nn.functional.cross_entropy(
        modules["classifier"].logits, torch.tensor(LABELS), reduction="none"
    ).tolist()
    loss = self_paced_step(Forgetting(0.25, 0.5))(modules, batch_of(LABELS, LATE))
    assert loss is not None
    loss.backward()
    left_out = sorted(range(12), key=losses.__getitem__)[9:]
    assert modules["classifier"].touched() == sorted(set(range(12)) - set(left_out))


def test_trusted_labels_are_kept() -> None:
    modules = {"classifier": Fixed(random_logits(0))}
    trusted = torch.arange(12) % 2 == 0
    loss = self_paced_step(Forgetting(0.99, 0.0))(modules, batch_of(LABELS, LATE, trusted=trusted))
    assert loss is not None
    loss.backward()
    touched = modules["classifier"].touched()
    assert set(touched) > {0, 2, 4, 6, 8, 10}
    assert len(touched) == 7


def test_the_presets() -> None:
    *probes, stage = MentorNetClassifier().plan(10_000)
    assert stage.work / 10_000 == 21
    assert len(probes) == 2
    (stage,) = MentorNetClassifier(preset="paper", noise_rate=0.2).plan(10_000)
    assert stage.schedule == CT200


@pytest.mark.parametrize(
    ("parameters", "argument"),
    [({"noise_rate": 1.0}, "noise_rate"), ({"ramp": 2.0}, "ramp"), ({"exponent": 0}, "exponent")],
)
def test_bad_parameters_are_refused(parameters: dict[str, float], argument: str) -> None:
    with pytest.raises(InputError, match=f"^{argument}: "):
        MentorNetClassifier(**parameters).plan(100)  # type: ignore[arg-type]


def test_it_learns_and_says_what_rate_it_assumed() -> None:
    data = sample(300)
    model = MentorNetClassifier(random_state=0, epochs=20).fit(data.x, data.y_noisy)
    assert (model.predict(data.x) == data.y_bayes).mean() > 0.8
    assert model.findings_["assumed_noise_rate_source"] == "estimated"
    assert np.isfinite(model.suspicion_.values).all()
    assert weights_of(model.classifier_)
