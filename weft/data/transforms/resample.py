"""Pixels at other places: resizing by separable filters, and sampling at any coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ..streams import Array
from .base import Pixels, as_float, like

INTERPOLATIONS: Final = ("bilinear", "bicubic", "nearest")


def resize(
    pixels: Pixels, height: int, width: int, interpolation: str, antialias: bool = True
) -> Pixels:
    """Return pixels (h, w, c) at another size.

    With `antialias`, filters widen when the image shrinks, so that every pixel counts; results
    are then those of pillow. Corners are aligned by their outer edges.
    """
    if pixels.shape[:2] == (height, width):
        return pixels
    if interpolation == "nearest":
        rows, columns = _nearest(pixels.shape[0], height), _nearest(pixels.shape[1], width)
        return pixels[rows[:, None], columns]
    values = as_float(pixels)
    values = _along_rows(values, height, interpolation, antialias)
    values = _along_rows(values.swapaxes(0, 1), width, interpolation, antialias).swapaxes(0, 1)
    return like(pixels, values)


def sample(pixels: Pixels, y: Array, x: Array, interpolation: str, fill: float) -> Pixels:
    """Return the pixels at coordinates (y, x), in units of pixels; outside is `fill`.

    "bilinear" or "nearest"; y and x have the shape of the result.
    """
    if interpolation == "nearest":
        return _at(pixels, np.floor(y + 0.5).astype(int), np.floor(x + 0.5).astype(int), fill)
    values = as_float(pixels)
    top, left = np.floor(y).astype(int), np.floor(x).astype(int)
    down = (y - top).astype(values.dtype)[:, :, None]
    right = (x - left).astype(values.dtype)[:, :, None]
    upper = _at(values, top, left, fill) * (1 - right) + _at(values, top, left + 1, fill) * right
    lower = (
        _at(values, top + 1, left, fill) * (1 - right)
        + _at(values, top + 1, left + 1, fill) * right
    )
    return like(pixels, upper * (1 - down) + lower * down)


def _at(pixels: Pixels, y: Array, x: Array, fill: float) -> Pixels:
    height, width = pixels.shape[:2]
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    found = pixels[np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)]
    return np.where(inside[:, :, None], found, np.asarray(fill, pixels.dtype))


def _nearest(size: int, new_size: int) -> Array:
    return ((np.arange(new_size) + 0.5) * (size / new_size)).astype(int)


def _along_rows(values: Pixels, new_size: int, interpolation: str, antialias: bool) -> Pixels:
    """Return values filtered along axis 0 to a new size."""
    if values.shape[0] == new_size:
        return values
    places, weights = _taps(values.shape[0], new_size, interpolation, antialias)
    out = np.zeros((new_size, *values.shape[1:]), values.dtype)
    for tap in range(places.shape[1]):
        out += weights[:, tap, None, None].astype(values.dtype) * values[places[:, tap]]
    return out


def _taps(size: int, new_size: int, interpolation: str, antialias: bool) -> tuple[Array, Array]:
    """Return, for each new pixel, the old ones it is made of and their weights."""
    kernel, radius = _KERNELS[interpolation]
    scale = size / new_size
    stretch = max(1.0, scale) if antialias else 1.0
    centre = (np.arange(new_size) + 0.5) * scale
    support = radius * stretch
    first = np.floor(centre - support + 0.5).astype(int)
    places = first[:, None] + np.arange(int(np.ceil(2 * support)) + 1)
    weights = kernel((places + 0.5 - centre[:, None]) / stretch)
    if antialias:  # what lies outside does not count (pillow); else the edge is repeated
        weights = np.where((places >= 0) & (places < size), weights, 0.0)
    weights = weights / weights.sum(axis=1, keepdims=True)
    return np.clip(places, 0, size - 1), weights


def _triangle(t: Array) -> Array:
    weights: Array = np.maximum(0.0, 1.0 - abs(t))
    return weights


def _cubic(t: Array) -> Array:
    """Keys, "Cubic convolution interpolation for digital image processing" (1981), a = -1/2."""
    t = abs(t)
    near = (1.5 * t - 2.5) * t * t + 1.0
    far = ((-0.5 * t + 2.5) * t - 4.0) * t + 2.0
    return np.where(t < 1, near, np.where(t < 2, far, 0.0))


_KERNELS: Final[dict[str, tuple[Callable[[Array], Array], float]]] = {
    "bilinear": (_triangle, 1.0),
    "bicubic": (_cubic, 2.0),
}
