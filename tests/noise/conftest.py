"""Data with known clean labels: scans of digits on the 0..255 scale, and posteriors for them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from bltm.noise import NoisyLabels, make_noise


@dataclass(frozen=True)
class Clean:
    x: NDArray[Any]
    y: NDArray[np.int64]
    eta: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.y)


@pytest.fixture(scope="session")
def clean() -> Clean:
    """Return 5391 images: each digit three times, the copies with jittered grey values."""
    rng = np.random.default_rng(0)
    digits = load_digits()
    images = np.tile(digits.images * 255 / 16, (3, 1, 1))
    images = np.clip(np.round(images + rng.normal(0, 20, images.shape)), 0, 255).astype(np.uint8)
    y = np.tile(digits.target.astype(np.int64), 3)
    scores = rng.normal(size=(len(y), 10))
    scores[np.arange(len(y)), y] += 3.0
    eta = np.exp(scores)
    return Clean(images, y, eta / eta.sum(axis=1, keepdims=True))


MATRIX = np.full((10, 10), 0.02)
np.fill_diagonal(MATRIX, 0.8)
MATRIX[:, 0] += 0.02
MATRIX[3] = np.eye(10)[3]

INSTANCE_MODELS: dict[str, dict[str, Any]] = {
    "instance-raw255": {"model": "instance", "rate": 0.3},
    "instance-std_unit": {"model": "instance", "rate": 0.3, "feature_mode": "std_unit"},
    "instance-shared": {"model": "instance", "rate": 0.2, "shared_w": True, "rho_max": 1.0},
    "pmd-I": {"model": "pmd", "rate": 0.35, "kind": "I"},
    "pmd-II": {"model": "pmd", "rate": 0.35, "kind": "II", "scale": "tau_mul"},
    "pmd-III": {"model": "pmd", "rate": 0.7, "kind": "III"},
}
CLASS_MODELS: dict[str, dict[str, Any]] = {
    "symmetric": {"model": "symmetric", "rate": 0.4},
    "symmetric-inclusive": {"model": "symmetric", "rate": 0.4, "inclusive": True},
    "symmetric-exact": {"model": "symmetric", "rate": 0.4, "draws": "exact"},
    "pair": {"model": "pair", "rate": 0.45},
    "cifar10": {"model": "asymmetric", "rate": 0.4, "mapping": "cifar10"},
    "own-map": {"model": "asymmetric", "rate": 0.3, "mapping": {0: 1, 1: 2, 2: 0}},
    "matrix": {"model": "matrix", "rate": None, "T": MATRIX / MATRIX.sum(1, keepdims=True)},
}
ALL_MODELS = INSTANCE_MODELS | CLASS_MODELS


@pytest.fixture(scope="session")
def noise_of(clean: Clean) -> Any:
    """Return a function from the name of a case, and a seed, to its noise."""
    made: dict[tuple[str, int], NoisyLabels] = {}

    def make(case: str, seed: int = 0, fresh: bool = False) -> NoisyLabels:
        if fresh or (case, seed) not in made:
            options = dict(ALL_MODELS[case])
            if options["model"] == "pmd":
                options["eta"] = clean.eta
            made[case, seed] = make_noise(clean.x, clean.y, seed=seed, **options)
        return made[case, seed]

    return make


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, cases in [
        ("case", ALL_MODELS),
        ("instance_case", INSTANCE_MODELS),
        ("class_case", CLASS_MODELS),
    ]:
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, list(cases))
