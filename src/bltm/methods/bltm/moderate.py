"""How far labels are corrected: all the way, or halfway where f explains them as well.

Labels can be wrong where examples are hard, as people's are. A classifier is in doubt about the
same examples and between the same classes, so its doubt and T*(x) explain such labels alike, and a
full correction leaves f no doubt: it gets surer than it can be and learns labels by heart. Flips
that do not follow f's doubt are explained by T*(x) alone and have to be corrected in full.

Which of the two it is shows in noisy labels that the classifier of the first round has not seen,
and in the T*(x) that was learned with it for the second: the better T*(x) is known, the more half
of it loses. With f softened by a temperature τ, ``log (f^(1/τ)(x) · T_s(x))[noisy label]`` is
compared for ``T_s = (1 - s) I + s T*(x)``, each with its best τ: where s = ½ does about as well as
the best share, half of the correction is left to f's own doubt. Labels that are wrong where
examples are hard are told a little better by the whole, too, and with many of them that is sure;
so half has to lose more than a little.

Between two classes flips go where the doubt goes, and half is right unless many labels say
otherwise. Even they are not heard where T*(x) gives both classes nearly the same labels: either
what labels say of the right ones is not worth enlarging, or f is wrong and T*(x) explains why.
"""

from __future__ import annotations

import torch

from bltm.core.matrix import log_entries, towards_identity
from bltm.core.records import Posterior
from bltm.engine.batches import in_batches
from bltm.engine.job import Job
from bltm.engine.predict import BATCH
from bltm.engine.selection import HeldOut

WHOLE, HALF = 1.0, 0.5
SHARES = (WHOLE, 0.75, HALF)
TEMPERATURES = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0)
# Standard errors by which held-out labels have to speak against half of the correction.
AGAINST = 2.0
# Nats a label that half has to lose besides, unless there are two classes. It loses more where
# flips do not follow f's doubt; but between two classes a flip goes where the doubt goes.
LEAST_LOSS = 0.0125
# With fewer labels nothing would speak against it.
LEAST_LABELS = 800
# How much likelier, on average, the given label has to be of one of two classes than of the other.
LEAST_DIFFERENCE = 0.2


def moderate(job: Job, belief: Posterior, columns: torch.Tensor) -> float:
    """Return the share of T*(x) that classifiers of later rounds are corrected by, ½ or 1.

    Parameters
    ----------
    job
        The fit; its noisy validation labels decide. Trusted ones say nothing of the noise.
    belief
        What a classifier that was trained through all of T*(x) makes of all examples.
    columns
        log T*(x)[:, noisy label] of all examples, shape (N, C).
    """
    held_out = job.split.validation[~job.data.trusted[job.split.validation]]
    if len(held_out) < LEAST_LABELS:
        return HALF if job.data.n_classes == 2 else WHOLE
    columns = columns[torch.from_numpy(held_out)]
    if job.data.n_classes == 2 and columns.exp().diff().abs().mean() < LEAST_DIFFERENCE:
        return HALF
    log_probs = log_entries(torch.from_numpy(belief.probs[held_out]))
    labels = torch.from_numpy(job.data.labels[held_out])
    weights = torch.from_numpy(job.data.weights[held_out])
    found = {s: _best_softened(log_probs, columns, labels, weights, s) for s in SHARES}
    best = min(found.values(), key=lambda judged: judged.mean)
    enough = LEAST_LOSS if job.data.n_classes > 2 else 0.0
    lost = found[HALF].mean - best.mean
    return WHOLE if lost > enough and found[HALF].worse_than(best, AGAINST) else HALF


def _best_softened(
    log_probs: torch.Tensor,
    columns: torch.Tensor,
    labels: torch.Tensor,
    weights: torch.Tensor,
    share: float,
) -> HeldOut:
    """Judge ``(f^(1/τ) · T_s)[noisy label]`` with the τ that does best."""
    batches = in_batches(torch.arange(len(labels)), BATCH)
    softened = []
    for temperature in TEMPERATURES:
        parts = [
            (
                (log_probs[b] / temperature).log_softmax(1)
                + towards_identity(columns[b], labels[b], share)
            ).logsumexp(1)
            for b in batches
        ]
        softened.append(HeldOut(-torch.cat(parts).double(), weights))
    return min(softened, key=lambda judged: judged.mean)
