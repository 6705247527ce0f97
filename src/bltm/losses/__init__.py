"""Losses: pure functions that return one value per sample; whoever calls them averages, once."""

from bltm.losses.cross_entropy import cross_entropy
from bltm.losses.forward import forward_nll, noisy_log_probs
from bltm.losses.soft import entropy, prior_cross_entropy, soft_cross_entropy
from bltm.losses.transition_nll import transition_nll

__all__ = [
    "cross_entropy",
    "entropy",
    "forward_nll",
    "noisy_log_probs",
    "prior_cross_entropy",
    "soft_cross_entropy",
    "transition_nll",
]
