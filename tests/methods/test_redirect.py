"""Flips are redirected by the input as far as held-out noisy labels bear it out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import bltm
from bltm import BLTMClassifier
from bltm.core.matrix import log_entries
from bltm.core.records import Posterior, Split
from bltm.engine.job import Job
from bltm.engine.transition_model import TransitionModel
from bltm.engine.workbench import Workbench
from bltm.methods.bltm import redirect as module
from bltm.methods.bltm.presets import DEFAULT
from bltm.methods.bltm.redirect import LEAST_LABELS, redirect
from bltm.nets.heads import DenseHead
from bltm.nets.redirect import RedirectedHead
from bltm.nets.transition import TransitionNetwork
from engine.helpers import FABRIC, MemoryStore, noisy_data

CLASSES, RATE = 3, 0.4
FLIPS = RATE / (CLASSES - 1)
BASE = np.where(np.eye(CLASSES, dtype=bool), 1 - RATE, FLIPS)


def class_model() -> TransitionModel:
    """One matrix for all x: a wrong label is any of the others."""
    return TransitionModel(TransitionNetwork(nn.Identity(), DenseHead(4, CLASSES, BASE)))


def three_classes(
    depends: bool, held_out: int = 500, trusted: bool = False, store: MemoryStore | None = None
) -> tuple[Job, Posterior, np.ndarray, np.ndarray]:
    """Labels that flip to the next class or the one after by the first column, or by chance."""
    rng = np.random.default_rng(0)
    n = 2000 + held_out
    x = rng.standard_normal((n, 4)).astype(np.float32)
    right = rng.integers(CLASSES, size=n)
    up = x[:, 0] > 0 if depends else rng.random(n) < 0.5
    wrong = (right + np.where(up, 1, 2)) % CLASSES
    labels = np.where(rng.random(n) < RATE, wrong, right)
    data = noisy_data(x, labels, CLASSES, trusted=np.full(n, trusted))
    probs = np.full((n, CLASSES), 0.05, dtype=np.float32)
    probs[np.arange(n), right] = 0.9
    bench = Workbench(fabric=FABRIC, seed=0, **({} if store is None else {"store": store}))
    job = Job(data, Split(np.arange(2000), np.arange(2000, n)), bench, "mlp")
    return job, Posterior(probs, False, "test"), right, wrong


def test_flips_that_follow_the_input_are_found() -> None:
    job, belief, right, wrong = three_classes(True)
    model, columns, gained = redirect(job, "redirect", class_model(), belief)
    assert gained > 0.1
    assert isinstance(model.network.head, RedirectedHead)
    with torch.no_grad():
        T = model(job.data.examples.values).numpy()  # type: ignore[attr-defined]
    rows = T[np.arange(len(right)), right]
    np.testing.assert_allclose(rows[np.arange(len(right)), right], 1 - RATE, atol=1e-5)
    # Where the column is not near the border, nearly all flips go one way.
    clear = np.abs(job.data.examples.values[:, 0].numpy()) > 0.5  # type: ignore[attr-defined]
    assert rows[np.arange(len(right)), wrong][clear].mean() > 0.9 * RATE
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_flips_by_chance_are_left_alone() -> None:
    job, belief, right, _ = three_classes(False)
    model, columns, gained = redirect(job, "redirect", class_model(), belief)
    assert gained < 0.005
    with torch.no_grad():
        T = model(job.data.examples.values).numpy()  # type: ignore[attr-defined]
    assert np.abs(T[np.arange(len(right)), right] - BASE[right]).mean() < 0.02


def test_columns_of_training_labels_have_not_seen_them() -> None:
    """Flips that no input explains: weights that saw the labels fit them, cross-fitted ones not."""
    job, belief, right, _ = three_classes(True)
    model, columns, _ = redirect(job, "redirect", class_model(), belief)
    assert columns is not None
    index, labels = np.arange(len(right)), job.data.labels
    with torch.no_grad():
        T = model(job.data.examples.values).numpy()  # type: ignore[attr-defined]
    # The row of the own class is redirected by nine tenths, as sure as f is.
    seen = 0.9 * T[index, right, labels] + 0.1 * BASE[right, labels]
    unseen = columns.exp().numpy()[index, right]
    train, flipped = job.split.train, labels != right
    np.testing.assert_allclose(unseen[job.split.validation], seen[job.split.validation], rtol=1e-4)
    mine = train[flipped[train]]
    assert np.log(unseen[mine]).mean() < np.log(seen[mine]).mean()
    # Nor may labels that were checked have come from another class.
    trusted = replace(job.data, trusted=np.arange(len(right)) % 7 == 0)
    _, columns, _ = redirect(replace(job, data=trusted), "redirect", class_model(), belief)
    assert columns is not None
    identity = log_entries(torch.eye(CLASSES))[torch.from_numpy(labels)]
    assert torch.equal(columns[::7], identity[::7])


def test_rows_of_classes_that_x_is_not_of_stay_as_they_were() -> None:
    job, belief, right, _ = three_classes(True)
    _, columns, _ = redirect(job, "redirect", class_model(), belief)
    assert columns is not None
    index, labels = np.arange(len(right)), job.data.labels
    for step in (1, 2):
        other = (right + step) % CLASSES
        moved = columns.exp().numpy()[index, other] - BASE[other, labels]
        # As far as f takes x for one of theirs, one twentieth, of a flip that is sure.
        assert np.abs(moved).max() <= 0.05 * FLIPS + 1e-6


@pytest.mark.parametrize(
    "options", [{"held_out": LEAST_LABELS - 1}, {"trusted": True}], ids=["few", "trusted"]
)
def test_without_enough_noisy_labels_nothing_is_redirected(options: dict[str, int]) -> None:
    job, belief, *_ = three_classes(True, **options)  # type: ignore[arg-type]
    model = class_model()
    assert redirect(job, "redirect", model, belief) == (model, None, 0.0)


def test_neither_are_more_weights_than_can_be_learned_at_leisure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job, belief, *_ = three_classes(True)
    model = class_model()
    monkeypatch.setattr(module, "MOST_WEIGHTS", CLASSES**2 * 4 - 1)
    assert redirect(job, "redirect", model, belief) == (model, None, 0.0)


def test_labels_that_were_checked_say_nothing() -> None:
    job, belief, *_ = three_classes(True)
    checked = np.arange(len(job.data)) % 4 == 0
    misled = np.where(checked, (job.data.labels + 1) % CLASSES, job.data.labels)
    found = []
    for labels in (job.data.labels, misled):
        data = replace(job.data, labels=labels, trusted=checked)
        found.append(redirect(replace(job, data=data), "redirect", class_model(), belief).model)
    first, second = (model.network.head.weight for model in found)
    torch.testing.assert_close(first, second)  # type: ignore[arg-type]


def test_weights_count() -> None:
    """Half of the examples flip by the input, the others against it; they weigh next to nothing."""
    job, belief, right, wrong = three_classes(True)
    light = np.arange(len(right)) % 2 == 0
    flipped = job.data.labels != right
    against = np.where(light & flipped, 2 * right - wrong, job.data.labels) % CLASSES
    data = replace(job.data, labels=against, weights=np.where(light, 1e-6, 1.0))
    model = redirect(replace(job, data=data), "redirect", class_model(), belief).model
    with torch.no_grad():
        T = model(job.data.examples.values).numpy()  # type: ignore[attr-defined]
    index = np.arange(len(right))
    assert T[index, right, wrong].mean() > 0.75 * RATE


def test_a_run_that_starts_again_takes_what_was_learned_from_the_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()
    job, belief, *_ = three_classes(True, store=store)
    first, columns, gained = redirect(job, "redirect", class_model(), belief)
    monkeypatch.setattr(module, "learn_destinations", None)
    second, same_columns, again = redirect(job, "redirect", class_model(), belief)
    assert gained == again
    assert columns is not None
    assert same_columns is not None
    assert torch.equal(columns, same_columns)
    assert torch.equal(first.network.head.weight, second.network.head.weight)  # type: ignore[arg-type]


def test_the_fit_tells_what_was_gained_and_a_saved_model_is_redirected(tmp_path) -> None:  # type: ignore[no-untyped-def]
    job, _, right, _ = three_classes(True, held_out=500)
    x = job.data.examples.values.numpy().copy()  # type: ignore[attr-defined]
    x[:, 1:] += 3.0 * np.eye(3)[right]
    model = BLTMClassifier(random_state=0, epochs=4).fit(x, job.data.labels)
    gains = model.findings_["redirected"]
    assert len(gains) == DEFAULT.rounds - 1
    assert max(gains) > 0.03
    model.save(tmp_path / "model")
    loaded = bltm.load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.predict_transition(x[:20]), model.predict_transition(x[:20])
    )


def test_two_classes_have_one_place_to_go() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2500, 4)).astype(np.float32)
    data = noisy_data(x, rng.integers(2, size=2500), 2)
    job = Job(data, Split(np.arange(2000), np.arange(2000, 2500)), Workbench(FABRIC, 0), "mlp")
    model = TransitionModel(TransitionNetwork(nn.Identity(), DenseHead(4, 2, np.eye(2))))
    belief = Posterior(np.full((2500, 2), 0.5, dtype=np.float32), False, "test")
    assert redirect(job, "redirect", model, belief) == (model, None, 0.0)


def test_of_very_many_examples_some_are_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_EXAMPLES", 800)
    job, belief, right, wrong = three_classes(True)
    model, columns, gained = redirect(job, "redirect", class_model(), belief)
    assert gained > 0.1
    assert columns is not None
    assert columns.shape == (len(job.data), CLASSES)
    flipped = job.data.labels == wrong
    assert columns.exp().numpy()[np.arange(len(right)), right][flipped].mean() > 0.75 * RATE
