"""Five hundred classes: T*(x) of the examples would fill 3 GB, and never does."""

import subprocess
import sys

import pytest

CODE = """
import resource, sys, warnings
import numpy as np, torch

warnings.simplefilter("ignore")
torch.set_num_threads(1)
from bltm.methods.bltm import BLTMClassifier
from bltm.nets.heads import PartsHead

rng = np.random.default_rng(0)
labels = np.arange(3000) % 500
centres = rng.standard_normal((500, 20))
x = centres[labels] + 0.1 * rng.standard_normal((3000, 20))

def peak():
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20

before = peak()
model = BLTMClassifier(
    "mlp", epochs=1, rounds=1, folds=2, collector="covering", random_state=0, device="cpu"
).fit(x, labels)
assert isinstance(model.transition_.network.head, PartsHead)
assert model.predict_proba(x).shape == (3000, 500)
top = model.predict_transition(x[:64], rows="predicted", top_k=3)
assert top.probs.shape == (64, 3)
rows = model.predict_transition(x, rows="predicted")
np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-4)
T = model.predict_transition(x[:32])
chosen = model.predict_proba(x[:32]).argmax(axis=1)
np.testing.assert_allclose(rows[:32], T[np.arange(32), chosen], atol=1e-6)
print(round(peak() - before))
"""


@pytest.mark.slow
def test_a_fit_with_five_hundred_classes_stays_within_memory() -> None:
    result = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) < 500
