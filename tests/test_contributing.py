"""The example in CONTRIBUTING.md is a method that works."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

# In a process of its own: a subclass that is defined here would stay known to the others.
USE = """
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_iris
import bltm

X, y = load_iris(return_X_y=True)
noisy = np.where(np.arange(len(y)) % 7 == 0, (y + 1) % 3, y)
model = clone(ConfidencePenaltyClassifier(strength=0.2, random_state=0)).fit(X, noisy)
assert [stage.stage for stage in model.plan(100)] == ["penalised"]
assert model.score(X, y) > 0.9, model.score(X, y)
wrong = model.suspicion_.values[noisy != y].mean()
assert wrong > model.suspicion_.values[noisy == y].mean() + 0.3
free = clone(model).set_params(strength=0.0).fit(X, noisy)
assert model.predict_proba(X).max(axis=1).mean() < free.predict_proba(X).max(axis=1).mean()
model.save("model")
assert (bltm.load("model").predict_proba(X) == model.predict_proba(X)).all()
"""


def test_the_example_of_a_method_works(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", CONTRIBUTING, flags=re.DOTALL)
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code + USE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
