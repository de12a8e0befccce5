"""Transforms of colours: grey, brightness, contrast, saturation, hue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...core.errors import ArgumentError, ShapeError
from ..checks import as_range
from ..streams import permutation, uniform
from .base import Occasional, Pixels, Transform, as_float, full_value, like

_LUMA: Final = (0.299, 0.587, 0.114)  # ITU-R BT.601, as pillow and torchvision weigh RGB


class Grayscale(Transform):
    """Return the brightness of the colours, as 1 channel or 3 equal ones."""

    def __init__(self, channels: int = 1) -> None:
        if channels not in (1, 3):
            raise ArgumentError(f"Grayscale: channels must be 1 or 3. Received: {channels!r}")
        self.channels = channels

    def apply(self, pixels: Pixels) -> Pixels:
        """Return the grey pixels."""
        grey = like(pixels, grey_of(self, as_float(pixels)))
        return np.repeat(grey, self.channels, axis=2)


class RandomGrayscale(Occasional):
    """Make the image grey, with its number of channels, with probability `p`."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def change(self, pixels: Pixels) -> Pixels:
        """Return the pixels grey."""
        grey = like(pixels, grey_of(self, as_float(pixels)))
        return np.repeat(grey, pixels.shape[2], axis=2)


class ColorJitter(Transform):
    """Change brightness, contrast, saturation and hue at random, in random order.

    Of the first three, a number v gives a factor from [max(0, 1 - v), 1 + v], a pair gives its
    range; `hue` (at most 0.5) is a shift, in turns of the colour circle. Saturation and hue leave
    grey images as they are.
    """

    def __init__(
        self, brightness: Any = 0.0, contrast: Any = 0.0, saturation: Any = 0.0, hue: Any = 0.0
    ) -> None:
        self._brightness = as_range(self, "brightness", brightness, around=1.0, least=0.0)
        self._contrast = as_range(self, "contrast", contrast, around=1.0, least=0.0)
        self._saturation = as_range(self, "saturation", saturation, around=1.0, least=0.0)
        self._hue = as_range(self, "hue", hue)
        if not -0.5 <= self._hue[0] <= self._hue[1] <= 0.5:
            raise ArgumentError(f"ColorJitter: hue must lie in [-0.5, 0.5]. Received: {hue!r}")

    def apply(self, pixels: Pixels) -> Pixels:
        """Return the pixels in other colours."""
        white = full_value(pixels)
        values = as_float(pixels) / white
        changes: list[Callable[[Pixels], Pixels]] = [
            self._brightened,
            self._contrasted,
            self._saturated,
            self._hue_shifted,
        ]
        for which in permutation(len(changes)).tolist():
            values = changes[which](values)
        return like(pixels, values * white)

    def _brightened(self, values: Pixels) -> Pixels:
        return _blend(values, np.zeros((), values.dtype), uniform(*self._brightness))

    def _contrasted(self, values: Pixels) -> Pixels:
        factor = uniform(*self._contrast)
        return _blend(values, grey_of(self, values).mean(dtype=values.dtype), factor)

    def _saturated(self, values: Pixels) -> Pixels:
        factor = uniform(*self._saturation)
        return values if values.shape[2] == 1 else _blend(values, grey_of(self, values), factor)

    def _hue_shifted(self, values: Pixels) -> Pixels:
        shift = uniform(*self._hue)
        return values if values.shape[2] == 1 or shift == 0 else shifted_hue(values, shift)


def grey_of(owner: object, values: Pixels) -> Pixels:
    """Return the brightness of colours, shape (height, width, 1)."""
    if values.shape[2] == 1:
        return values
    if values.shape[2] != 3:
        raise ShapeError(
            f"{type(owner).__name__}: expected 1 or 3 channels. Received: {values.shape[2]}"
        )
    red, green, blue = (values.dtype.type(w) * values[:, :, i] for i, w in enumerate(_LUMA))
    # Not a matrix product, whose rounding depends on how the pixels lie in memory.
    return np.ascontiguousarray(red + green + blue)[:, :, None]


def _blend(values: Pixels, other: Any, factor: float) -> Pixels:
    """Return `other` at factor 0, `values` at 1, and beyond them above."""
    if factor == 1.0:
        return values
    factor = values.dtype.type(factor)
    mixed: Pixels = np.clip(values * factor + other * (1 - factor), 0.0, 1.0)
    return mixed


def shifted_hue(values: Pixels, shift: float) -> Pixels:
    """Return RGB values in [0, 1] with the hue turned by `shift` turns, through HSV."""
    top, low = values.max(axis=2), values.min(axis=2)
    chroma = top - low
    safe = np.where(chroma > 0, chroma, 1)
    red, green, blue = (values[:, :, i] for i in range(3))
    sixths = np.select(
        [top == red, top == green],
        [(green - blue) / safe, 2 + (blue - red) / safe],
        4 + (red - green) / safe,
    )
    turned = (sixths + 6 * shift)[:, :, None]
    # Channel n of HSV to RGB: v - c * max(0, min(k, 4 - k, 1)) with k = (n + 6h) mod 6, n = 5, 3, 1
    k = (np.array([5, 3, 1]) + turned) % 6
    share = np.clip(np.minimum(k, 4 - k), 0, 1)
    rgb: Pixels = (top[:, :, None] - chroma[:, :, None] * share).astype(values.dtype)
    return rgb
