"""Forward correction: what the paper claims of it, and what goes wrong elsewhere."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch.nn import functional

import bltm
from bltm.core.errors import InputError
from bltm.core.matrix import sample_rows
from bltm.engine.protocol import BUDGET
from bltm.losses import forward_nll
from bltm.methods.forward import ForwardClassifier

from .helpers import quick_cross_entropy, sample

DATA = sample()


def quick(**parameters: object) -> ForwardClassifier:
    settings = {"epochs": 2, "batch_size": 32, "random_state": 0}
    return ForwardClassifier(**(settings | parameters))  # type: ignore[arg-type]


def fitted_linear(x: torch.Tensor, targets: torch.Tensor, T: torch.Tensor) -> torch.Tensor:
    """Probabilities of the linear softmax model that minimises the expected forward loss."""
    weight = torch.zeros(x.shape[1], len(T), dtype=x.dtype, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight], max_iter=500, tolerance_grad=1e-10, tolerance_change=0)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        columns = T.log().T  # one row for each noisy label
        losses = torch.stack(
            [forward_nll(x @ weight, column.expand(len(x), -1)) for column in columns]
        )
        loss = (targets * losses.T).sum(1).mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    return (x @ weight).softmax(1).detach()


def test_with_the_exact_t_the_optimum_is_that_of_clean_labels() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(150, 4, generator=generator, dtype=torch.float64)
    clean = (x @ torch.randn(4, 3, generator=generator, dtype=torch.float64)).softmax(1)
    T = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.15, 0.05, 0.8]], dtype=torch.float64)
    torch.testing.assert_close(fitted_linear(x, clean @ T, T), clean, atol=1e-4, rtol=0)
    identity = torch.eye(3, dtype=torch.float64).clamp_min(1e-12)
    assert float((fitted_linear(x, clean @ T, identity) - clean).abs().max()) > 0.1


def test_the_loss_is_no_second_softmax() -> None:
    """Some public code hands the product p·T to cross-entropy, which takes it for logits."""
    T = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    logits = torch.tensor([[3.0, 0.0]])
    noisy = logits.softmax(1) @ T
    loss = forward_nll(logits, T[:, 0].log()[None])
    torch.testing.assert_close(loss, -noisy[:, 0].log())
    assert float(functional.cross_entropy(noisy, torch.tensor([0])) - loss) > 0.1


def class_noise(
    seed: int = 0, n: int = 600
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    data = sample(n, seed)
    T = np.array([[0.55, 0.45, 0.0], [0.0, 0.55, 0.45], [0.0, 0.0, 1.0]])
    noisy = sample_rows(T[data.y_bayes], np.random.default_rng(seed))
    return data.x, data.y_bayes, noisy, T


def test_a_known_t_is_used_and_helps_against_noise_that_depends_on_the_class() -> None:
    x, right, noisy, T = class_noise()
    settings = {"epochs": 15, "batch_size": 32, "lr": 5e-3}
    model = quick(transition=T, **settings).fit(x, noisy)
    plain = quick_cross_entropy(**settings).fit(x, noisy)
    scores = [(m.predict(x) == right).mean() for m in (model, plain)]
    assert scores[0] > scores[1] + 0.03
    np.testing.assert_allclose(model.predict_transition(x[:2]), np.stack([T, T]), atol=1e-6)
    assert model.findings_["transition_source"] == "given"
    assert model.findings_["passes"] == pytest.approx(15)
    assert model.suspicion_.kind == "probability"
    found, missed = (roc_auc_score(noisy != right, m.suspicion_.values) for m in (model, plain))
    assert found > 0.95 > missed


@pytest.mark.parametrize("name", ["anchor", "counted"])
def test_t_is_estimated_before_it_is_used(name: str) -> None:
    model = quick(transition=name).fit(DATA.x, DATA.y_noisy)
    stages = list(dict.fromkeys(line["stage"] for line in model.history_))
    assert stages == ["estimate", "correct"]
    assert [stage.stage for stage in model.plan(100)] == stages
    assert model.findings_["transition_source"] == name
    T = np.asarray(model.predict_transition(DATA.x))
    assert (T[0] == T).all()


@pytest.mark.filterwarnings("ignore::bltm.core.errors.CollapseWarning")
def test_a_uniform_t_leaves_nothing_to_learn() -> None:
    uniform = np.full((3, 3), 1 / 3)
    model = quick(transition=uniform, epochs=3, validation_fraction=0.0).fit(DATA.x, DATA.y_noisy)
    np.testing.assert_allclose([line["loss"] for line in model.history_], np.log(3), rtol=1e-6)


def test_a_model_with_a_given_t_is_saved_and_can_be_fitted_again(tmp_path: Path) -> None:
    T = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.0, 0.0, 1.0]])
    model = quick(transition=T).fit(DATA.x, DATA.y_noisy)
    model.save(tmp_path)
    loaded = bltm.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(DATA.x), model.predict_proba(DATA.x))
    np.testing.assert_array_equal(
        loaded.predict_transition(DATA.x[:3]), model.predict_transition(DATA.x[:3])
    )
    again = loaded.fit(DATA.x, DATA.y_noisy)
    np.testing.assert_array_equal(again.predict_proba(DATA.x), model.predict_proba(DATA.x))


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_the_plan_is_within_reach_and_says_what_is_trained(preset: str) -> None:
    stages = ForwardClassifier(preset=preset).plan(10_000)
    assert [stage.stage for stage in stages] == ["estimate", "correct"]
    if preset == "default":
        assert sum(stage.work for stage in stages) / 10_000 <= BUDGET
    else:
        assert [stage.schedule.epochs for stage in stages] == [100, 100]


@pytest.mark.parametrize("transition", ["anchors", [[1.0]], [[0.5, 0.1], [0.5, 0.5]]])
def test_a_transition_that_cannot_be_is_refused_before_training(transition: object) -> None:
    if transition == [[1.0]]:
        with pytest.raises(InputError, match="transition: has shape"):
            quick(transition=transition).fit(DATA.x, DATA.y_noisy)
    else:
        with pytest.raises(InputError, match="transition: "):
            quick(transition=transition).plan(100)
