"""The "-V" of BLTM-V: revise T*(x) by one offset ΔT that all instances share.

T*(x) is replaced by ``rownorm(max(T*(x) + ΔT, 0))``, and ΔT is trained together with the classifier
on Eq. 5 (Xia et al., 2019). The transition network stays fixed. By default the revision is taken
where labels that were held out speak for it.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from bltm.core.matrix import towards_identity
from bltm.engine.batches import Batch
from bltm.engine.correction import mixed_score, start_classifier
from bltm.engine.job import Job
from bltm.engine.selection import Best, HeldOut
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
    job: Job,
    recipe: Recipe,
    stage: str,
    transition: TransitionModel,
    start: nn.Module | None,
    columns: torch.Tensor | None = None,
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
    columns
        Columns of T*(x) that have not seen the labels, where ``redirect`` has made such: ΔT changes
        them by the same factors as those of T*(x).
    """
    network = transition.network
    features = transition_features(job, network)
    unseen = torch.zeros(len(job.data), job.data.n_classes)
    if columns is not None:
        unseen = columns - column_of_given_label(job, transition, features)
        unseen[torch.from_numpy(job.data.trusted)] = 0.0
    classifier = start_classifier(job, stage, start)
    revision = job.bench.new(f"{stage}/offset", lambda: Revision(job.data.n_classes))
    assert isinstance(revision, Revision)
    identity = torch.eye(job.data.n_classes, device=job.bench.device).log()

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        revised = network.log_columns(batch.extras["features"], batch.y, modules["revision"])
        columns = (revised + batch.extras["unseen"]).clamp_max(0.0)
        trusted = batch.extras["trusted"]
        columns = torch.where(trusted[:, None], identity[batch.y], columns)
        columns = towards_identity(columns, batch.y, recipe.correction)
        return forward_nll(modules["classifier"](batch.x), columns)

    def score(modules: Modules, batch: Batch) -> torch.Tensor:
        log_probs = functional.log_softmax(modules["classifier"](batch.x), dim=1)
        noisy = network.log_noisy(batch.extras["features"], log_probs, modules["revision"])
        return mixed_score(log_probs, noisy, recipe.correction)

    extras = {
        "features": features,
        "unseen": unseen,
        "trusted": torch.from_numpy(job.data.trusted),
    }
    modules = {"classifier": classifier, "revision": revision}
    start_weights, held_out = Best.of(modules, 0, {}), job.validation(extras)
    before = HeldOut.of(modules, score, held_out, job.bench.fabric)
    job.train(
        stage,
        modules,
        step,
        recipe.revision,
        score=score,
        extras=extras,
        rates={"revision": recipe.revision_rate},
    )
    after = HeldOut.of(modules, score, held_out, job.bench.fabric)
    # A little is gained by chance.
    if recipe.revision_proof and not before.worse_than(after, recipe.revision_proof):
        start_weights.restore(modules)
    revised = TransitionModel(network, revision).requires_grad_(False).eval()
    columns = (column_of_given_label(job, revised, features) + unseen).clamp_max(0.0)
    return Corrected(classifier, revised, columns)
