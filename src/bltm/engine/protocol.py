"""The common terms on which methods are compared: schedules, lengths and the budget.

The paper does not publish the schedules of its baselines. ``S100`` and ``CT200`` are those of the
methods' own papers and of the usual reproductions.
"""

from __future__ import annotations

from bltm.engine.schedule import Schedule

LENGTHS = (3, 6, 12)
"""Epochs that noisy validation chooses from, so that no method is made to memorise."""

BUDGET = 100
"""Most passes over the training data that a method may take by default, all networks counted."""

CYCLE = Schedule(
    12,
    2e-3,
    "adamw",
    "one-cycle",
    weight_decay=1e-2,
    min_steps=200,
    select="accuracy",
    lengths=LENGTHS,
)
"""The default of every method that trains a classifier on noisy labels."""

S100 = Schedule(100, 0.01, "sgd", "steps", (40, 80), weight_decay=1e-4, select="accuracy")
"""Published schedule of single networks: SGD, divided by ten at epochs 40 and 80."""

CT200 = Schedule(
    200, 1e-3, "adam", "linear", (80,), select="accuracy", late_momentum=0.1, weight_decay=0.0
)
"""Published schedule of the co-training family: Adam, linear to zero after epoch 80."""
