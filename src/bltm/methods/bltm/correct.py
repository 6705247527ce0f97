"""Step 4 of Algorithm 1 (section 4.4): train the classifier with forward correction.

Minimises Eq. 5, the mean of ``-log (f(x) · T*(x))[noisy label]`` over all noisy examples, with the
transition network fixed; from the second round on perhaps with half of T*(x) (``moderate``). Of
T*(x) this needs the column of the given label only: C numbers for each example, computed once.
"""

from __future__ import annotations

import torch
from torch import nn

from bltm.engine.correction import fit_corrected
from bltm.engine.job import Job
from bltm.engine.transition_model import Corrected, Transition
from bltm.methods.bltm.presets import Recipe


def correct(
    job: Job,
    recipe: Recipe,
    stage: str,
    transition: Transition,
    warm: nn.Module | None,
    columns: torch.Tensor | None = None,
) -> Corrected:
    """Train a classifier of Bayes labels.

    Parameters
    ----------
    job, recipe, stage
        The fit, its recipe, and the stage's name.
    transition
        T*(x), fixed.
    warm
        The network to start from, or None for a random start.
    columns
        Columns of T*(x) that have not seen the labels, where ``redirect`` has made such.
    """
    return fit_corrected(
        job,
        stage,
        recipe.classifier,
        transition,
        warm,
        share=recipe.correction,
        columns=columns,
    )
