"""Transition matrices without a network: counted, revised, inverted."""

from bltm.transition.counting import class_transition, confident_joint, counted_transition
from bltm.transition.inversion import bayes_posterior
from bltm.transition.revision import Revision

__all__ = [
    "Revision",
    "bayes_posterior",
    "class_transition",
    "confident_joint",
    "counted_transition",
]
