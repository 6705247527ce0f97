"""Losses: pure functions that return one value per sample; whoever calls them averages, once."""

from bltm.losses.active_passive import normalised_cross_entropy, reverse_cross_entropy
from bltm.losses.cross_entropy import cross_entropy
from bltm.losses.dmi import dmi_loss, label_joint
from bltm.losses.forward import forward_nll, noisy_log_probs
from bltm.losses.gce import generalised_cross_entropy, truncated_gce
from bltm.losses.lost_classes import lost_classes
from bltm.losses.reweight import importance_weights, reweighted_cross_entropy
from bltm.losses.small_loss import (
    exchange_loss,
    forget_rate,
    keep_count,
    kept_examples,
    self_paced_loss,
    small_loss,
    weighted_mean,
)
from bltm.losses.soft import entropy, prior_cross_entropy, soft_cross_entropy
from bltm.losses.squared_error import squared_error
from bltm.losses.transition_nll import transition_nll

__all__ = [
    "cross_entropy",
    "dmi_loss",
    "entropy",
    "exchange_loss",
    "forget_rate",
    "forward_nll",
    "generalised_cross_entropy",
    "importance_weights",
    "keep_count",
    "kept_examples",
    "label_joint",
    "lost_classes",
    "noisy_log_probs",
    "normalised_cross_entropy",
    "prior_cross_entropy",
    "reverse_cross_entropy",
    "reweighted_cross_entropy",
    "self_paced_loss",
    "small_loss",
    "soft_cross_entropy",
    "squared_error",
    "transition_nll",
    "truncated_gce",
    "weighted_mean",
]
