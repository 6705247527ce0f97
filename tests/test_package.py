"""What ``import bltm`` gives, and what it costs."""

import subprocess
import sys

import pytest

import bltm
from bltm.methods.registry import METHODS, make_method


def run(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    return result.stdout.strip()


def test_public_names_are_there_and_no_others() -> None:
    classifiers = {type(make_method(name)).__name__ for name in METHODS}
    assert dir(bltm) == sorted({*classifiers, "__version__", "audit", "load", "make_method"})
    for name in dir(bltm):
        assert getattr(bltm, name) is not None
    assert bltm.BLTMClassifier.__name__ == "BLTMClassifier"
    assert callable(bltm.load)


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'bltm' has no attribute 'Classifier'"):
        _ = bltm.Classifier


def test_the_import_is_light() -> None:
    heavy = ("torch", "sklearn", "pandas", "lightning_fabric", "scipy", "numpy")
    found = run(f"import bltm, sys; print([m for m in {heavy!r} if m in sys.modules])")
    assert found == "[]"


def test_names_are_imported_on_first_use() -> None:
    code = "from bltm import *; import sys; print(BLTMClassifier.__name__, 'torch' in sys.modules)"
    assert run(code) == "BLTMClassifier True"
