"""The "-V" of BLTM-V: revise T*(x) by one offset ΔT that all instances share.

T*(x) is replaced by ``rownorm(max(T*(x) + ΔT, 0))``, and ΔT is trained together with the classifier
on Eq. 5 (Xia et al., 2019). The transition network stays fixed.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from bltm.core.matrix import towards_identity
from bltm.engine.batches import Batch
from bltm.engine.correction import mixed_score, start_classifier
from bltm.engine.job import Job
from bltm.engine.stage import Modules
from bltm.engine.transition_model import (
    Corrected,
    TransitionModel,
    column_of_given_label,
    transition_features,
)
from bltm.losses import forward_nll
from bltm.methods.bltm.presets import Recipe
from bltm.transition.revision import Revision


def revise(
    job: Job, recipe: Recipe, stage: str, transition: TransitionModel, start: nn.Module | None
) -> Corrected:
    """Train the classifier together with ΔT.

    Parameters
    ----------
    job, recipe, stage
        The fit, its recipe, and the stage's name.
    transition
        T*(x) before the revision.
    start
        The classifier to start from.
    """
    network = transition.network
    classifier = start_classifier(job, stage, start)
    revision = job.bench.new(f"{stage}/offset", lambda: Revision(job.data.n_classes))
    assert isinstance(revision, Revision)
    identity = torch.eye(job.data.n_classes, device=job.bench.device).log()

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        columns = network.log_columns(batch.extras["features"], batch.y, modules["revision"])
        trusted = batch.extras["trusted"]
        columns = torch.where(trusted[:, None], identity[batch.y], columns)
        columns = towards_identity(columns, batch.y, recipe.correction)
        return forward_nll(modules["classifier"](batch.x), columns)

    def score(modules: Modules, batch: Batch) -> torch.Tensor:
        log_probs = functional.log_softmax(modules["classifier"](batch.x), dim=1)
        noisy = network.log_noisy(batch.extras["features"], log_probs, modules["revision"])
        return mixed_score(log_probs, noisy, recipe.correction)

    extras = {
        "features": transition_features(job, network),
        "trusted": torch.from_numpy(job.data.trusted),
    }
    job.train(
        stage,
        {"classifier": classifier, "revision": revision},
        step,
        recipe.revision,
        score=score,
        extras=extras,
        rates={"revision": recipe.revision_rate},
    )
    revised = TransitionModel(network, revision).requires_grad_(False).eval()
    return Corrected(classifier, revised, column_of_given_label(job, revised, extras["features"]))
