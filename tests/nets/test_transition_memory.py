"""What the heads cost at a thousand classes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bltm.nets import DenseHead, PartsHead, heads, make_transition_network


class LargestTensor(TorchDispatchMode):
    """Records the number of entries of the largest tensor that any operation makes."""

    numel = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(value, torch.Tensor):
                self.numel = max(self.numel, value.numel())
        return result


def test_parts_do_not_grow_as_features_times_classes_squared() -> None:
    sizes = {
        (d, C): sum(p.numel() for p in PartsHead(d, C).parameters())
        for d, C in ((64, 100), (128, 100), (64, 200))
    }
    K = 16
    assert sizes[128, 100] - sizes[64, 100] == 64 * K
    assert sizes[64, 200] - sizes[64, 100] == K * (200**2 - 100**2)


@pytest.mark.parametrize("direction", ["rows", "log_columns"])
def test_a_thousand_classes_need_no_matrix_per_example(direction: str) -> None:
    B, C, K, d = 64, 1000, 16, 512
    head = make_transition_network(lambda n: torch.nn.Linear(d, n), (d,), C).head
    assert isinstance(head, PartsHead)
    assert head.parts.shape == (K, C, C)
    features, labels = torch.randn(B, 128), torch.randint(C, (B,))
    with LargestTensor() as largest:
        result = getattr(head, direction)(features, labels)
    assert torch.as_tensor(result[0]).isfinite().all()
    assert largest.numel <= max(C * C, K * B * C) < B * C * C / 50


def test_dense_head_works_through_many_classes_in_blocks() -> None:
    B, C, d = 64, 600, 4
    head = DenseHead(d, C)
    features, labels = torch.randn(B, d), torch.randint(C, (B,))
    with torch.no_grad(), LargestTensor() as largest:
        head.rows(features, labels)
        head.log_columns(features, labels)
    assert largest.numel <= heads.BLOCK
    assert heads.BLOCK * 4 * 3 <= 64 * 2**20
