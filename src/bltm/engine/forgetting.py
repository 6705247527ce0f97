"""How much of each batch a method leaves out, from the share of wrong labels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from bltm.core.errors import InputError
from bltm.engine.batches import Moment
from bltm.engine.job import Job
from bltm.losses.small_loss import FORGET_MODES, forget_rate

RAMPS = {"default": 0.5, "paper": 0.05}
"""Share of the training over which the forget rate rises, for each preset.

It is 10 of 200 epochs in the papers. In a training of a few epochs that is over before the network
knows all classes, and what it would then leave out are the classes that it has yet to learn.
"""


@dataclass(frozen=True)
class Forgetting:
    """The share of a batch that is kept at a moment of training; see :func:`forget_rate`.

    Attributes
    ----------
    noise_rate
        The share of wrong labels, which is left out in the end.
    ramp
        Share of the epochs over which the forget rate rises.
    exponent
        Of the rise.
    mode
        "paper", or "code" for the authors' table, whose loop starts with entry 1.

    Examples
    --------
    >>> forgetting = Forgetting(noise_rate=0.4, ramp=0.05)
    >>> [forgetting.keep(Moment(epoch, 200)) for epoch in (0, 5, 10, 199)]
    [1.0, 0.8, 0.6, 0.6]
    """

    noise_rate: float
    ramp: float
    exponent: float = 1.0
    mode: str = "paper"

    def __post_init__(self) -> None:
        check_share("ramp", self.ramp)
        if not 0.0 < self.exponent < math.inf:
            raise InputError("exponent", f"must be above 0 and finite, got {self.exponent}")
        if self.mode not in FORGET_MODES:
            raise InputError(
                "forget", f"unknown: {self.mode!r}", f"Use one of {', '.join(FORGET_MODES)}."
            )

    def keep(self, moment: Moment) -> float:
        """Return the share of a batch that is kept."""
        epoch = moment.epoch + (1 if self.mode == "code" else 0)
        ramp = self.ramp * moment.epochs
        return 1.0 - forget_rate(epoch, self.noise_rate, ramp, self.exponent, self.mode)


def trusted_mask(job: Job) -> dict[str, torch.Tensor]:
    """Return the mask of trusted labels as an extra of the batches, where there are any."""
    return {"trusted": torch.from_numpy(job.data.trusted)} if job.data.trusted.any() else {}


def check_share(argument: str, value: float) -> None:
    """Refuse what is no share of the training."""
    if not 0.0 <= value <= 1.0:
        raise InputError(argument, f"must be a share of the training, 0 to 1, got {value}")
