"""Save fitted estimators as safetensors and JSON, and load them. No file is a pickle."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import bltm
from bltm.core.errors import InputError
from bltm.core.files import read_json, write_json
from bltm.core.random import torch_stream
from bltm.data.encoders import encoder_from_json
from bltm.engine.parts_transition import PartsTransition
from bltm.engine.store import Artifact, named_weights, read_artifact, write_artifact
from bltm.engine.transition_model import ClassTransition, Transition, TransitionModel
from bltm.methods.base import NoisyLabelClassifier
from bltm.nets.ensemble import Ensemble
from bltm.nets.heads import PartsHead
from bltm.nets.redirect import RedirectedHead
from bltm.nets.registry import make_net, make_trunk
from bltm.nets.transition import make_transition_network
from bltm.transition.revision import Revision

FORMAT = 2
MODEL, METADATA = "model.safetensors", "metadata.json"


def save(estimator: NoisyLabelClassifier, path: Path) -> None:
    """Write ``model.safetensors`` and ``metadata.json`` into a directory."""
    modules = {"classifier": estimator.classifier_}
    if estimator.transition_ is not None:
        modules["transition"] = estimator.transition_
    write_artifact(path / MODEL, Artifact(named_weights(modules)))
    write_json(path / METADATA, metadata(estimator, path / MODEL))


def metadata(estimator: NoisyLabelClassifier, model: Path) -> dict[str, Any]:
    """Return all that is needed to use the weights, as plain values."""
    classes, classifier = estimator.classes_, estimator.classifier_
    return {
        "format": FORMAT,
        "bltm": bltm.__version__,
        "torch": torch.__version__,
        "estimator": type(estimator).__name__,
        "parameters": plain_parameters(estimator),
        "classes": classes.tolist(),
        "classes_dtype": "object" if classes.dtype == object else classes.dtype.str,
        "net": estimator.net_ if isinstance(estimator.net_, str) else None,
        "input_shape": list(estimator.input_shape_),
        "ensemble": len(classifier.networks) if isinstance(classifier, Ensemble) else None,
        "mirrored": isinstance(classifier, Ensemble) and classifier.mirrored,
        "transition": describe_transition(estimator.transition_),
        "encoder": estimator.encoder_.to_json(),
        "n_features_in": getattr(estimator, "n_features_in_", None),
        "feature_names_in": _names(getattr(estimator, "feature_names_in_", None)),
        "seed": estimator.seed_,
        "findings": estimator.findings_,
        "model_sha256": hashlib.sha256(model.read_bytes()).hexdigest(),
    }


def describe_transition(transition: nn.Module | None) -> dict[str, Any] | None:
    """Return what it takes to make a transition of the same kind."""
    if isinstance(transition, ClassTransition):
        return {"kind": "class", "revised": transition.revision is not None}
    if isinstance(transition, PartsTransition):
        return {
            "kind": "parts",
            "shape": list(transition.parts.shape),
            "revised": transition.revision is not None,
        }
    if isinstance(transition, TransitionModel):
        head = transition.network.head
        redirected = isinstance(head, RedirectedHead)
        parts = isinstance(head.inner if redirected else head, PartsHead)
        return {
            "kind": "network",
            "head": "parts" if parts else "dense",
            "redirected": redirected,
            "revised": transition.revision is not None,
        }
    return None


def make_transition(
    description: dict[str, Any],
    net: str | Callable[[int], nn.Module],
    shape: tuple[int, ...],
    n_classes: int,
) -> Transition:
    """Return a transition of the kind described, its numbers still to be loaded."""
    revision = Revision(n_classes) if description["revised"] else None
    if description["kind"] == "class":
        return ClassTransition(torch.eye(n_classes), revision)
    if description["kind"] == "parts":
        parts = torch.zeros(description["shape"])
        matrices = torch.zeros(len(parts), n_classes, n_classes)
        return PartsTransition(make_trunk(net, shape)[0], parts, matrices, revision)
    network = make_transition_network(net, shape, n_classes, head=description["head"])
    # Models that were saved before flips were redirected do not say so.
    if description.get("redirected", False):
        network = network.redirected(shape)
    return TransitionModel(network, revision)


def plain_parameters(estimator: NoisyLabelClassifier) -> dict[str, Any]:
    """Return the constructor's arguments that JSON can hold; the others are left out."""
    plain = {}
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, Path):
            value = str(value)
        if isinstance(value, (np.ndarray, np.generic)):
            value = value.tolist()
        if isinstance(value, tuple):
            value = list(value)
        if value is None or isinstance(value, (str, int, float, bool, list)):
            plain[name] = value
    return plain


def load(
    path: str | Path, *, net: Callable[[int], nn.Module] | None = None, device: str = "auto"
) -> NoisyLabelClassifier:
    """Load an estimator that was saved with ``save`` or written by ``bltm fit``.

    Parameters
    ----------
    path
        The directory.
    net
        The function that made the network, if it was the user's own.
    device
        Where predictions are computed.
    """
    directory = Path(path)
    if not (directory / METADATA).exists():
        raise InputError(
            "path",
            f"'{directory}' holds no finished model ({METADATA} is missing)",
            "Give the directory of a finished run, or resume the run with 'bltm fit --resume'.",
        )
    values = _read_metadata(directory)
    if values.get("net", "") is None and net is None:
        raise InputError(
            "net", "the model was made by a function of the user's", "Pass it: load(path, net=...)."
        )
    try:
        estimator = _described(values, net)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            "path", f"'{directory}' describes no model that this version knows ({error!r})"
        ) from error
    estimator.set_params(device=device)
    artifact = _verified(directory, values)
    try:
        # Weights are drawn before they are replaced; the caller's generator must not move.
        with torch_stream(0, "load"):
            _load_modules(estimator, values, artifact)
    except RuntimeError as error:
        raise InputError(
            "path" if net is None else "net",
            f"the weights in '{directory}' do not fit the network ({error})",
        ) from error
    return estimator


def _read_metadata(directory: Path) -> dict[str, Any]:
    try:
        values = read_json(directory / METADATA)
    except ValueError as error:
        raise InputError(
            "path", f"'{directory / METADATA}' cannot be read ({error})", "Restore it from a copy."
        ) from error
    if values.get("format") != FORMAT:
        raise InputError(
            "path", f"'{directory}' has format {values.get('format')}, this version reads {FORMAT}"
        )
    return values


def _described(
    values: dict[str, Any], net: Callable[[int], nn.Module] | None
) -> NoisyLabelClassifier:
    """Return the estimator that the metadata describes, still without its networks."""
    kinds = {kind.__name__: kind for kind in _subclasses(NoisyLabelClassifier)}
    estimator: NoisyLabelClassifier = kinds[values["estimator"]](**values["parameters"])
    estimator.net_ = values["net"] if net is None else net
    estimator.input_shape_ = tuple(values["input_shape"])
    estimator.classes_ = np.array(values["classes"], dtype=np.dtype(values["classes_dtype"]))
    estimator.encoder_ = encoder_from_json(values["encoder"])
    estimator.seed_, estimator.findings_ = values["seed"], values["findings"]
    for name in ("n_features_in", "feature_names_in"):
        if values[name] is not None:
            value = values[name]
            setattr(estimator, f"{name}_", np.array(value, object) if name[0] == "f" else value)
    return estimator


def _load_modules(
    estimator: NoisyLabelClassifier, values: dict[str, Any], artifact: Artifact
) -> None:
    shape, n_classes = estimator.input_shape_, len(estimator.classes_)
    networks = [make_net(estimator.net_, shape, n_classes) for _ in range(values["ensemble"] or 1)]
    # Models that were saved before this was recorded look at images once.
    mirrored = values.get("mirrored", False)
    classifier = networks[0] if values["ensemble"] is None else Ensemble(networks, mirrored)
    classifier.load_state_dict(artifact.part("classifier"))
    # The layout of training: another one takes other kernels and ends in other last bits.
    estimator.classifier_ = classifier.to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload]
    estimator.transition_ = None
    if values["transition"] is not None:
        transition = make_transition(values["transition"], estimator.net_, shape, n_classes)
        transition.load_state_dict(artifact.part("transition"))
        transition.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        estimator.transition_ = transition.requires_grad_(False).eval()


def _verified(directory: Path, values: dict[str, Any]) -> Artifact:
    path = directory / MODEL
    if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != values["model_sha256"]:
        raise InputError(
            "path",
            f"'{path}' is missing or not the file that {METADATA} describes",
            "Restore both files from one run.",
        )
    return read_artifact(path)


def _names(names: Any) -> list[str] | None:
    return None if names is None else [str(name) for name in names]


def _subclasses(kind: type[Any]) -> list[type[Any]]:
    import bltm.methods.registry  # noqa: F401  (imports every method)

    return [kind, *(s for c in kind.__subclasses__() for s in _subclasses(c))]
