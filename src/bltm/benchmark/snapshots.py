"""The networks as they were after each epoch, kept in files until the method is done.

A method is judged only when it has been fitted: while it learns, nothing in its reach knows right
labels. What it was like on the way is therefore kept and looked at afterwards.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from bltm.engine.stage import Stage
from bltm.engine.store import Artifact, named_weights, read_artifact, write_artifact
from bltm.engine.transition_model import TransitionModel
from bltm.nets.ensemble import Ensemble, last_member

MOST = 50
"""Epochs of a stage that are kept; of longer stages those that are evenly spread."""

TRANSITION_PARTS = ("transition", "revision")


@dataclass(frozen=True)
class Snapshot:
    """The modules of a stage after an epoch.

    ``stage`` is its name as the method planned it, ``length`` the number of epochs it was trained
    for, which tells the lengths apart that a stage was tried with.
    """

    stage: str
    length: int
    epoch: int
    artifact: Artifact

    def load_classifier(self, classifier: nn.Module) -> bool:
        """Put the weights into a network like the one that the method ended with, if they fit."""
        members = [name for name in self.artifact.values["modules"] if name not in TRANSITION_PARTS]
        if members == ["classifier"]:
            # The others of an ensemble were ready before.
            networks = [last_member(classifier)]
        elif members and isinstance(classifier, Ensemble):
            # In the order in which the stage has them, which is that of the ensemble.
            networks = list(classifier.networks)
        else:
            return False
        for name, network in zip(members, networks, strict=True):
            network.load_state_dict(self.artifact.part(name))
        return True

    def load_transition(self, transition: nn.Module | None) -> bool:
        """Put T(x) as it was into a model like the one that the method ended with, if it fits."""
        if transition is None:
            return False
        network, revision = (self.artifact.part(name) for name in TRANSITION_PARTS)
        if network and isinstance(transition, TransitionModel):
            transition.network.load_state_dict(network)
            transition.revision = None
        if revision:
            transition.get_submodule("revision").load_state_dict(revision)
        return bool(network or revision)


def plain_name(stage: str) -> str:
    """Return the name that a stage was planned under, without the length it was tried with.

    Examples
    --------
    >>> plain_name("round-1/correct/12-epochs")
    'round-1/correct'
    """
    return re.sub(r"/\d+-epochs$", "", stage)


def keep_snapshots(
    directory: Path, final: str, transitions: bool = False
) -> Callable[[Stage, int], None]:
    """Return what a workbench calls after each epoch.

    Parameters
    ----------
    directory
        Where the files go.
    final
        Name of the stage whose epochs are kept.
    transitions
        Whether stages that learn T or T(x) are kept as well.
    """

    def keep(stage: Stage, epoch: int) -> None:
        name, length = plain_name(stage.name), stage.schedule.epochs
        learns = transitions and any(part in stage.modules for part in TRANSITION_PARTS)
        every = math.ceil(length / MOST)
        if (name == final or learns) and (epoch % every == 0 or epoch == length):
            values = {
                "stage": name,
                "length": length,
                "epoch": epoch,
                "modules": list(stage.modules),
            }
            path = directory / f"{name.replace('/', '.')}-{length}-{epoch:05}.safetensors"
            write_artifact(path, Artifact(named_weights(stage.modules), values))

    return keep


def read_snapshots(directory: Path) -> Iterator[Snapshot]:
    """Yield what was kept, by stage, length and epoch."""
    # A hidden file is what a write that was killed has left.
    for path in sorted(directory.glob("[!.]*.safetensors")):
        artifact = read_artifact(path)
        values = artifact.values
        yield Snapshot(values["stage"], values["length"], values["epoch"], artifact)
