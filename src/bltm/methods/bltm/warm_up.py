"""Step 1 of Algorithm 1: learn the noisy class posterior on the noisy data."""

from __future__ import annotations

from typing import Any

from torch import nn

from bltm.core.records import Posterior
from bltm.engine.job import Job
from bltm.engine.posteriors import (
    averaged_posterior,
    cross_fitted_posterior,
    in_sample_posterior,
    model_posterior,
)
from bltm.engine.supervised import fit_cross_entropy
from bltm.methods.bltm.presets import Recipe


def warm_up(
    job: Job, recipe: Recipe, out_of_sample: bool, model: Any = None
) -> tuple[Posterior, nn.Module | None]:
    """Return the noisy posteriors of all examples, and the warmed-up network if one was trained.

    Parameters
    ----------
    job
        The fit.
    recipe
        Schedule of the warm-up and number of folds.
    out_of_sample
        Whether the posteriors are to be cross-fitted.
    model
        A scikit-learn classifier to use instead of a network; section 4.2 names logistic
        regression.

    Notes
    -----
    A warmed-up network exists when the recipe starts later networks from it, or when the
    posteriors are in-sample ones of a network.
    """
    network = None
    if recipe.start_from_warm_up or (model is None and not out_of_sample):
        network = fit_cross_entropy(job, "warm_up", recipe.warm_up)

    def posterior() -> Posterior:
        if model is not None:
            return model_posterior(job, model, recipe.folds if out_of_sample else None)
        if out_of_sample:
            return unseen_posterior(job, recipe)
        assert network is not None
        return in_sample_posterior(job, network)

    return job.bench.record("posterior", Posterior, posterior), network


def unseen_posterior(job: Job, recipe: Recipe) -> Posterior:
    """Return the posteriors of networks that have not seen the labels they are asked about."""
    estimate = averaged_posterior if recipe.averaged else cross_fitted_posterior
    return estimate(job, "warm_up", recipe.warm_up, recipe.folds)
