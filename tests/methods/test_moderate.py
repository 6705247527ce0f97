"""Half of the correction where f's own doubt explains the noisy labels, else all of it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bltm import BLTMClassifier
from bltm.core.records import Posterior, Split
from bltm.engine.job import Job
from bltm.engine.transition_model import ClassTransition, column_of_given_label
from bltm.engine.workbench import Workbench
from bltm.methods.bltm.moderate import LEAST_LABELS, moderate
from bltm.methods.bltm.presets import DEFAULT
from engine.helpers import FABRIC, noisy_data

C = 4
PAIRS = 0.6 * np.eye(C) + 0.4 * np.roll(np.eye(C), 1, axis=1)


def fit_of_noise(
    kind: str,
    held_out: int = 2000,
    trusted: bool = False,
    silent: bool = False,
    flips: np.ndarray = PAIRS,
) -> tuple[Job, Posterior, torch.Tensor]:
    """A classifier whose logits are its inputs, and labels that flip in pairs or by its doubt.

    ``silent`` gives weight to half of the examples only, whose labels follow the doubt. With
    ``kind`` "both" two labels of five follow the doubt, and half of T explains all about as well.
    """
    rng = np.random.default_rng(0)
    n, c = held_out + 10, len(flips)
    x = rng.normal(scale=3.0, size=(n, c)).astype(np.float32)
    f = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    doubt = np.exp(x / 2) / np.exp(x / 2).sum(axis=1, keepdims=True)
    by_doubt = np.full(n, kind == "doubt") | (silent & (np.arange(n) % 2 == 0))
    by_doubt |= (kind == "both") & (np.arange(n) % 5 > 2)
    noisy = np.where(by_doubt[:, None], doubt, f @ flips)
    labels = (noisy.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, c - 1)
    weights = by_doubt.astype(float) if silent else None
    data = noisy_data(x, labels, c, weights, np.full(n, trusted))
    split = Split(np.arange(10), np.arange(10, n))
    job = Job(data, split, Workbench(fabric=FABRIC, seed=0), "mlp")
    transition = ClassTransition(torch.from_numpy(flips)).requires_grad_(False).eval()
    columns = column_of_given_label(job, transition)
    return job, Posterior(f, False, "test"), columns


@pytest.mark.parametrize(("kind", "share"), [("pairs", 1.0), ("doubt", 0.5)])
def test_held_out_labels_decide(kind: str, share: float) -> None:
    assert moderate(*fit_of_noise(kind)) == share


def test_what_many_labels_tell_for_sure_may_be_next_to_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = fit_of_noise("both", held_out=50_000)
    assert moderate(*given) == 0.5
    monkeypatch.setattr("bltm.methods.bltm.moderate.LEAST_LOSS", 0.0)
    assert moderate(*given) == 1.0


def test_weights_count() -> None:
    assert moderate(*fit_of_noise("pairs", silent=True)) == 0.5


@pytest.mark.parametrize(
    "options", [{"held_out": LEAST_LABELS - 1}, {"trusted": True}], ids=["few", "trusted"]
)
def test_without_enough_noisy_labels_all_of_it_is_corrected(options: dict[str, int]) -> None:
    assert moderate(*fit_of_noise("doubt", **options)) == 1.0  # type: ignore[arg-type]


def test_between_two_classes_few_labels_leave_half_to_doubt() -> None:
    x = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    data = noisy_data(x, np.arange(60) % 2, 2)
    split = Split(np.arange(50), np.arange(50, 60))
    job = Job(data, split, Workbench(fabric=FABRIC, seed=0), "mlp")
    transition = ClassTransition(torch.tensor([[0.9, 0.1], [0.4, 0.6]]))
    columns = column_of_given_label(job, transition)
    belief = Posterior(np.full((60, 2), 0.5, dtype=np.float32), False, "test")
    assert moderate(job, belief, columns) == 0.5


@pytest.mark.parametrize(("flip", "share"), [(0.25, 1.0), (0.42, 0.5)])
def test_two_classes_with_nearly_the_same_labels_leave_half(flip: float, share: float) -> None:
    """Here the labels follow T in full; a T like the second is learned where f went wrong."""
    flips = np.array([[1.0 - flip, flip], [flip, 1.0 - flip]])
    assert moderate(*fit_of_noise("pairs", held_out=20_000, flips=flips)) == share


class InFull(BLTMClassifier):
    """BLTM that corrects by all of T*(x)."""

    presets = {"default": replace(DEFAULT, moderate=False)}


def blobs_that_overlap() -> tuple[np.ndarray, np.ndarray]:
    """Points of three classes, and labels that are wrong where the classes meet."""
    rng = np.random.default_rng(0)
    right = rng.integers(3, size=9000)
    x = (1.2 * np.eye(3, 4)[right] + rng.standard_normal((9000, 4))).astype(np.float32)
    doubt = np.exp(0.8 * x[:, :3])
    rows = doubt / doubt.sum(axis=1, keepdims=True)
    return x, (rows.cumsum(axis=1) < rng.random((9000, 1))).sum(axis=1).clip(0, 2)


def test_the_fit_tells_its_share_and_the_first_round_is_not_changed_by_it() -> None:
    x, noisy = blobs_that_overlap()
    options = {"random_state": 0, "epochs": 2, "rounds": 2}
    moderated = BLTMClassifier(**options).fit(x, noisy)
    whole = InFull(**options).fit(x, noisy)
    assert moderated.findings_["correction"] == 0.5
    # Half is a guess, so the first round's classifier answers beside the two starts of the second.
    assert len(moderated.classifier_.networks) == 3
    assert whole.findings_["correction"] == 1.0
    for stage, same in (("round-1/correct", True), ("round-2/correct", False)):
        losses = [
            [line["loss"] for line in model.history_ if line["stage"].startswith(stage)]
            for model in (moderated, whole)
        ]
        assert losses[0]
        assert (losses[0] == losses[1]) == same
