"""Tables that say which elements of an axis make each element of the resized axis.

An output is either a weighted sum of a few taps (nearest, linear, cubic, and the last two with
filters as wide as outputs are apart: "linear-antialias") or the average of a range ("area").
Output i lies at the input coordinate (i + 1/2) * scale - 1/2, or at i * scale with align_corners,
where scale is the ratio of the sizes unless one is given.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..core.dtype import Array

CUBIC = (
    -0.75
)  # the free parameter of Keys' cubic convolution (1981), as PyTorch and OpenCV choose it


CUBIC_ANTIALIAS = -0.5  # as PyTorch and Pillow choose it for filters that widen


class Taps(NamedTuple):
    """For each tap and output: the position it reads and its weight."""

    positions: Array
    weights: Array | None  # None: a single tap of weight 1
    unread: Array | None = None  # outputs that read nothing


class Ranges(NamedTuple):
    """The range [start, stop) of elements that each output averages."""

    start: Array
    stop: Array


@lru_cache(maxsize=256)
def taps(size: int, count: int, mode: str, align_corners: bool, scale: float | None) -> Taps:
    """Return the taps that make `count` outputs of `size` inputs."""
    if mode == "nearest":
        return Taps(_frozen(_nearest(size, count, 0, scale)[None]), None)
    if mode == "nearest-exact":
        return Taps(_frozen(_nearest(size, count, 1, scale)[None]), None)
    if mode.endswith("antialias"):
        return _widened(size, count, mode, _step(size, count, align_corners, scale))
    where = _coordinates(size, count, align_corners, scale)
    return _linear(where, size) if mode == "linear" else _cubic(where, size)


@lru_cache(maxsize=256)
def transposed_taps(
    size: int, count: int, mode: str, align_corners: bool, scale: float | None
) -> Taps:
    """Return the taps that sum what each of `size` inputs gave to `count` outputs: the adjoint.

    Inputs that gave to fewer outputs than others repeat their last one with the weight 0.
    """
    table = taps(size, count, mode, align_corners, scale)
    weights = np.ones(table.positions.shape) if table.weights is None else table.weights
    pairs = (table.positions * count + np.arange(count))[weights != 0]
    pairs, inverse = np.unique(pairs, return_inverse=True)
    shares = np.bincount(inverse.reshape(-1), weights[weights != 0], len(pairs))
    readers, outputs = np.divmod(pairs, count)
    stop = np.cumsum(np.bincount(readers, minlength=size))
    start = np.concatenate([[0], stop[:-1]])
    entries = start + np.arange(int((stop - start).max()))[:, None]
    own = entries < stop
    entries = np.where(own, entries, np.maximum(stop - 1, 0))
    unread = np.flatnonzero(start == stop)
    return Taps(_frozen(outputs[entries]), _frozen(shares[entries] * own), unread)


def _nearest(size: int, count: int, halves: int, scale: float | None) -> Array:
    """Return floor((i + halves / 2) * scale), exactly if scale is the ratio of the sizes."""
    doubled = 2 * np.arange(count) + halves
    if scale is None:
        positions = doubled * size // (2 * max(count, 1))
    else:
        positions = np.floor(doubled / 2 * scale).astype(np.intp)
    return np.minimum(positions, size - 1)


def _coordinates(size: int, count: int, align_corners: bool, scale: float | None) -> Array:
    outputs, step = np.arange(count), _step(size, count, align_corners, scale)
    return outputs * step if align_corners else (outputs + 0.5) * step - 0.5


def _step(size: int, count: int, align_corners: bool, scale: float | None) -> float:
    """Return how far outputs are apart, in inputs."""
    if align_corners:
        return (size - 1) / (count - 1) if count > 1 else 0.0
    return size / max(count, 1) if scale is None else scale


def _linear(where: Array, size: int) -> Taps:
    where = np.maximum(where, 0.0)
    left = np.minimum(np.floor(where).astype(np.intp), size - 1)
    right = np.minimum(left + 1, size - 1)
    share = np.clip(where - left, 0.0, 1.0)
    return Taps(_frozen(np.stack([left, right])), _frozen(np.stack([1.0 - share, share])))


def _cubic(where: Array, size: int) -> Taps:
    base = np.minimum(np.floor(where).astype(np.intp), size - 1)
    share = np.clip(where - base, 0.0, 1.0)
    positions = np.clip(base + np.arange(-1, 3)[:, None], 0, size - 1)
    distances = (share + 1.0, share, 1.0 - share, 2.0 - share)
    weights = np.stack([_keys(d) for d in distances])
    return Taps(_frozen(positions), _frozen(weights))


def _widened(size: int, count: int, mode: str, step: float) -> Taps:
    """Return taps of a filter that reaches as far as outputs are apart: no input is left out.

    What lies beyond the ends does not count; the weights of the others make up for it.
    """
    cubic, wide = mode.startswith("cubic"), max(step, 1.0)
    reach = (2.0 if cubic else 1.0) * wide
    centre = (np.arange(count) + 0.5) * step
    first = np.clip((centre - reach + 0.5).astype(np.intp), 0, size - 1)
    stop = np.clip((centre + reach + 0.5).astype(np.intp), first + 1, size)
    places = first + np.arange(int((stop - first).max()))[:, None]
    distance = np.abs(places + 0.5 - centre) / wide
    weights = _keys(distance, CUBIC_ANTIALIAS) if cubic else np.maximum(1.0 - distance, 0.0)
    weights = np.where((places < stop) & (distance < (2.0 if cubic else 1.0)), weights, 0.0)
    weights[0] += weights.sum(0) == 0  # beyond the end, the last one
    return Taps(_frozen(np.minimum(places, stop - 1)), _frozen(weights / weights.sum(0)))


def _keys(distance: Array, a: float = CUBIC) -> Array:
    """Return the weight of an element at a distance below 2 (Keys 1981, equation 15)."""
    d = distance
    near = ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
    far = ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a
    return np.where(d <= 1.0, near, far)


@lru_cache(maxsize=256)
def ranges(size: int, count: int) -> Ranges:
    """Return the ranges of adaptive pooling: floor(i * size / n) to ceil((i + 1) * size / n)."""
    outputs = np.arange(count)
    start = outputs * size // max(count, 1)
    return Ranges(_frozen(start), _frozen(-(-(outputs + 1) * size // max(count, 1))))


@lru_cache(maxsize=256)
def covering_ranges(size: int, count: int) -> Ranges:
    """Return, for each of `size` inputs, the range of outputs whose ranges hold it."""
    start, stop = ranges(size, count)
    inputs = np.arange(size)
    first = np.searchsorted(stop, inputs, side="right")
    return Ranges(_frozen(first), _frozen(np.searchsorted(start, inputs, side="right")))


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array
