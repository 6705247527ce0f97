"""Turn the state of training into an artifact and back, exactly."""

from __future__ import annotations

from typing import Any

import torch

from bltm.engine.loop import TrainState
from bltm.engine.selection import Best
from bltm.engine.store import Artifact, named_weights


def pack(state: TrainState) -> Artifact:
    """Return everything that training needs to continue, as tensors and plain values."""
    tensors: dict[str, torch.Tensor] = {"loss_sum": state.loss_sum}
    tensors |= {f"modules/{key}": value for key, value in named_weights(state.modules).items()}
    optimizer_values: dict[str, dict[str, Any]] = {}
    for number, slots in state.optimizer.state_dict()["state"].items():
        for key, value in slots.items():
            if isinstance(value, torch.Tensor):
                tensors[f"optimizer/{number}/{key}"] = value
            else:
                optimizer_values.setdefault(str(number), {})[key] = value
    for key, value in state.memory.items():
        tensors[f"memory/{key}"] = value
    best = None
    if state.best is not None:
        best = {"epoch": state.best.epoch, "metrics": state.best.metrics}
        for name, weights in state.best.weights.items():
            for key, value in weights.items():
                tensors[f"best/{name}/{key}"] = value
    return Artifact(
        tensors,
        {
            "epoch": state.epoch,
            "position": state.position,
            "weight_sum": state.weight_sum,
            "seen": state.seen,
            "optimizer": optimizer_values,
            "best": best,
        },
    )


def unpack(artifact: Artifact, state: TrainState) -> None:
    """Bring a fresh state to where the packed one was.

    Tensors are copied into the layout that the fresh state has: the same values in another memory
    layout would take other kernels and end in other last bits.
    """
    groups: dict[str, dict[str, dict[str, torch.Tensor]]] = {}
    for path, tensor in artifact.tensors.items():
        kind, *rest = path.split("/", 2)
        if len(rest) == 2:
            groups.setdefault(kind, {}).setdefault(rest[0], {})[rest[1]] = tensor
        elif kind == "memory":
            state.memory[rest[0]] = tensor
    for name, module in state.modules.items():
        module.load_state_dict(groups["modules"].get(name, {}))
    values = artifact.values
    _restore_optimizer(state.optimizer, groups.get("optimizer", {}), values["optimizer"])
    state.loss_sum = artifact.tensors["loss_sum"]
    state.epoch, state.position = values["epoch"], values["position"]
    state.weight_sum, state.seen = values["weight_sum"], values["seen"]
    if values["best"] is not None:
        state.best = Best(weights=groups["best"], **values["best"])


def _restore_optimizer(
    optimizer: torch.optim.Optimizer,
    tensors: dict[str, dict[str, torch.Tensor]],
    values: dict[str, dict[str, Any]],
) -> None:
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for number, parameter in enumerate(parameters):
        slots: dict[str, Any] = dict(values.get(str(number), {}))
        for key, value in tensors.get(str(number), {}).items():
            if value.shape == parameter.shape:
                slots[key] = torch.empty_like(parameter).copy_(value)
            else:
                slots[key] = value.to(parameter.device)
        if slots:
            optimizer.state[parameter] = slots
