"""How far T*(x) departs from its class-dependent matrix: as far as held-out labels bear it out.

A transition network that learned from few or impure examples knows less than it says. Whether it
does is told by the likelihood of noisy labels that neither it nor the classifier f of the round
before has seen, ``log (f(x) · T*(x))[noisy label]``. ``T*(x) = softmax(log base + λ r(x))`` is
taken with the best λ between 0, one matrix for all x, and 1, what the network learned.
"""

from __future__ import annotations

import copy

import torch

from bltm.core.matrix import log_entries
from bltm.core.records import Posterior
from bltm.engine.batches import in_batches
from bltm.engine.job import Job
from bltm.engine.predict import BATCH, predict
from bltm.nets.transition import TransitionNetwork

SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)
# With fewer labels chance decides, and T*(x) is left as it was learned.
LEAST_LABELS = 200


@torch.no_grad()
def hold_back(job: Job, network: TransitionNetwork, belief: Posterior) -> float:
    """Shrink the network's residual in place; return the share λ that is left of it.

    Parameters
    ----------
    job
        The fit; its noisy validation labels decide. Trusted ones say nothing of the noise.
    network
        The transition network, its head a residual on a class-dependent matrix.
    belief
        What the classifier of the round before makes of all examples.
    """
    held_out = job.split.validation[~job.data.trusted[job.split.validation]]
    if len(held_out) < LEAST_LABELS:
        return 1.0
    device = job.bench.device
    features = predict(
        network, job.data.examples, held_out, job.bench.fabric, lambda x, _: network.features(x)
    )
    labels = torch.from_numpy(job.data.labels[held_out])
    log_probs = log_entries(torch.from_numpy(belief.probs[held_out]))
    weights = torch.from_numpy(job.data.weights[held_out])

    def likelihood(share: float) -> float:
        head = copy.deepcopy(network.head)
        head.shrink(share)
        total = 0.0
        for batch in in_batches(torch.arange(len(held_out)), BATCH):
            columns = head.log_columns(features[batch].to(device), labels[batch].to(device)).cpu()
            log_noisy = (log_probs[batch] + columns).logsumexp(1)
            total += float((weights[batch] * log_noisy).sum())
        return total

    best = max(SHARES, key=likelihood)
    network.head.shrink(best)
    return best
