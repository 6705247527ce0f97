import numpy as np
import pytest
import torch
from torch import nn

from bltm.engine.predict import LEAST_ROWS, predict, stream_outputs
from bltm.nets.registry import make_net

from .helpers import CPU, FABRIC, blobs, noisy_data


@pytest.mark.parametrize("batch_size", [1, 3, 512])
def test_outputs_come_in_the_order_of_the_index(batch_size: int) -> None:
    x, labels = blobs(20)
    data = noisy_data(x, labels, 3)
    index = np.array([7, 0, 19, 3, 3, 12])
    outputs = predict(nn.Identity(), data.examples, index, FABRIC, batch_size=batch_size)
    np.testing.assert_array_equal(outputs.numpy(), x[index])


@pytest.mark.parametrize("d", [2, 64, 300])
def test_a_row_of_a_table_gets_the_same_output_in_any_company(d: int) -> None:
    x, labels = blobs(40, d=d)
    examples = noisy_data(x, labels, 3).examples
    net = make_net("mlp", (d,), 3)
    whole = predict(net, examples, np.arange(40), FABRIC)
    sizes: list[tuple[int, int]] = []

    def counted(rows: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        sizes.append((len(rows), len(index)))
        outputs: torch.Tensor = net(rows)
        return outputs

    for batch_size in (1, 3, 7, 16):
        parts = predict(net, examples, np.arange(40), FABRIC, counted, batch_size=batch_size)
        np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-6)
    # Which sums have an order of their own depends on the processor: below 16 rows here, if at all.
    assert set(sizes) == {(LEAST_ROWS, LEAST_ROWS)}


def test_an_image_is_computed_once() -> None:
    images = np.zeros((5, 8, 8, 1), dtype=np.uint8)
    examples = noisy_data(images, np.arange(5) % 3, 3).examples
    sizes: list[int] = []

    def counted(rows: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        sizes.append(len(rows))
        return rows

    predict(nn.Identity(), examples, np.arange(5), FABRIC, counted, batch_size=2)
    assert sizes == [2, 2, 1]


def test_no_examples_have_no_outputs() -> None:
    examples = noisy_data(*blobs(20), 3).examples
    assert len(predict(nn.Identity(), examples, np.arange(0), FABRIC)) == 0


@pytest.mark.parametrize("training", [True, False])
def test_the_module_predicts_in_evaluation_mode_and_keeps_its_own(training: bool) -> None:
    x, labels = blobs(20)
    examples = noisy_data(x, labels, 3).examples
    net = nn.Dropout(0.9).train(training)
    outputs = predict(net, examples, np.arange(20), FABRIC)
    np.testing.assert_array_equal(outputs.numpy(), x)
    assert net.training == training


def test_the_module_keeps_its_mode_after_an_error_or_a_break() -> None:
    examples = noisy_data(*blobs(20), 3).examples
    net = nn.Identity().train()

    def fail(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        predict(net, examples, np.arange(20), FABRIC, fail)
    assert net.training
    outputs = stream_outputs(net, examples, np.arange(20), CPU, batch_size=5)
    next(outputs)
    outputs.close()  # type: ignore[attr-defined]
    assert net.training


def test_a_part_in_evaluation_mode_stays_in_it() -> None:
    examples = noisy_data(*blobs(20), 3).examples
    net = nn.Sequential(nn.Identity(), nn.BatchNorm1d(4).eval()).train(True)
    net[1].eval()
    predict(net, examples, np.arange(20), FABRIC)
    assert [part.training for part in net.modules()] == [True, True, False]


def test_a_parameter_as_output_comes_without_its_gradient() -> None:
    examples = noisy_data(*blobs(20), 3).examples
    bias = nn.Parameter(torch.ones(2))
    outputs = predict(
        nn.Identity(), examples, np.arange(20), FABRIC, lambda x, _: bias.expand(len(x), -1)
    )
    assert not outputs.requires_grad


def test_prediction_records_no_gradients() -> None:
    examples = noisy_data(*blobs(20), 3).examples
    seen = []

    def watch(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        seen.append(torch.is_inference_mode_enabled())
        return net(x)  # type: ignore[no-any-return]

    net = nn.Linear(4, 2)
    outputs = predict(net, examples, np.arange(20), FABRIC, watch)
    assert seen == [True]
    assert not outputs.requires_grad


def test_a_stream_does_not_leave_the_caller_in_inference_mode() -> None:
    examples = noisy_data(*blobs(20), 3).examples
    for _ in stream_outputs(nn.Linear(4, 2), examples, np.arange(20), CPU, batch_size=5):
        assert not torch.is_inference_mode_enabled()


def test_no_examples_give_no_outputs() -> None:
    examples = noisy_data(*blobs(20), 3).examples
    assert len(predict(nn.Linear(4, 2), examples, np.arange(0), FABRIC)) == 0


def test_features_of_a_network_can_be_trained_on() -> None:
    """What comes out of inference mode must be usable where gradients are recorded."""
    examples = noisy_data(*blobs(20), 3).examples
    features = predict(nn.Linear(4, 2), examples, np.arange(20), FABRIC)
    head = nn.Linear(2, 1)
    head(features[torch.arange(5)]).sum().backward()
    assert head.weight.grad is not None
