"""From raw sources to network inputs: learned on training rows, applied to anything alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from bltm.core.errors import InputError
from bltm.core.records import Examples
from bltm.data.encode_arrays import ArrayEncoder, fit_array
from bltm.data.encode_images import ImageEncoder, ImageSize, fit_images
from bltm.data.encode_tables import TableEncoder, fit_table
from bltm.data.examples import MEMORY_BUDGET
from bltm.data.source import Source


class Encoder(Protocol):
    """What was learned about the inputs, and how it is applied."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one network input."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the inputs, in plain words."""

    def encode(
        self, source: Source, *, budget: int = MEMORY_BUDGET, workers: int | None = None
    ) -> Examples:
        """Return the inputs of a source, ready for a network, in the source's order."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object from which ``encoder_from_json`` makes an equal encoder."""


def fit_encoder(
    source: Source,
    rows: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    image_size: ImageSize = None,
    *,
    budget: int = MEMORY_BUDGET,
) -> Encoder:
    """Learn an encoder from rows of a source.

    Parameters
    ----------
    source
        The raw examples.
    rows
        The rows to learn from, in the order in which sums are taken; all of them by default.
    weights
        Weight of each of these rows; one by default. Rows of weight zero have no influence.
    image_size
        Side of the images, or (height, width). By default the median size of the images, with
        a short side of at most 64 pixels.
    budget
        Bytes up to which images from files and torch data sets are held in memory.

    Examples
    --------
    >>> from bltm.data import as_source
    >>> encoder = fit_encoder(as_source(np.array([[0.0], [2.0]])))
    >>> next(iter(encoder.encode(as_source(np.array([[4.0]]))).values.tolist()))
    [3.0]
    """
    index = np.arange(len(source)) if rows is None else np.asarray(rows, dtype=np.int64)
    weight = np.ones(len(index)) if weights is None else np.asarray(weights, dtype=np.float64)
    index, weight = index[weight > 0], weight[weight > 0]
    if len(index) == 0:
        raise InputError("X", "has no examples to learn from", "Give at least one.")
    if source.kind == "table":
        return fit_table(source, index, weight)
    if source.kind == "dataset":
        from bltm.data.torch_items import item_shape

        vectors = len(item_shape(source.inputs)) == 1
    else:
        vectors = source.kind == "array"
    if vectors:
        return fit_array(source, index, weight, budget)
    return fit_images(source, index, weight, image_size, budget)


def encoder_from_json(value: Mapping[str, Any]) -> Encoder:
    """Return the encoder that ``to_json`` described."""
    kinds: dict[str, Any] = {
        "array": ArrayEncoder.from_json,
        "images": ImageEncoder.from_json,
        "table": TableEncoder.from_json,
    }
    kind = value.get("encoder")
    if kind not in kinds:
        raise InputError("encoder", f"is of the unknown kind {kind!r}", f"Known: {list(kinds)}.")
    made: Encoder = kinds[kind]({k: v for k, v in value.items() if k != "encoder"})
    return made
