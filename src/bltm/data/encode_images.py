"""Images, in memory or in files: one size, and each channel normalised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bltm.core.errors import InputError
from bltm.data.examples import MEMORY_BUDGET, ImageExamples, LazyExamples, normaliser
from bltm.data.pixels import channel_moments, compact, resized
from bltm.data.source import Source

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ImageSize = int | tuple[int, int] | None

# The short side of images from files, unless the user says otherwise.
SHORT_SIDE = 64
# Sizes are surveyed on this many files; sets that do not fit in memory are normalised by as many.
SAMPLED_IMAGES = 2_000


@dataclass(frozen=True)
class _Form:
    """What images are brought to; see ``ImageEncoder``."""

    size: tuple[int, int]
    channels: int
    short_side: int | None = None

    def of(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """Return images in memory at this size."""
        if self.short_side is not None:
            from bltm.data.decode import centre

            box = centre(pixels.shape[1], pixels.shape[2], self.size, self.short_side)
            left, top, right, bottom = (round(edge) for edge in box)
            pixels = pixels[:, top:bottom, left:right]
        return resized(pixels, self.size)


@dataclass(frozen=True)
class ImageEncoder:
    """Brings images to one size and number of channels, and normalises each channel.

    Attributes
    ----------
    size
        Height and width.
    mean, std
        Of each channel in training, in the units of the training pixels.
    white
        The brightest value in those units: 255, or 1 for pixels that were fractions.
    resize
        Whether images of other sizes are accepted and resized.
    short_side
        To what the short side is scaled before the centre is cut out; None where images are
        brought to the size as a whole, whatever their proportions.
    """

    size: tuple[int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    white: float
    resize: bool
    notes: tuple[str, ...] = ()
    short_side: int | None = None

    @property
    def channels(self) -> int:
        """Return the number of channels."""
        return len(self.mean)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape ``(channels, height, width)`` of one network input."""
        return self.channels, *self.size

    def encode(
        self, source: Source, *, budget: int = MEMORY_BUDGET, workers: int | None = None
    ) -> ImageExamples | LazyExamples:
        """Return the images of a source; they are read when needed if they exceed ``budget``."""
        form = _Form(self.size, self.channels, self.short_side)
        pixels = _held(source, form, budget)
        if pixels is None:
            items = _items(source, form)
            unit = self.white / 255.0 if source.kind == "files" else 1.0
            self._check(items[0].shape)
            return LazyExamples(items, self.shape, _Ready(*self._affine(unit)), workers)
        unit = self.white / 255.0 if source.kind == "files" else 1.0
        if self.resize and pixels.shape[1:3] != self.size:
            pixels = form.of(pixels)
        self._check(pixels.shape[1:])
        values, stored = compact(pixels)
        return ImageExamples(values, *self._affine(unit * stored))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; floats survive it unchanged."""
        return {
            "encoder": "images",
            "size": list(self.size),
            "mean": list(self.mean),
            "std": list(self.std),
            "white": self.white,
            "resize": self.resize,
            "short_side": self.short_side,
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ImageEncoder:
        """Return the encoder that ``to_json`` described."""
        fields: dict[str, Any] = {k: _frozen(v) for k, v in value.items()}
        return cls(**fields)

    def _affine(self, unit: float) -> tuple[torch.Tensor, torch.Tensor]:
        mean, std = np.asarray(self.mean), np.asarray(self.std)
        return (
            torch.from_numpy((unit / std).astype(np.float32)),
            torch.from_numpy((-mean / std).astype(np.float32)),
        )

    def _check(self, shape: tuple[int, ...]) -> None:
        if tuple(shape) != (*self.size, self.channels):
            raise InputError(
                "X",
                f"has images of shape {tuple(shape)} (height, width, channels), but the model was "
                f"trained on {(*self.size, self.channels)}",
                "Bring them to that shape, or train with image_size=.",
            )


class _Ready:
    """Makes the normaliser for a device; a class, so that examples can be pickled."""

    def __init__(self, scale: torch.Tensor, shift: torch.Tensor) -> None:
        self._scale, self._shift = scale, shift

    def __call__(self, device: torch.device) -> Callable[[torch.Tensor], torch.Tensor]:
        return normaliser(self._scale, self._shift, device)


def fit_images(
    source: Source, index: IntArray, weight: FloatArray, image_size: ImageSize, budget: int
) -> ImageEncoder:
    """Choose size and channels, and learn mean and deviation of each channel from rows."""
    form, notes = _survey(source, index, image_size)
    size = form.size
    pixels = _held(source, form, budget)
    if pixels is None:
        chosen = np.linspace(0, len(index) - 1, min(len(index), SAMPLED_IMAGES)).astype(np.int64)
        items = _items(source, form)
        pixels = np.stack([items[int(row)].numpy() for row in index[chosen]])
        index, weight = np.arange(len(chosen)), weight[chosen]
        notes.append(
            f"{len(source)} images do not fit in {budget >> 20} MiB and are read when they are "
            f"needed; means and deviations come from {len(chosen)} of them."
        )
    if pixels.shape[1:3] != size:
        pixels = resized(pixels, size)
        notes.append(f"Resized the images to {size[0]}x{size[1]} (height x width).")
    mean, std = channel_moments(pixels, index, weight)
    fractions = pixels.dtype.kind == "f" and float(pixels.max(initial=0)) <= 1.0
    return ImageEncoder(
        size=size,
        mean=tuple(mean.tolist()),
        std=tuple(std.tolist()),
        white=1.0 if fractions else 255.0,
        resize=source.kind == "files" or image_size is not None,
        notes=tuple(notes),
        short_side=form.short_side,
    )


def _survey(source: Source, index: IntArray, image_size: ImageSize) -> tuple[_Form, list[str]]:
    """Return what images are brought to, and notes."""
    wanted = _pair(image_size)
    if source.kind == "images":
        return _Form(wanted or tuple(source.inputs.shape[1:3]), source.inputs.shape[3]), []
    if source.kind == "dataset":
        from bltm.data.torch_items import item_shape

        height, width, channels = item_shape(source.inputs)
        return _Form(wanted or (height, width), channels), []
    return _survey_files(source, index, wanted)


def _survey_files(
    source: Source, index: IntArray, wanted: tuple[int, int] | None
) -> tuple[_Form, list[str]]:
    from bltm.data.decode import attempt, measure, raise_unreadable

    rows = index[np.linspace(0, len(index) - 1, min(len(index), SAMPLED_IMAGES)).astype(np.int64)]
    found: dict[int, tuple[int, int, bool]] = {}

    def look(position: int) -> None:
        found[position] = measure(source.inputs.path(int(rows[position])))

    problems = attempt(look, len(rows))
    if not found:
        raise_unreadable(source.take(rows).inputs, problems)
    sizes = np.array([entry[:2] for entry in found.values()])
    channels = 1 if all(entry[2] for entry in found.values()) else 3
    frame = source.inputs.frame
    if frame is not None:
        size = wanted or (frame.side, frame.side)
        short_side = round(max(size) * frame.short_side / frame.side)
        treated = f"Scaled the short side of images to {short_side} and cut out the centre."
    else:
        median = np.median(sizes, axis=0)
        factor = min(1.0, SHORT_SIDE / median.min())
        height, width = (max(1, int(side)) for side in np.rint(median * factor))
        size, short_side = wanted or (height, width), None
        low, high = sizes.min(axis=0), sizes.max(axis=0)
        treated = (
            f"Resized images of {low[0]}x{low[1]} to {high[0]}x{high[1]} (height x width) to that "
            "size, whatever their proportions."
        )
    notes = [f"Images are {'grey' if channels == 1 else 'RGB'}, {size[0]}x{size[1]} pixels."]
    if frame is not None or (sizes != size).any():
        notes.append(treated)
    return _Form(size, channels, short_side), notes


def _held(source: Source, form: _Form, budget: int) -> NDArray[Any] | None:
    """Return all pixels as one array (N, H, W, channels); None when they exceed the budget."""
    if source.kind == "images":
        return np.asarray(source.inputs)
    if source.kind == "dataset":
        from bltm.data.torch_items import in_memory

        held = in_memory(source, budget)
        return None if held is None else _held(held, form, budget)
    if source.kind == "files":
        from bltm.data.decode import decode_all

        if len(source) * form.size[0] * form.size[1] * form.channels > budget:
            return None
        if form not in source.cache:
            source.cache[form] = decode_all(
                source.inputs, form.size, form.channels, form.short_side
            )
        return np.asarray(source.cache[form])
    raise InputError("X", f"is of the kind {source.kind!r}", "The training data was images.")


def _items(source: Source, form: _Form) -> Any:
    if source.kind == "files":
        from bltm.data.decode import FileItems

        return FileItems(source.inputs, form.size, form.channels, form.short_side)
    from bltm.data.torch_items import RawItems

    return RawItems(source.inputs)


def _pair(image_size: ImageSize) -> tuple[int, int] | None:
    if image_size is None:
        return None
    pair = (image_size, image_size) if isinstance(image_size, int) else tuple(image_size)
    if len(pair) != 2 or min(pair) < 1:
        raise InputError("image_size", f"needs one or two positive sides, got {image_size}", "")
    return int(pair[0]), int(pair[1])


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
