"""Transition matrices without a network: counted, read off at anchors, revised, inverted.

The revision is a torch module and is imported from its own file: what only counts needs no torch.
"""

from bltm.transition.anchors import anchor_indices, anchor_transition
from bltm.transition.counting import class_transition, confident_joint, counted_transition
from bltm.transition.inversion import bayes_posterior
from bltm.transition.surest import surest_transition

__all__ = [
    "anchor_indices",
    "anchor_transition",
    "bayes_posterior",
    "class_transition",
    "confident_joint",
    "surest_transition",
    "counted_transition",
]
