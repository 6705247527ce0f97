"""Label noise with known probabilities: labels, the rows they were drawn from, and a manifest.

`make_noise` makes noisy labels by the name of a model. Instance-dependent noise is Algorithm 2 of
the paper; symmetric, pair, asymmetric and matrix noise depend on the class alone; PMD noise
depends on the margin of a classifier.
"""

from bltm.noise.class_conditional import (
    asymmetric_noise,
    matrix_noise,
    pair_noise,
    symmetric_noise,
)
from bltm.noise.features import FEATURE_MODES
from bltm.noise.instance import instance_noise
from bltm.noise.matrices import (
    ASYMMETRIC_MAPS,
    map_matrix,
    pair_matrix,
    superclass_map,
    symmetric_matrix,
)
from bltm.noise.pmd import out_of_fold_posterior, pmd_noise
from bltm.noise.record import NoisyLabels
from bltm.noise.registry import NOISE_MODELS, make_noise, option_names

__all__ = [
    "ASYMMETRIC_MAPS",
    "FEATURE_MODES",
    "NOISE_MODELS",
    "NoisyLabels",
    "asymmetric_noise",
    "instance_noise",
    "make_noise",
    "map_matrix",
    "matrix_noise",
    "option_names",
    "out_of_fold_posterior",
    "pair_matrix",
    "pair_noise",
    "pmd_noise",
    "superclass_map",
    "symmetric_matrix",
    "symmetric_noise",
]
