"""What a fit knew of its training examples, kept for a later look at the labels."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bltm.core.records import (
    Collected,
    FloatArray,
    IntArray,
    NoisyData,
    Posterior,
    Split,
    Suspicion,
)
from bltm.engine.store import Artifact, read_artifact, write_artifact
from bltm.methods.base import NoisyLabelClassifier


@dataclass(frozen=True)
class Evidence:
    """Everything about the N training examples that an audit needs.

    Attributes
    ----------
    ids, id_name
        The user's name of each example, and what the user calls these names.
    classes
        The C classes.
    labels
        Given labels as codes, shape (N,).
    weights
        Weight of each example, shape (N,); zero for copies and examples that were not used.
    trusted
        Mask of labels known to be right, shape (N,).
    probs
        The classifier's probabilities of the right label, shape (N, C).
    suspicion
        How much speaks against each given label.
    split
        Which examples trained and which selected.
    posterior, collected
        Noisy posteriors and inferred Bayes labels, where the method has them.
    """

    ids: list[Any]
    id_name: str
    classes: list[Any]
    labels: IntArray
    weights: FloatArray
    trusted: NDArray[np.bool_]
    probs: NDArray[np.float32]
    suspicion: Suspicion
    split: Split
    posterior: Posterior | None
    collected: Collected | None

    @classmethod
    def of(
        cls, data: NoisyData, split: Split, fitted: NoisyLabelClassifier, id_name: str
    ) -> Evidence:
        """Gather what a fit leaves behind."""
        return cls(
            ids=data.ids.tolist(),
            id_name=id_name,
            classes=data.classes.tolist(),
            labels=data.labels,
            weights=data.weights,
            trusted=data.trusted,
            probs=fitted.probs_,
            suspicion=fitted.suspicion_,
            split=split,
            posterior=fitted.posterior_,
            collected=fitted.collected_,
        )

    def write(self, path: Path) -> None:
        """Write one safetensors file; ids are JSON in a tensor of bytes."""
        arrays: dict[str, NDArray[Any]] = {
            "labels": self.labels,
            "weights": self.weights,
            "trusted": self.trusted,
            "probs": self.probs,
            "suspicion": self.suspicion.values,
            "split/train": self.split.train,
            "split/validation": self.split.validation,
            "ids": np.frombuffer(json.dumps(self.ids, default=str).encode(), dtype=np.uint8),
        }
        values: dict[str, Any] = {
            "classes": self.classes,
            "id_name": self.id_name,
            "suspicion": {"kind": self.suspicion.kind, "source": self.suspicion.source},
        }
        if self.posterior is not None:
            arrays["posterior/probs"] = self.posterior.probs
            values["posterior"] = {
                "out_of_sample": self.posterior.out_of_sample,
                "source": self.posterior.source,
            }
        if self.collected is not None:
            for name in ("indices", "bayes_labels", "coverage"):
                arrays[f"collected/{name}"] = getattr(self.collected, name)
            values["collected"] = {
                "threshold": self.collected.threshold,
                "collector": self.collected.collector,
            }
        tensors = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
        write_artifact(path, Artifact(tensors, values))

    @classmethod
    def read(cls, path: Path) -> Evidence:
        """Read what :meth:`write` wrote."""
        artifact = read_artifact(path)
        arrays = {name: tensor.numpy() for name, tensor in artifact.tensors.items()}
        values = artifact.values
        posterior = collected = None
        if "posterior" in values:
            posterior = Posterior(arrays["posterior/probs"], **values["posterior"])
        if "collected" in values:
            collected = Collected(
                indices=arrays["collected/indices"],
                bayes_labels=arrays["collected/bayes_labels"],
                coverage=arrays["collected/coverage"],
                **values["collected"],
            )
        return cls(
            ids=json.loads(arrays["ids"].tobytes()),
            id_name=values["id_name"],
            classes=values["classes"],
            labels=arrays["labels"],
            weights=arrays["weights"],
            trusted=arrays["trusted"],
            probs=arrays["probs"],
            suspicion=Suspicion(arrays["suspicion"], **values["suspicion"]),
            split=Split(arrays["split/train"], arrays["split/validation"]),
            posterior=posterior,
            collected=collected,
        )
