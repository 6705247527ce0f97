"""What only the benchmark knows of a noisy data set; oracles are given it, methods never."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bltm.core.errors import InputError
from bltm.core.records import FloatArray, IntArray, NoisyData
from bltm.noise.record import NoisyLabels


@dataclass(frozen=True, eq=False)
class Truth:
    """The right labels of a training set, and how its labels were made wrong.

    Attributes
    ----------
    clean
        Right labels as codes ``0..C-1``, shape (N,); position n is that of the training source.
    noise
        What the noise model handed back for these examples; None for noise that people made.
    counted
        T as counted on labels that people gave, shape (C, C); None where a noise model made them.

    Examples
    --------
    >>> from bltm.noise import make_noise
    >>> clean = np.arange(40) % 4
    >>> truth = Truth(clean, make_noise(None, clean, "pair", 0.2, seed=0))
    >>> truth.T[0].tolist()
    [0.8, 0.2, 0.0, 0.0]
    """

    clean: IntArray = field(repr=False)
    noise: NoisyLabels | None = field(default=None, repr=False)
    counted: FloatArray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.noise is not None and len(self.noise) != len(self.clean):
            raise InputError(
                "truth", f"has {len(self.clean)} right labels and {len(self.noise)} noisy ones"
            )

    @property
    def T(self) -> FloatArray:
        """Return the class-dependent matrix: the noise model's, or counted where people erred."""
        return self.known_noise.T if self.counted is None else self.counted

    @property
    def known_noise(self) -> NoisyLabels:
        """Return the record of the noise, where there is one."""
        if self.noise is None:
            raise InputError(
                "truth",
                "says nothing of T(x): the labels were not made wrong by a noise model",
                "Leave the oracle of T(x) out where the noise is real.",
            )
        return self.noise

    def noise_of(self, data: NoisyData) -> NoisyLabels:
        """Return the record of the noise after checking that it speaks of these examples."""
        noise = self.known_noise
        if not np.array_equal(noise.y_noisy, data.labels):
            raise InputError(
                "truth",
                "its noisy labels are not those of the training examples",
                "Give the examples in the order in which noise was made, and all classes.",
            )
        return noise
