"""BLTM+: BLTM-V whose classifier alone sees changed images, and goes on from round to round."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bltm
from bltm.engine.protocol import BUDGET
from bltm.engine.stage import Stage
from bltm.engine.workbench import Workbench
from bltm.methods.bltm import BLTMClassifier, BLTMPlusClassifier
from bltm.methods.bltm.presets import PLUS_PRESETS, PRESETS
from bltm.nets.ensemble import Ensemble
from engine.helpers import weights_of

from .helpers import sample

DATA = sample(120)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Stage, dict[str, Any]]]:
    """Record each stage with the weights that its modules start from and end with."""
    seen: dict[str, tuple[Stage, dict[str, Any]]] = {}
    fit = Workbench.fit

    def watched(bench: Workbench, stage: Stage) -> Any:
        start = {name: weights_of(module) for name, module in stage.modules.items()}
        outcome = fit(bench, stage)
        end = {name: weights_of(module) for name, module in stage.modules.items()}
        seen[stage.name] = (stage, {"start": start, "end": end})
        return outcome

    monkeypatch.setattr(Workbench, "fit", watched)
    return seen


def images() -> np.ndarray:
    """Return images of which the label's row of pixels is bright."""
    found = np.random.default_rng(0).random((120, 12, 12), dtype=np.float32)
    found[np.arange(120), 2 * DATA.y_noisy] += 3.0
    return found


def quick(**parameters: Any) -> BLTMPlusClassifier:
    settings = {
        "net": "compact",
        "epochs": 2,
        "lr": 0.01,
        "folds": 2,
        "rho_max": 0.0,
        "random_state": 0,
    }
    return BLTMPlusClassifier(**(settings | parameters))


def test_the_classifier_alone_sees_changed_images(stages: dict[str, Any]) -> None:
    model = quick(epochs=8).fit(images(), DATA.y_noisy)
    assert model.findings_["augment"] == "crop-flip"
    augmented = {name for name, (stage, _) in stages.items() if stage.augment is not None}
    assert augmented == {*(f"round-{number}/correct" for number in (1, 2, 3)), "revise"}
    assert {"warm_up/fold-1", "round-1/transition"} <= set(stages) - augmented


def test_each_round_goes_on_with_the_classifier_of_the_round_before(stages: dict[str, Any]) -> None:
    quick(augment="none").fit(images(), DATA.y_noisy)
    for number in (1, 2):
        before = stages[f"round-{number}/correct"][1]["end"]["classifier"]
        after = stages[f"round-{number + 1}/correct"][1]["start"]["classifier"]
        assert after == before


def test_it_answers_for_both_views_where_images_were_mirrored(tmp_path: Path) -> None:
    x = images()
    model = quick().fit(x, DATA.y_noisy)
    assert len(model.classifier_.networks) == 1
    found = model.predict_proba(x)
    np.testing.assert_allclose(model.predict_proba(x[:, :, ::-1]), found, atol=1e-5)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(bltm.load(tmp_path / "model").predict_proba(x), found)
    moved = quick(augment="crop").fit(x, DATA.y_noisy)
    assert not isinstance(moved.classifier_, Ensemble)


def test_labels_are_judged_by_both_views(monkeypatch: pytest.MonkeyPatch) -> None:
    x = images()
    views = []
    forward = Ensemble.forward

    def watched(ensemble: Ensemble, batch: torch.Tensor) -> torch.Tensor:
        views.append((len(ensemble.networks), ensemble.mirrored))
        return forward(ensemble, batch)

    monkeypatch.setattr(Ensemble, "forward", watched)
    BLTMClassifier(
        net="compact", epochs=1, folds=2, augment="flip", audit_folds=2, random_state=0
    ).fit(x, DATA.y_noisy)
    assert set(views) == {(4, True), (2, True)}


def test_rows_of_numbers_are_not_changed() -> None:
    assert quick(net="auto").fit(DATA.x, DATA.y_noisy).findings_["augment"] == "none"


def test_folds_of_an_audit_learn_as_long_as_all_rounds(stages: dict[str, Any]) -> None:
    model = quick(augment="crop", audit_folds=2)
    model.fit(images(), DATA.y_noisy)
    judges = [stage for name, (stage, _) in stages.items() if name.startswith("audit")]
    assert [stage.schedule.epochs for stage in judges] == [6, 6]
    assert all(stage.augment is not None for stage in judges)
    assert [stage.schedule.epochs for stage in model.full_plan(108)[-2:]] == [6, 6]


def test_one_classifier_takes_all_starts_of_bltm_v_but_the_second_of_the_last_round() -> None:
    own = BLTMPlusClassifier().plan(1000)
    assert own == [s for s in BLTMClassifier().plan(1000) if s.stage != "round-3/correct-2"]
    assert sum(stage.work for stage in BLTMPlusClassifier().plan(9000)) <= BUDGET * 9000


def test_every_preset_has_a_plus() -> None:
    assert list(PLUS_PRESETS) == list(PRESETS)
