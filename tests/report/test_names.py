"""The literal table of names says what the registries say."""

from bltm.benchmark.variants import VARIANTS
from bltm.methods.registry import METHODS
from bltm.report import names


def test_methods_and_families_are_those_of_the_registry() -> None:
    found = {name: method.family for name, method in METHODS.items()}
    assert {name: family for name, (_, family) in names.METHODS.items()} == found
    assert list(names.METHODS) == list(METHODS)


def test_titles_of_variants_are_those_of_the_registry() -> None:
    assert {name: variant.title for name, variant in VARIANTS.items()} == names.VARIANTS
    oracles = {name for name, variant in VARIANTS.items() if variant.needs_truth}
    assert {name for name in VARIANTS if names.section(name) == names.ORACLES} == oracles


def test_order_is_bounds_then_the_paper_s_then_variants_then_oracles() -> None:
    mixed = [
        "oracle-class",
        "bltm-v",
        "mine",
        "gce",
        "cross-entropy",
        "relabelled",
        "clean",
        "bltm",
    ]
    expected = ["clean", "cross-entropy", "gce", "bltm", "bltm-v", "relabelled", "mine"]
    assert sorted(mixed, key=names.order) == [*expected, "oracle-class"]
