"""Published values, against numbers copied by hand from the paper."""

import pytest

from bltm.methods.registry import METHODS
from bltm.report.paper_values import (
    ABLATION,
    ACCURACY,
    DISTILLATION,
    RATES,
    SETUP,
    Distillation,
    Published,
    published_accuracy,
)


@pytest.mark.parametrize(
    ("data", "method", "rate", "mean", "std"),
    [
        ("fashion-mnist", "cross-entropy", 0.1, 88.65, 0.45),
        ("fashion-mnist", "coteaching-plus", 0.5, 63.49, 2.94),
        ("fashion-mnist", "joint", 0.3, 72.73, 2.44),
        ("fashion-mnist", "bltm-v", 0.5, 76.89, 4.26),
        ("fashion-mnist", "dividemix", 0.2, 95.92, 0.73),
        ("cifar10", "cross-entropy", 0.4, 58.63, 4.92),
        ("cifar10", "forward", 0.2, 70.98, 0.32),
        ("cifar10", "ptd", 0.3, 75.42, 1.33),
        ("cifar10", "bltm", 0.1, 81.73, 0.56),
        ("cifar10", "dividemix", 0.1, 83.31, 0.23),
        ("svhn", "apl", 0.1, 71.78, 0.76),
        ("svhn", "t-revision", 0.5, 67.64, 2.57),
        ("svhn", "bltm-v", 0.3, 94.69, 0.24),
        ("svhn", "dividemix", 0.5, 74.33, 4.07),
        ("clothing1m", "cross-entropy", None, 68.88, None),
        ("clothing1m", "ptd-v", None, 70.26, None),
        ("clothing1m", "bltm-v", None, 73.39, None),
    ],
)
def test_accuracy(
    data: str, method: str, rate: float | None, mean: float, std: float | None
) -> None:
    assert published_accuracy(data, method, rate) == Published(mean, std)


def test_tables_have_the_paper_s_methods_under_our_names() -> None:
    for data in ("fashion-mnist", "cifar10", "svhn"):
        assert set(ACCURACY[data]) == set(METHODS) - {"ptd-v", "bltm+"}
        assert all(tuple(by_rate) == RATES for by_rate in ACCURACY[data].values())
    missing = {"gce", "apl", "s2e", "dividemix", "bltm+"}
    assert set(ACCURACY["clothing1m"]) == set(METHODS) - missing
    assert set(SETUP) == set(ACCURACY)


def test_best_values_are_where_the_paper_has_them() -> None:
    for data, rate in ((data, rate) for data in ("fashion-mnist", "svhn") for rate in RATES):
        table = {m: values[rate].mean for m, values in ACCURACY[data].items() if m != "dividemix"}
        assert max(table, key=lambda m: table[m]) == "bltm-v"


def test_appendix() -> None:
    assert DISTILLATION["cifar10"][0.3, 0.3] == Distillation(0.96, 17_673)
    assert DISTILLATION["cifar10"][0.5, 0.5] == Distillation(0.98, 5_098)
    assert len(DISTILLATION["cifar10"]) == 6
    assert ABLATION["cifar10"]["collected-only"] == {0.1: 74.56, 0.3: 67.42}
    assert ABLATION["clothing1m"]["relabelled"] == {None: 64.98}
    for data, by_variant in ABLATION.items():
        for rate, value in by_variant["bltm-v"].items():
            assert published_accuracy(data, "bltm-v", rate) == Published(
                value, ACCURACY[data]["bltm-v"][rate].std
            )
