"""Co-teaching+ exchanges small losses among disagreements."""

import math

import pytest
import torch

from bltm.core.errors import InputError
from bltm.engine.batches import Moment
from bltm.engine.forgetting import Forgetting
from bltm.engine.pairs import exchange_step
from bltm.engine.protocol import CT200
from bltm.losses import cross_entropy
from bltm.methods.coteaching_plus import CoTeachingPlusClassifier, exchange_disagreement_step
from engine.pair_helpers import batch_of, fixed_pair, random_logits

from .helpers import sample

LABELS = [0, 1, 2] * 4
LATE = Moment(9, 10)
FORGETTING = Forgetting(0.4, 0.5)
STEP = exchange_disagreement_step(FORGETTING, warm_up=0.2)


def differing(first: torch.Tensor, second: torch.Tensor) -> list[int]:
    return (first.argmax(1) != second.argmax(1)).nonzero().squeeze(1).tolist()


def test_without_disagreement_no_step_is_made() -> None:
    logits = random_logits(0)
    assert STEP(fixed_pair(logits, 2 * logits), batch_of(LABELS, LATE)) is None


def test_disagreement_everywhere_is_co_teaching() -> None:
    first = random_logits(0)
    second = first.roll(1, dims=1)
    assert len(differing(first, second)) == 12
    batch = batch_of(LABELS, LATE)
    plus, plain = fixed_pair(first, second), fixed_pair(first, second)
    losses = (STEP(plus, batch), exchange_step(FORGETTING.keep)(plain, batch))
    assert losses[0] is not None
    assert losses[1] is not None
    torch.testing.assert_close(*losses)
    for loss in losses:
        loss.backward()
    for name in plus:
        torch.testing.assert_close(plus[name].logits.grad, plain[name].logits.grad)


def test_each_learns_from_the_others_small_losses_among_disagreements() -> None:
    modules = fixed_pair(random_logits(0), random_logits(1))
    batch = batch_of(LABELS, LATE)
    rows = differing(*(m.logits for m in modules.values()))
    losses = [cross_entropy(m.logits, batch.y).tolist() for m in modules.values()]
    count = math.floor(0.6 * len(rows))
    chosen = [sorted(sorted(rows, key=one.__getitem__)[:count]) for one in losses]
    loss = STEP(modules, batch)
    assert loss is not None
    expected = sum(sum(losses[k][i] for i in chosen[1 - k]) / count for k in (0, 1))
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    loss.backward()
    assert modules["classifier"].touched() == chosen[1]
    assert modules["peer"].touched() == chosen[0]


def test_example_0_and_the_last_one_can_be_chosen() -> None:
    """A filter for indices that are not zero would lose one of them."""
    first = torch.tensor([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0]])
    second = torch.tensor([[0.0, 2.0], [0.0, 2.0], [0.0, 2.0]])
    modules = fixed_pair(first, second)
    loss = exchange_disagreement_step(Forgetting(0.0, 0.5), 0.0)(modules, batch_of([0, 1, 0], LATE))
    assert loss is not None
    loss.backward()
    assert modules["classifier"].touched() == [0, 2]


def test_a_single_disagreement_is_learned_even_if_the_share_of_it_is_none() -> None:
    first = torch.tensor([[2.0, 0.0], [0.0, 2.0]])
    modules = fixed_pair(first, torch.tensor([[0.0, 2.0], [0.0, 2.0]]))
    loss = exchange_disagreement_step(Forgetting(0.9, 0.0), 0.0)(modules, batch_of([0, 1], LATE))
    assert loss is not None
    loss.backward()
    assert modules["peer"].touched() == [0]


def test_trusted_labels_among_disagreements_are_kept() -> None:
    modules = fixed_pair(random_logits(0), random_logits(1))
    rows = differing(*(m.logits for m in modules.values()))
    trusted = torch.ones(12, dtype=torch.bool)
    step = exchange_disagreement_step(Forgetting(0.9, 0.0), 0.0)
    loss = step(modules, batch_of(LABELS, LATE, trusted=trusted))
    assert loss is not None
    loss.backward()
    assert modules["classifier"].touched() == rows


def test_whole_batches_are_exchanged_in_the_warm_up() -> None:
    forgetting = Forgetting(0.0, 0.0)
    step = exchange_disagreement_step(forgetting, 0.2)
    touched = []
    for epoch in (0, 1, 2):
        modules = fixed_pair(random_logits(0), random_logits(1))
        loss = step(modules, batch_of(LABELS, Moment(epoch, 10)))
        assert loss is not None
        loss.backward()
        touched.append(len(modules["classifier"].touched()))
    assert touched == [12, 12, len(differing(random_logits(0), random_logits(1)))]
    assert 0 < touched[2] < 12


def test_the_loss_is_that_of_logits_unless_the_authors_is_asked_for() -> None:
    first, second = 20 * random_logits(0), 20 * random_logits(1)
    batch = batch_of(LABELS, LATE)
    forgetting = Forgetting(0.0, 0.0)

    def loss_of(double_softmax: bool) -> float:
        step = exchange_disagreement_step(forgetting, 0.0, double_softmax)
        loss = step(fixed_pair(first, second), batch)
        assert loss is not None
        return loss.item()

    rows = differing(first, second)
    right = cross_entropy(first, batch.y) + cross_entropy(second, batch.y)
    assert loss_of(False) == pytest.approx(float(right[rows].mean()), rel=1e-5)
    doubled = cross_entropy(first.softmax(1), batch.y) + cross_entropy(second.softmax(1), batch.y)
    assert loss_of(True) == pytest.approx(float(doubled[rows].mean()), rel=1e-5)
    # Probabilities lie between 0 and 1, and so little can be lost: 0.55 to 1.55 for 3 classes.
    assert loss_of(True) / 2 < math.log(math.e + 2) < loss_of(False) / 2
    assert not CoTeachingPlusClassifier().double_softmax


def test_the_presets() -> None:
    planned = CoTeachingPlusClassifier().plan(10_000)
    assert sum(stage.work for stage in planned) / 10_000 == 48
    (stage,) = CoTeachingPlusClassifier(preset="paper", noise_rate=0.2).plan(10_000)
    assert stage.schedule == CT200


@pytest.mark.parametrize(
    ("parameters", "argument"),
    [({"warm_up": 1.1}, "warm_up"), ({"ramp": -1.0}, "ramp"), ({"noise_rate": 1.0}, "noise_rate")],
)
def test_bad_parameters_are_refused(parameters: dict[str, float], argument: str) -> None:
    with pytest.raises(InputError, match=f"^{argument}: "):
        CoTeachingPlusClassifier(**parameters).plan(100)  # type: ignore[arg-type]


@pytest.mark.parametrize("double_softmax", [False, True])
def test_it_learns(double_softmax: bool) -> None:
    data = sample(300)
    model = CoTeachingPlusClassifier(random_state=0, epochs=20, double_softmax=double_softmax)
    model.fit(data.x, data.y_noisy)
    assert (model.predict(data.x) == data.y_bayes).mean() > 0.75
