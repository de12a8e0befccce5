"""Transforms that move pixels: resizing, cropping, padding, flips, rotation, erasing."""

from __future__ import annotations

import math
from typing import Any, Final, cast

import numpy as np

from ...core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ..checks import as_choice, as_count, as_pair, as_probability, as_range, as_real
from ..streams import chance, integer, uniform, uniforms
from .base import Occasional, Pixels, Transform, full_value, like
from .resample import INTERPOLATIONS, resize, sample

_PAD_MODES: Final = ("constant", "edge", "reflect", "symmetric")
_ATTEMPTS: Final = 10  # to find a random box that fits, before a central one is taken


class Resize(Transform):
    """Resize to (height, width); one number is the length of the shorter side.

    `interpolation` is "bilinear", "bicubic" or "nearest"; `antialias` widens the filter when the
    image shrinks.
    """

    def __init__(
        self, size: int | tuple[int, int], interpolation: str = "bilinear", antialias: bool = True
    ) -> None:
        self.size = as_pair(self, "size", size)
        self._shorter = not isinstance(size, tuple | list)
        self._interpolation = as_choice(self, "interpolation", interpolation, INTERPOLATIONS)
        self._antialias = antialias

    def apply(self, pixels: Pixels) -> Pixels:
        """Return the resized pixels."""
        check_not_empty(self, pixels)
        return resize(pixels, *self._target(pixels), self._interpolation, self._antialias)

    def _target(self, pixels: Pixels) -> tuple[int, int]:
        if not self._shorter:
            return self.size
        height, width = pixels.shape[:2]
        short = self.size[0]
        if height <= width:
            return short, max(1, int(short * width / height))
        return max(1, int(short * height / width)), short


class Pad(Transform):
    """Add a margin: one number, (horizontal, vertical), or (left, top, right, bottom).

    `mode` "constant" fills with `fill`, "edge" repeats the border, "reflect" and "symmetric"
    mirror the image without and with its border.
    """

    def __init__(self, padding: Any, fill: float = 0, mode: str = "constant") -> None:
        self._margins = _margins(self, padding)
        self._fill = as_real(self, "fill", fill)
        self._mode = as_choice(self, "mode", mode, _PAD_MODES)

    def apply(self, pixels: Pixels) -> Pixels:
        """Return the pixels with their margin."""
        return padded(self, pixels, self._margins, self._fill, self._mode)


class CenterCrop(Transform):
    """Cut out the middle of the given size; what is missing is filled with zeros."""

    def __init__(self, size: int | tuple[int, int]) -> None:
        self.size = as_pair(self, "size", size)

    def apply(self, pixels: Pixels) -> Pixels:
        """Return the middle."""
        pixels = grown(self, pixels, self.size, 0.0, "constant")
        top, left = ((have - want) // 2 for have, want in _sizes(pixels, self.size))
        return pixels[top : top + self.size[0], left : left + self.size[1]]


class RandomCrop(Transform):
    """Cut out a part of the given size at a random place, after padding if it is asked for."""

    def __init__(
        self,
        size: int | tuple[int, int],
        padding: Any = None,
        *,
        pad_if_needed: bool = False,
        fill: float = 0,
        mode: str = "constant",
    ) -> None:
        self.size = as_pair(self, "size", size)
        self._margins = None if padding is None else _margins(self, padding)
        self._grow = pad_if_needed
        self._fill = as_real(self, "fill", fill)
        self._mode = as_choice(self, "mode", mode, _PAD_MODES)

    def apply(self, pixels: Pixels) -> Pixels:
        """Return a part of the pixels."""
        if self._margins is not None:
            pixels = padded(self, pixels, self._margins, self._fill, self._mode)
        if self._grow:
            pixels = grown(self, pixels, self.size, self._fill, self._mode)
        spare = [have - want for have, want in _sizes(pixels, self.size)]
        if min(spare) < 0:
            raise ShapeError(
                f"RandomCrop: size {self.size} does not fit into an image of {pixels.shape[:2]}; "
                "use pad_if_needed=True, or Resize before"
            )
        top, left = (integer(0, n + 1) for n in spare)
        return pixels[top : top + self.size[0], left : left + self.size[1]]


class RandomResizedCrop(Transform):
    """Cut out a random part and resize it.

    The part has a share of the area in `scale`, and a ratio of width to height in `ratio`.
    """

    def __init__(
        self,
        size: int | tuple[int, int],
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        interpolation: str = "bilinear",
        antialias: bool = True,
    ) -> None:
        self.size = as_pair(self, "size", size)
        self._scale, self._ratio = _area_ranges(self, scale, ratio)
        self._interpolation = as_choice(self, "interpolation", interpolation, INTERPOLATIONS)
        self._antialias = antialias

    def apply(self, pixels: Pixels) -> Pixels:
        """Return a part of the pixels, resized."""
        check_not_empty(self, pixels)
        top, left, height, width = self._box(*pixels.shape[:2])
        part = pixels[top : top + height, left : left + width]
        return resize(part, *self.size, self._interpolation, self._antialias)

    def _box(self, height: int, width: int) -> tuple[int, int, int, int]:
        box = random_box(height, width, self._scale, self._ratio)
        if box is not None:
            return box
        # No box was found in an extreme format: the largest central one of an allowed ratio.
        ratio = min(max(width / height, self._ratio[0]), self._ratio[1])
        h = min(height, max(1, round(width / ratio)))
        w = min(width, max(1, round(height * ratio)))
        return (height - h) // 2, (width - w) // 2, h, w


class RandomHorizontalFlip(Occasional):
    """Mirror left and right with probability `p`."""

    def change(self, pixels: Pixels) -> Pixels:
        """Return the pixels mirrored."""
        return pixels[:, ::-1]


class RandomVerticalFlip(Occasional):
    """Turn upside down with probability `p`."""

    def change(self, pixels: Pixels) -> Pixels:
        """Return the pixels mirrored."""
        return pixels[::-1]


class RandomRotation(Transform):
    """Rotate counter-clockwise about the centre by an angle from (-degrees, degrees) or a pair.

    `interpolation` is "bilinear" or "nearest"; `fill` is the value of the corners; `expand`
    enlarges the image so that nothing is cut off.
    """

    def __init__(
        self,
        degrees: float | tuple[float, float],
        interpolation: str = "bilinear",
        *,
        expand: bool = False,
        fill: float = 0,
    ) -> None:
        self.degrees = as_range(self, "degrees", degrees)
        self._interpolation = as_choice(
            self, "interpolation", interpolation, ("bilinear", "nearest")
        )
        self._expand = expand
        self._fill = as_real(self, "fill", fill)

    def apply(self, pixels: Pixels) -> Pixels:
        """Return the rotated pixels."""
        angle = uniform(*self.degrees)
        return rotated(pixels, angle, self._interpolation, self._expand, self._fill)


def rotated(
    pixels: Pixels, degrees: float, interpolation: str, expand: bool, fill: float
) -> Pixels:
    """Return pixels rotated counter-clockwise about their centre."""
    sine, cosine = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    height, width = pixels.shape[:2]
    out_height, out_width = height, width
    if expand:
        # Rounding first, so that 90 degrees is not one pixel more by the last bit of the cosine.
        out_height = math.ceil(round(abs(height * cosine) + abs(width * sine), 6))
        out_width = math.ceil(round(abs(width * cosine) + abs(height * sine), 6))
    y = (np.arange(out_height) - (out_height - 1) / 2)[:, None]
    x = (np.arange(out_width) - (out_width - 1) / 2)[None, :]
    # Where each new pixel comes from: the rotation backwards, with y pointing down.
    source_x = cosine * x - sine * y + (width - 1) / 2
    source_y = sine * x + cosine * y + (height - 1) / 2
    return sample(pixels, source_y, source_x, interpolation, fill)


class RandomErasing(Transform):
    """Overwrite a random rectangle with probability `p` (Zhong et al. 2017).

    `value` is a number, one for each channel, or "random" for noise; `scale` and `ratio` are the
    ranges of the rectangle's share of the area and of its height to width.
    """

    def __init__(
        self,
        p: float = 0.5,
        scale: tuple[float, float] = (0.02, 0.33),
        ratio: tuple[float, float] = (0.3, 3.3),
        value: Any = 0,
    ) -> None:
        self.p = as_probability(self, "p", p)
        self._scale, self._ratio = _area_ranges(self, scale, ratio)
        self._value = value if value == "random" else _colour(self, value)

    def apply(self, pixels: Pixels) -> Pixels:
        """Return the pixels with a rectangle erased."""
        if not chance(self.p):
            return pixels
        box = random_box(pixels.shape[0], pixels.shape[1], self._scale, self._ratio)
        if box is None:
            return pixels
        top, left, height, width = box
        erased = pixels.copy()
        erased[top : top + height, left : left + width] = self._filling(pixels, height, width)
        return erased

    def _filling(self, pixels: Pixels, height: int, width: int) -> Any:
        if isinstance(self._value, str):
            noise = uniforms((height, width, pixels.shape[2])) * full_value(pixels)
            return like(pixels, noise)
        if self._value.size not in (1, pixels.shape[2]):
            raise ShapeError(
                f"RandomErasing: value has {self._value.size} entries for an image of "
                f"{pixels.shape[2]} channel(s)"
            )
        return like(pixels, self._value)


# -- helpers ---------------------------------------------------------------------------------------


def random_box(
    height: int, width: int, scale: tuple[float, float], ratio: tuple[float, float]
) -> tuple[int, int, int, int] | None:
    """Return (top, left, height, width) of a random box inside an image, or None if none fits.

    Ratios (width to height) are drawn on a logarithmic scale, so that 1:2 is as likely as 2:1.
    """
    logs = math.log(ratio[0]), math.log(ratio[1])
    for _ in range(_ATTEMPTS):
        area = height * width * uniform(*scale)
        aspect = math.exp(uniform(*logs))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return integer(0, height - h + 1), integer(0, width - w + 1), h, w
    return None


def padded(
    owner: object, pixels: Pixels, margins: tuple[int, int, int, int], fill: float, mode: str
) -> Pixels:
    """Return pixels with margins (left, top, right, bottom)."""
    left, top, right, bottom = margins
    widths = ((top, bottom), (left, right), (0, 0))
    if mode == "constant":
        filling = like(pixels, np.asarray(fill))
        return np.pad(pixels, widths, constant_values=filling)
    check_not_empty(owner, pixels)
    extended: Pixels = np.pad(pixels, widths, mode=cast(Any, mode))  # one of _PAD_MODES
    return extended


def grown(owner: object, pixels: Pixels, size: tuple[int, int], fill: float, mode: str) -> Pixels:
    """Return pixels padded on all sides so that a part of the given size fits."""
    lack_y, lack_x = (max(0, want - have) for have, want in _sizes(pixels, size))
    if not lack_y and not lack_x:
        return pixels
    margins = (lack_x // 2, lack_y // 2, lack_x - lack_x // 2, lack_y - lack_y // 2)
    return padded(owner, pixels, margins, fill, mode)


def _sizes(pixels: Pixels, size: tuple[int, int]) -> list[tuple[int, int]]:
    """Return (what is there, what is wanted) for height and width."""
    return [(pixels.shape[0], size[0]), (pixels.shape[1], size[1])]


def check_not_empty(owner: object, pixels: Pixels) -> None:
    """Raise if an image has no pixels."""
    if 0 in pixels.shape[:2]:
        raise ShapeError(f"{type(owner).__name__}: the image has no pixels: {pixels.shape[:2]}")


def _margins(owner: object, padding: Any) -> tuple[int, int, int, int]:
    """Return margins as (left, top, right, bottom)."""
    entries = list(padding) if isinstance(padding, tuple | list) else [padding]
    if len(entries) not in (1, 2, 4):
        raise ArgumentError(
            f"{type(owner).__name__}: padding must be one number, (horizontal, vertical) or (left, "
            f"top, right, bottom). Received: {padding!r}"
        )
    left, top, right, bottom = (
        as_count(owner, "padding", entry, 0) for entry in entries * (4 // len(entries))
    )
    return left, top, right, bottom


def _area_ranges(
    owner: object, scale: Any, ratio: Any
) -> tuple[tuple[float, float], tuple[float, float]]:
    for name, value in (("scale", scale), ("ratio", ratio)):
        if not isinstance(value, tuple | list):
            raise ArgumentTypeError(
                f"{type(owner).__name__}: {name} must be a pair. Received: {value!r}"
            )
    areas = as_range(owner, "scale", scale, least=0.0)
    ratios = as_range(owner, "ratio", ratio, least=1e-6)
    if areas[1] > 1:
        raise ArgumentError(
            f"{type(owner).__name__}: scale must lie in [0, 1]. Received: {scale!r}"
        )
    return areas, ratios


def _colour(owner: object, value: Any) -> Any:
    entries = value if isinstance(value, tuple | list) else [value]
    return np.array([as_real(owner, "value", entry) for entry in entries])
