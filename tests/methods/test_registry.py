import pytest

from bltm.core.errors import InputError
from bltm.methods.bltm import BLTMClassifier
from bltm.methods.cross_entropy import CrossEntropyClassifier
from bltm.methods.registry import METHODS, make_method


def test_every_method_is_made_by_its_name() -> None:
    for name, method in METHODS.items():
        assert method.name == name
        assert make_method(name, epochs=1, random_state=0).get_params()["epochs"] == 1


def test_bltm_and_bltm_v_differ_in_the_revision() -> None:
    plain, revised = make_method("bltm"), make_method("bltm-v")
    assert isinstance(plain, BLTMClassifier)
    assert isinstance(revised, BLTMClassifier)
    assert (plain.revision, revised.revision) == (False, True)
    assert isinstance(make_method("cross-entropy"), CrossEntropyClassifier)


def test_unknown_names_and_options_are_refused() -> None:
    with pytest.raises(InputError, match="unknown: 'sgd'. Use one of cross-entropy, gce, apl"):
        make_method("sgd")
    with pytest.raises(InputError, match="cross-entropy does not take these options.*rho_max"):
        make_method("cross-entropy", rho_max=0.3)
