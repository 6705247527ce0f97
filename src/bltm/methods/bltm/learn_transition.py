"""Step 3 of Algorithm 1 (section 4.3): train the Bayes label transition network.

Minimises Eq. 3, the mean of ``-log T*(x)[y*, noisy label]`` over the collected examples.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from bltm.core.records import Collected, FloatArray
from bltm.engine.batches import Batch
from bltm.engine.job import Job
from bltm.engine.stage import Modules
from bltm.engine.transition_model import TransitionModel
from bltm.losses import transition_nll
from bltm.methods.bltm.collect import FEW
from bltm.methods.bltm.presets import Recipe
from bltm.nets.transition import TransitionNetwork, make_transition_network
from bltm.nets.weights import copy_fitting


def learn_transition(
    job: Job,
    recipe: Recipe,
    stage: str,
    collected: Collected,
    base: FloatArray | None,
    warm: nn.Module | None,
) -> TransitionModel:
    """Return the transition model learned from the collected examples.

    Parameters
    ----------
    job, recipe, stage
        The fit, its recipe, and the stage's name.
    collected
        Examples with inferred Bayes labels. Trusted ones are left out: their labels were checked,
        so they say nothing of how labels go wrong.
    base
        The class-dependent matrix (C, C) that T*(x) is a residual on, or None for the paper's head.
    warm
        The warmed-up network, when training starts from it.
    """
    network = job.bench.new(
        stage,
        lambda: make_transition_network(
            job.net, job.data.examples.shape, job.data.n_classes, base, weights=job.weights
        ),
    )
    assert isinstance(network, TransitionNetwork)
    if warm is not None:
        copy_fitting(warm, network.trunk)
    bayes = np.full(len(job.data), -1, dtype=np.int64)
    bayes[collected.indices] = collected.bayes_labels
    index = collected.indices[~job.data.trusted[collected.indices]]
    penalty = torch.tensor(recipe.penalty, device=job.bench.device)

    def step(modules: Modules, batch: Batch) -> torch.Tensor:
        log_rows, strain = modules["transition"](batch.x, batch.extras["bayes"])
        departure: torch.Tensor = strain @ penalty
        return transition_nll(log_rows, batch.y) + departure

    # With next to nothing collected the counted matrix is all there is to say. How little that is
    # does not depend on the number of processes, unless there are many.
    if len(index) >= max(FEW, 2 * job.bench.fabric.world_size):
        extras = {"bayes": torch.from_numpy(bayes)}
        modules = {"transition": network}
        job.train(stage, modules, step, recipe.transition, extras=extras, index=index)
    return TransitionModel(network).requires_grad_(False).eval()
