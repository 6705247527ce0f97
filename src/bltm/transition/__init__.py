"""Transition matrices without a network: counted, read off at anchors, revised, inverted."""

from bltm.transition.anchors import anchor_indices, anchor_transition
from bltm.transition.counting import class_transition, confident_joint, counted_transition
from bltm.transition.inversion import bayes_posterior
from bltm.transition.revision import Revision

__all__ = [
    "Revision",
    "anchor_indices",
    "anchor_transition",
    "bayes_posterior",
    "class_transition",
    "confident_joint",
    "counted_transition",
]
