"""Evidence on disk: what a fit knew of its training examples, for a later look at the labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bltm.core.evidence import Evidence
from bltm.core.records import Collected, Posterior, Split, Suspicion
from bltm.engine.store import Artifact, read_artifact, write_artifact

# Arrays of which some methods have none.
COLLECTIONS = ("distilled", "collected")
OPTIONAL = ("out_of_sample", "columns", "rows", "expected", "support")


def write_evidence(evidence: Evidence, path: Path) -> None:
    """Write one safetensors file; ids are JSON in a tensor of bytes."""
    arrays: dict[str, NDArray[Any]] = {
        "labels": evidence.labels,
        "weights": evidence.weights,
        "trusted": evidence.trusted,
        "probs": evidence.probs,
        "suspicion": evidence.suspicion.values,
        "split/train": evidence.split.train,
        "split/validation": evidence.split.validation,
        "ids": np.frombuffer(json.dumps(evidence.ids, default=str).encode(), dtype=np.uint8),
    }
    arrays |= {name: getattr(evidence, name) for name in OPTIONAL if _has(evidence, name)}
    values: dict[str, Any] = {
        "classes": evidence.classes,
        "id_name": evidence.id_name,
        "suspicion": {"kind": evidence.suspicion.kind, "source": evidence.suspicion.source},
    }
    if evidence.posterior is not None:
        arrays["posterior/probs"] = evidence.posterior.probs
        values["posterior"] = {
            "out_of_sample": evidence.posterior.out_of_sample,
            "source": evidence.posterior.source,
        }
    for part in COLLECTIONS:
        found = getattr(evidence, part)
        if found is not None:
            for name in ("indices", "bayes_labels", "coverage"):
                arrays[f"{part}/{name}"] = getattr(found, name)
            values[part] = {"threshold": found.threshold, "collector": found.collector}
    tensors = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    write_artifact(path, Artifact(tensors, values))


def read_evidence(path: Path) -> Evidence:
    """Read what :func:`write_evidence` wrote."""
    artifact = read_artifact(path)
    arrays = {name: tensor.numpy() for name, tensor in artifact.tensors.items()}
    values = artifact.values
    posterior = None
    if "posterior" in values:
        posterior = Posterior(arrays["posterior/probs"], **values["posterior"])
    collections: dict[str, Any] = {
        part: Collected(
            indices=arrays[f"{part}/indices"],
            bayes_labels=arrays[f"{part}/bayes_labels"],
            coverage=arrays[f"{part}/coverage"],
            **values[part],
        )
        for part in COLLECTIONS
        if part in values
    }
    optional: dict[str, Any] = {name: arrays.get(name) for name in OPTIONAL}
    return Evidence(
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
        **collections,
        **optional,
    )


def _has(evidence: Evidence, name: str) -> bool:
    return getattr(evidence, name) is not None
