"""The published values: tables 1 to 4 and the appendix of Yang et al., ICML 2022.

Accuracies are percentages. They come from ResNets, full data sets and GPU schedules; what was
measured at a smaller scale stands beside them, and is not comparable in level.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A published accuracy in percent; ``std`` is None where the paper gives none."""

    mean: float
    std: float | None = None


@dataclass(frozen=True)
class Setup:
    """What the paper trained with: the network and the number of training images."""

    net: str
    images: int


@dataclass(frozen=True)
class Distillation:
    """Quality of the collected ("distilled") examples: share of right labels, and their number."""

    right: float
    count: int


SETUP = {
    "fashion-mnist": Setup("ResNet-18", 60_000),
    "cifar10": Setup("ResNet-34", 50_000),
    "svhn": Setup("ResNet-34", 73_257),
    "clothing1m": Setup("ResNet-50, pretrained on ImageNet", 1_000_000),
}
RATES = (0.1, 0.2, 0.3, 0.4, 0.5)
REPETITIONS = 5

# Mean and standard deviation at noise rates of 10, 20, 30, 40 and 50 %. The line of DivideMix is
# from the appendix, the others are from tables 1 to 3.
_FASHION_MNIST = """
cross-entropy     88.65 0.45  88.31 0.37  85.22 0.56  76.56 2.50  67.42 3.91
gce               90.86 0.38  88.59 0.26  86.64 0.76  76.93 1.64  66.69 1.07
apl               86.46 0.27  85.32 0.88  85.59 0.85  74.66 2.77  62.82 0.44
decoupling        89.83 0.45  86.29 1.13  86.01 1.01  78.78 0.53  67.33 1.33
mentornet         90.35 0.64  87.92 0.83  87.24 0.99  79.01 2.30  66.44 2.97
coteaching        90.65 0.58  88.77 0.41  86.98 0.67  78.92 1.36  67.66 2.42
coteaching-plus   90.47 0.98  89.15 1.77  86.15 1.04  79.23 1.30  63.49 2.94
joint             80.19 0.99  78.46 1.24  72.73 2.44  65.93 2.08  50.93 3.52
dmi               91.58 0.46  90.33 0.66  85.96 1.52  77.77 2.15  68.02 1.59
forward           89.65 0.24  88.61 0.77  85.01 0.43  78.59 0.38  67.11 1.46
reweight          90.33 0.27  88.81 0.44  84.93 0.42  76.07 1.93  67.66 1.65
s2e               91.04 0.92  89.93 1.08  86.77 1.15  76.12 1.21  70.24 2.64
t-revision        91.36 0.59  90.24 1.01  85.59 1.77  78.24 1.12  69.04 2.92
ptd               92.03 0.33  90.78 0.64  87.86 0.78  79.46 1.58  73.38 2.25
bltm              96.06 0.71  94.97 0.33  91.47 1.36  82.88 2.72  76.35 3.79
bltm-v            96.93 0.31  95.55 0.59  92.24 1.87  83.43 1.72  76.89 4.26
dividemix         96.37 0.72  95.92 0.73  90.37 0.83  80.92 2.32  74.63 3.76
"""
_CIFAR10 = """
cross-entropy     73.54 0.14  71.49 1.35  67.52 1.68  58.63 4.92  51.54 2.70
gce               74.24 0.89  72.11 0.43  69.31 0.18  56.86 0.92  53.44 1.28
apl               71.12 0.19  68.89 0.27  65.17 0.35  53.22 2.21  47.31 1.41
decoupling        73.91 0.37  74.23 1.18  70.85 1.88  54.73 1.02  52.04 2.09
mentornet         74.93 1.37  73.59 1.29  72.32 1.04  57.85 1.88  52.96 1.98
coteaching        75.49 0.47  75.93 0.87  74.86 0.42  59.07 1.03  55.62 3.93
coteaching-plus   74.77 0.16  75.14 0.61  71.92 2.13  59.15 0.87  53.02 3.34
joint             75.97 0.98  76.45 0.45  75.93 1.65  63.22 5.37  55.84 3.25
dmi               74.65 0.13  73.49 0.88  73.93 0.34  60.22 3.47  54.35 2.28
forward           72.35 0.91  70.98 0.32  66.53 1.96  58.63 1.25  52.33 1.65
reweight          73.55 0.32  71.49 0.57  68.76 0.37  60.32 1.03  52.03 1.70
s2e               75.93 1.01  75.53 0.32  71.21 2.51  64.62 0.68  56.03 1.07
t-revision        74.01 0.45  73.42 0.64  71.15 0.43  59.93 1.33  55.67 2.07
ptd               76.33 0.38  76.05 1.72  75.42 1.33  65.92 2.33  56.63 1.88
bltm              81.73 0.56  80.26 0.63  77.69 1.37  71.96 2.27  59.15 3.11
bltm-v            82.16 1.01  80.37 1.98  78.82 1.07  72.93 4.00  60.33 5.29
dividemix         83.31 0.23  81.42 0.28  80.73 1.28  70.29 1.97  57.11 3.64
"""
_SVHN = """
cross-entropy     90.39 0.13  89.04 1.32  85.65 1.84  79.94 2.71  61.01 5.41
gce               90.82 0.15  89.35 0.94  86.43 0.63  81.66 1.58  54.77 0.25
apl               71.78 0.76  89.48 1.67  83.46 2.17  77.90 2.31  55.25 3.77
decoupling        90.55 0.83  88.74 0.77  85.03 1.63  83.36 2.73  56.76 1.87
mentornet         90.28 0.52  89.09 0.95  85.89 0.73  82.63 1.73  55.27 4.14
coteaching        91.05 0.33  89.56 1.77  87.75 1.37  84.92 1.59  59.56 2.34
coteaching-plus   92.83 0.87  90.73 1.39  86.37 1.66  75.24 3.77  54.58 3.46
joint             88.39 0.62  85.37 0.44  81.56 0.43  78.98 2.98  59.14 3.22
dmi               92.11 0.49  91.63 0.87  86.98 0.36  81.11 0.68  63.22 3.97
forward           90.01 0.78  89.77 1.54  86.70 1.44  80.24 2.77  57.57 1.45
reweight          91.06 0.19  92.01 1.04  87.55 1.71  83.79 1.11  55.08 1.25
s2e               92.70 0.51  92.02 1.54  88.77 1.77  83.06 2.19  65.39 2.77
t-revision        93.07 0.79  92.67 0.88  88.49 1.44  82.43 1.77  67.64 2.57
ptd               93.77 0.33  92.59 1.07  89.64 1.98  83.56 2.21  71.57 3.32
bltm              96.05 0.32  94.97 0.58  93.99 1.24  87.67 1.29  78.13 4.62
bltm-v            96.37 0.77  95.12 0.40  94.69 0.24  88.13 3.23  78.71 4.37
dividemix         96.02 0.45  95.73 0.48  92.07 1.47  85.69 2.47  74.33 4.07
"""

# Table 4; one run each.
_CLOTHING1M = """
cross-entropy 68.88
decoupling 54.53
mentornet 56.79
coteaching 60.15
coteaching-plus 65.15
joint 70.88
dmi 70.12
forward 69.91
reweight 70.40
t-revision 70.97
ptd 70.07
ptd-v 70.26
bltm 73.33
bltm-v 73.39
"""


def _by_rate(text: str) -> dict[str, dict[float | None, Published]]:
    table: dict[str, dict[float | None, Published]] = {}
    for line in text.split("\n")[1:-1]:
        method, *numbers = line.split()
        values = [float(number) for number in numbers]
        pairs = zip(values[::2], values[1::2], strict=True)
        table[method] = {rate: Published(*pair) for rate, pair in zip(RATES, pairs, strict=True)}
    return table


def _without_rate(text: str) -> dict[str, dict[float | None, Published]]:
    lines = (line.split() for line in text.split("\n")[1:-1])
    return {method: {None: Published(float(number))} for method, number in lines}


ACCURACY = {
    "fashion-mnist": _by_rate(_FASHION_MNIST),
    "cifar10": _by_rate(_CIFAR10),
    "svhn": _by_rate(_SVHN),
    "clothing1m": _without_rate(_CLOTHING1M),
}
"""Test accuracy by data set, method and noise rate (None for a data set with real noise)."""

DISTILLATION = {
    "cifar10": {
        (0.1, 0.3): Distillation(0.98, 27_983),
        (0.3, 0.3): Distillation(0.96, 17_673),
        (0.5, 0.3): Distillation(0.94, 8_029),
        (0.1, 0.5): Distillation(0.99, 19_983),
        (0.3, 0.5): Distillation(0.99, 10_673),
        (0.5, 0.5): Distillation(0.98, 5_098),
    }
}
"""Appendix A by data set and (noise rate, rho_max); of 50,000 examples."""

ABLATION: dict[str, dict[str, dict[float | None, float]]] = {
    "cifar10": {
        "collected-only": {0.1: 74.56, 0.3: 67.42},
        "relabelled": {0.1: 76.68, 0.3: 70.73},
        "bltm-v": {0.1: 82.16, 0.3: 78.82},
    },
    "clothing1m": {
        "collected-only": {None: 62.37},
        "relabelled": {None: 64.98},
        "bltm-v": {None: 73.39},
    },
}
"""Appendix: the classifier trained on collected examples only; on the noisy data as that classifier
labels it; and with the transition network. Accuracy by data set, variant and noise rate."""


def published_accuracy(data: str, method: str, rate: float | None) -> Published | None:
    """Return the accuracy that the paper reports, or None where it reports none.

    Examples
    --------
    >>> published_accuracy("cifar10", "bltm-v", 0.3)
    Published(mean=78.82, std=1.07)
    >>> published_accuracy("cifar10", "ptd-v", 0.3) is None
    True
    """
    return ACCURACY.get(data, {}).get(method, {}).get(rate)
