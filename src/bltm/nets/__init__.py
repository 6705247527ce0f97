"""Networks: MLP, compact convolutional net, ResNets, and the transition network."""

from bltm.nets.base import Network
from bltm.nets.compact import CompactNet
from bltm.nets.heads import DenseHead, PartsHead
from bltm.nets.mlp import MLP
from bltm.nets.registry import NETS, make_net, make_trunk, net_name
from bltm.nets.resnet import ResNet
from bltm.nets.transition import TransitionNetwork, make_transition_network
from bltm.nets.weights import load_weights

__all__ = [
    "MLP",
    "NETS",
    "CompactNet",
    "DenseHead",
    "Network",
    "PartsHead",
    "ResNet",
    "TransitionNetwork",
    "load_weights",
    "make_net",
    "make_transition_network",
    "make_trunk",
    "net_name",
]
