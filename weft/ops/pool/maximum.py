"""Maxima over windows, with the places they came from.

A maximum over a box is a maximum over each axis in turn, and if ties go to the first element along
each axis they go to the first of the box in row-major order. So a window of k x k elements costs 2k
comparisons, and equal and unequal (adaptive) windows differ only in where they lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...core.batching import folded
from ...core.dim import is_known
from ...core.dtype import Array
from ...core.errors import DTypeError, ShapeError
from ...core.op import F, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import Shape, TensorType, size_of
from ...core.tensor import Tensor
from .._axis_tables import ranges
from .._placed_windows import MOST, boxes, range_elements, window_elements
from ..conv.convolution import Ints
from ..conv.geometry import Pairs, per_axis, require_rank, window_counts
from .fitting import fit_windows


@op(general, outputs=2, method=False, work="windows", batch=folded)
def max_pool(
    x: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints | Pairs = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the maxima of all windows of x (N, C, *spatial), and their flat spatial places.

    Padding never wins. NaN counts as the largest value. Of equal elements the first in row-major
    order wins and receives the gradient.
    """


@max_pool.canon
def _(x, kernel_size, stride, padding, dilation, ceil_mode):
    spatial = _check_input(x)
    kernel = per_axis(kernel_size, spatial, "kernel_size")
    strides = kernel if stride is None else per_axis(stride, spatial, "stride")
    dilations = per_axis(dilation, spatial, "dilation")
    size = tuple(x.shape[2:])
    pairs = fit_windows(size, kernel, strides, padding, dilations, ceil_mode)
    if is_known(size):
        _window_axes(size, kernel, strides, pairs, dilations)  # refuses windows without elements
    return kernel, strides, pairs, dilations, False


@max_pool.infer
def _(x, kernel_size, stride, padding, dilation, ceil_mode):
    counts = window_counts(x.shape[2:], kernel_size, stride, padding, dilation)
    shape = (*x.shape[:2], *counts)
    return TensorType(shape, x.dtype), TensorType(shape, np.dtype(np.int64))


@max_pool.eval
def _(x, kernel_size, stride, padding, dilation, ceil_mode):
    return maxima(x, _window_axes(x.shape[2:], kernel_size, stride, padding, dilation))


@max_pool.place
def _(b, x, kernel_size, stride, padding, dilation, ceil_mode):
    axes = window_elements(b, x.shape[2:], kernel_size, stride, padding, dilation)
    return None if axes is None or 0 in x.shape else _largest(b, x, axes)


def _largest(b, x, axes):
    """Return the largest element of a window and its flat spatial place."""
    first, *others = boxes(b, axes)
    best, place = _candidate(b, x, *first)
    found = True if first[1] is None else first[1]
    lowest = -np.inf if best.dtype.kind == "f" else np.iinfo(best.dtype).min
    best = best if found is True else b.select(found, best, lowest)
    for places, where in others:
        value, flat = _candidate(b, x, places, where)
        better = value > best
        if value.dtype.kind == "f":
            better = better | (b.is_nan(value) & ~b.is_nan(best))
        if found is not True:
            better = better | ~found
            found = True if where is None else found | where
        better = b.both(better, where)
        # By a maximum: which of two numbers is taken would be a branch that nobody can foresee.
        rival = value if where is None else b.select(where, value, lowest)
        best, place = b.maximum(best, rival), b.select(better, flat, place)
    return best, place


def _candidate(b, x, places, where):
    """Return an element of a window and its flat spatial place."""
    flat = 0
    for place, n in zip(places, x.shape[2:], strict=True):
        flat = place + flat * n
    return x.at(*b.coordinates[:2], *places, where=where), b.number(flat)


@max_pool.vjp("x")
def _(g, out, x_shape):
    return F.pool_scatter(g[0], out[1], x_shape[2:])


@op(general, outputs=2, method=False, work="operands", batch=folded)
def adaptive_max_pool(x: Tensor, output_size: Ints) -> Tensor:
    """Return maxima over windows chosen so that the result is (N, C, *output_size), and places.

    Window i of n over size elements runs from floor(i * size / n) to ceil((i + 1) * size / n).
    Ties and NaN are treated as in `max_pool`.
    """


@adaptive_max_pool.canon
def _(x, output_size):
    spatial = _check_input(x)
    if 0 in x.shape[2:]:
        raise ShapeError(f"the spatial sizes must not be 0. Received: {tuple(x.shape)}")
    return (per_axis(output_size, spatial, "output_size", minimum=0),)


@adaptive_max_pool.infer
def _(x, output_size):
    shape = (*x.shape[:2], *output_size)
    return TensorType(shape, x.dtype), TensorType(shape, np.dtype(np.int64))


@adaptive_max_pool.eval
def _(x, output_size):
    axes = [_adaptive_windows(n, m) for n, m in zip(x.shape[2:], output_size, strict=True)]
    return maxima(x, axes)


@adaptive_max_pool.place
def _(b, x, output_size):
    axes = []
    for here, n, count in zip(b.coordinates[2:], x.shape[2:], output_size, strict=True):
        elements = range_elements(b, here, n, ranges(n, count))
        if elements is None:
            return None
        axes.append(elements)
    if 0 in b.shape or size_of(map(len, axes)) > MOST:
        return None
    return _largest(b, x, axes)


@adaptive_max_pool.vjp("x")
def _(g, out, x_shape):
    return F.pool_scatter(g[0], out[1], x_shape[2:])


def _check_input(x: Any) -> int:
    if x.dtype.kind == "b":
        raise DTypeError(f"the input must hold numbers. Received: {x.dtype}; cast it first")
    return require_rank(x, "the input")


# -- kernel -----------------------------------------------------------------------------------


class AxisWindows(NamedTuple):
    """The windows along one axis: element k of window i lies at max(start[i] + k * step, first[i]).

    selectors   for each k, a slice or an index of those elements; where a window has no k-th
                element, of one that it has: that cannot change its maximum, so padding needs no
                values
    """

    selectors: tuple[Any, ...]
    start: Array
    first: Array
    step: int


def maxima(x: Array, axes: Sequence[AxisWindows]) -> tuple[Array, Array]:
    """Return the maxima of windows, and their flat spatial places."""
    best, winners = _box_maxima(x, axes, np.greater)
    if best.dtype.kind not in "iu" and np.isnan(best).any():
        best, winners = _box_maxima(x, axes, _exceeds_or_first_nan)
    place = np.zeros(best.shape, np.int64)
    for axis, (windows, winner) in enumerate(zip(axes, winners, strict=True), start=2):
        column = (-1, *(1,) * (x.ndim - axis - 1))
        place *= x.shape[axis]
        position = winner * np.int64(windows.step) + windows.start.reshape(column)
        place += np.maximum(position, windows.first.reshape(column), out=position)
    return best, place


def _box_maxima(
    x: Array, axes: Sequence[AxisWindows], exceeds: Callable[[Array, Array], Array]
) -> tuple[Array, list[Array]]:
    """Return maxima and, for each axis, which element of its window won."""
    best: Array = x
    winners: list[Array] = []
    for axis in reversed(range(2, x.ndim)):
        best, winners = _maxima_along(best, winners, axes[axis - 2].selectors, axis, exceeds)
    return best, winners


def _maxima_along(
    values: Array,
    winners: list[Array],
    selectors: tuple[Any, ...],
    axis: int,
    exceeds: Callable[[Array, Array], Array],
) -> tuple[Array, list[Array]]:
    """Return maxima along one axis; winners of the axes behind it are carried along.

    Winners are small unsigned numbers, taken over by masks of all ones: no branches, few bytes.
    """
    lead = (slice(None),) * axis
    best = values[(*lead, selectors[0])].copy()
    carried = [winner[(*lead, selectors[0])].copy() for winner in winners]
    won = np.zeros(best.shape, np.min_scalar_type(len(selectors) - 1))
    for k, selector in enumerate(selectors[1:], start=1):
        candidate = values[(*lead, selector)]
        better = exceeds(candidate, best)
        np.maximum(best, candidate, out=best)
        np.maximum(won, np.multiply(better, k, dtype=won.dtype), out=won)
        for kept, winner in zip(carried, winners, strict=True):
            mask = np.negative(better.astype(kept.dtype))
            np.bitwise_xor(kept, (kept ^ winner[(*lead, selector)]) & mask, out=kept)
    return best, [won, *carried]


def _exceeds_or_first_nan(candidate: Array, best: Array) -> Array:
    return (candidate > best) | (np.isnan(candidate) & ~np.isnan(best))


def _window_axes(
    size: Shape, kernel: Shape, stride: Shape, pairs: Pairs, dilation: Shape
) -> list[AxisWindows]:
    axes = zip(size, kernel, stride, pairs, dilation, strict=True)
    return [_equal_windows(n, k, s, before, after, d) for n, k, s, (before, after), d in axes]


@lru_cache(maxsize=256)
def _equal_windows(
    size: int, kernel: int, stride: int, before: int, after: int, dilation: int
) -> AxisWindows:
    count = (size + before + after - dilation * (kernel - 1) - 1) // stride + 1
    start = np.arange(count) * stride - before
    first = start + -(-np.maximum(-start, 0) // dilation) * dilation
    last = start + np.minimum((size - 1 - start) // dilation, kernel - 1) * dilation
    if np.any(first > last):
        raise ShapeError(
            f"a window of {kernel} elements with dilation {dilation} and padding {before} holds no "
            f"element of an input of size {size}; use less padding or dilation"
        )
    rows = [np.clip(start + k * dilation, first, last) for k in range(kernel)]
    return AxisWindows(tuple(map(_selector, rows)), start, first, dilation)


@lru_cache(maxsize=256)
def _adaptive_windows(size: int, count: int) -> AxisWindows:
    windows = np.arange(count)
    start = windows * size // max(count, 1)
    stop = -(-(windows + 1) * size // max(count, 1))
    longest = int((stop - start).max(initial=1))
    rows = [np.minimum(start + k, stop - 1) for k in range(longest)]
    return AxisWindows(tuple(map(_selector, rows)), start, start, 1)


def _selector(positions: Array) -> Any:
    """Return evenly spaced positions as a slice, which needs no copy; others as they are."""
    if positions.size == 0:
        return slice(0, 0)
    step = int(positions[1] - positions[0]) if positions.size > 1 else 1
    if step > 0 and np.all(np.diff(positions) == step):
        return slice(int(positions[0]), int(positions[-1]) + 1, step)
    return positions


# -- samples ----------------------------------------------------------------------------------


@max_pool.samples
def _(s):
    yield Sample(s.distinct(2, 2, 5), 2)
    yield Sample(s.distinct(1, 1, 6), 3, 1, 1)
    yield Sample(s.distinct(1, 2, 3, 4), 2, label="2-d")
    yield Sample(s.distinct(1, 1, 5, 4), (3, 2), (2, 1), (1, 0), label="overlapping")
    yield Sample(s.distinct(1, 1, 5, 5), 2, 2, 0, 2, label="dilated")
    yield Sample(s.distinct(1, 1, 5, 5), 2, ceil_mode=True)
    yield Sample(s.distinct(1, 1, 4), 2, 3, 1, ceil_mode=True, label="last window dropped")
    yield Sample(s.distinct(1, 1, 2, 3, 2), (2, 2, 1), 1, label="3-d")
    yield Sample(s.distinct(0, 2, 4, 4), 2, label="empty batch")
    yield Sample(s.distinct(6, 4, 2, 2)[::-2, ::2].transpose(1, 0, 3, 2), 2, label="non-contiguous")
    yield Sample(s.integers(1, 2, 6), 3, grad=0, label="integers")
    yield Sample(np.full((1, 1, 4), -np.inf), 2, 1, 1, grad=0, label="-inf everywhere")
    yield Sample(np.array([[[1.0, np.nan, 3.0, 2.0]]]), 2, grad=0, label="NaN")


@max_pool.error_samples
def _(s):
    x = s.real(1, 1, 4, 4)
    yield ErrorSample(s.real(4, 4), 2, error=ValueError, match=r"Received: \(4, 4\)")
    yield ErrorSample(x, 5, error=ValueError, match=r"extent \(5, 5\).*\(4, 4\)")
    yield ErrorSample(x, 2, padding=2, error=ValueError, match=r"padding=\(2, 2\)")
    yield ErrorSample(x, 2, stride=0, error=ValueError, match="stride must be at least 1")
    yield ErrorSample(x, (2, 2, 2), error=ValueError, match=r"kernel_size .*\(2, 2, 2\)")
    yield ErrorSample(x, 2, ceil_mode=1, error=TypeError, match="ceil_mode must be True or False")
    yield ErrorSample(s.booleans(1, 1, 4), 2, error=TypeError, match="bool")
    yield ErrorSample(s.real(1, 1, 1), 2, 1, 2, 4, error=ValueError, match="holds no element")


@adaptive_max_pool.samples
def _(s):
    yield Sample(s.distinct(2, 2, 5), 3)
    yield Sample(s.distinct(1, 2, 3, 4), (2, 2))
    yield Sample(s.distinct(1, 1, 5, 3), (1, 5), label="more windows than elements")
    yield Sample(s.distinct(1, 1, 2, 3, 4), (1, 2, 3))
    yield Sample(s.distinct(0, 1, 4), 2, label="empty batch")
    yield Sample(s.distinct(1, 1, 4), 0, label="no windows")
    yield Sample(s.integers(1, 2, 6), 3, grad=0, label="integers")


@adaptive_max_pool.error_samples
def _(s):
    yield ErrorSample(s.real(4, 4), 2, error=ValueError, match=r"Received: \(4, 4\)")
    yield ErrorSample(s.real(1, 1, 4), -1, error=ValueError, match="output_size must be at least 0")
    yield ErrorSample(s.real(1, 1, 0), 2, error=ValueError, match=r"Received: \(1, 1, 0\)")
