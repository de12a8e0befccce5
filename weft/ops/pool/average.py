"""Sums over windows and their adjoint; averages are sums divided by counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batching import folded
from ...core.dim import may_equal
from ...core.dtype import Array
from ...core.errors import ShapeError
from ...core.op import F, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import Shape, TensorType, size_of
from ...core.sums import SHORT, sum_array
from ...core.tensor import Tensor
from .._halves import through_float32
from .._placed_windows import MOST, boxes, total, window_elements
from ..conv.convolution import Ints
from ..conv.geometry import Pairs, per_axis, require_rank, window_counts
from ..conv.windows import negated, pad_spatial
from .fitting import fit_windows


@op(general, promote="float", linear=("x",), method=False, work="windows", batch=folded)
def sum_pool(
    x: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints | Pairs = 0,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the sums of all windows of x (N, C, *spatial), padded with zeros."""


@sum_pool.canon
def _(x, kernel_size, stride, padding, ceil_mode):
    size = tuple(x.shape[2:])
    kernel, strides = pool_shape(require_rank(x, "the input"), kernel_size, stride)
    ones = (1,) * len(kernel)
    return kernel, strides, fit_windows(size, kernel, strides, padding, ones, ceil_mode), False


@sum_pool.infer
def _(x, kernel_size, stride, padding, ceil_mode):
    ones = (1,) * len(kernel_size)
    counts = window_counts(x.shape[2:], kernel_size, stride, padding, ones)
    return TensorType((*x.shape[:2], *counts), x.dtype)


@sum_pool.eval
@through_float32
def _(x, kernel_size, stride, padding, ceil_mode):
    total = pad_spatial(x, padding)
    for axis, (kernel, step) in enumerate(zip(kernel_size, stride, strict=True), start=2):
        total = _sum_along(total, kernel, step, axis)
    return total


@sum_pool.place
def _(b, x, kernel_size, stride, padding, ceil_mode):
    ones = (1,) * len(kernel_size)
    axes = window_elements(b, x.shape[2:], kernel_size, stride, padding, ones)
    if axes is None or 0 in x.shape:
        return None
    lead = b.coordinates[:2]
    return total([x.at(*lead, *places, where=where) for places, where in boxes(b, axes)])


@sum_pool.vjp("x")
def _(g, x_shape, kernel_size, stride, padding):
    return F.sum_pool_adjoint(g, x_shape[2:], kernel_size, stride, padding)


@op(general, promote="float", linear=("y",), method=False, batch=folded)
def sum_pool_adjoint(
    y: Tensor,
    input_size: tuple[int, ...],
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints | Pairs = 0,
) -> Tensor:
    """Return y (N, C, *windows) spread over its windows: the adjoint of `sum_pool`."""


@sum_pool_adjoint.canon
def _(y, input_size, kernel_size, stride, padding):
    spatial = require_rank(y, "y")
    size = per_axis(input_size, spatial, "input_size", minimum=0)
    kernel, strides = pool_shape(spatial, kernel_size, stride)
    ones = (1,) * spatial
    pairs = fit_windows(size, kernel, strides, padding, ones, False)
    counts = window_counts(size, kernel, strides, pairs, ones)
    if not may_equal(tuple(y.shape[2:]), counts):
        raise ShapeError(
            f"y must have the window counts {counts} of an input of size {size}. "
            f"Received: {tuple(y.shape)}"
        )
    return size, kernel, strides, pairs


@sum_pool_adjoint.infer
def _(y, input_size, kernel_size, stride, padding):
    return TensorType((*y.shape[:2], *input_size), y.dtype)


@sum_pool_adjoint.eval
@through_float32
def _(y, input_size, kernel_size, stride, padding):
    total = y
    for axis, (kernel, step) in enumerate(zip(kernel_size, stride, strict=True), start=2):
        total = _spread_along(total, kernel, step, axis)
    return pad_spatial(total, negated(padding))


@sum_pool_adjoint.place
def _(b, y, input_size, kernel_size, stride, padding):
    if size_of(kernel_size) > MOST or 0 in y.shape:
        return None
    axes = [
        [b.window_of(here + (before - k), step, count) for k in range(kernel)]
        for here, kernel, step, (before, _), count in zip(
            b.coordinates[2:], kernel_size, stride, padding, y.shape[2:], strict=True
        )
    ]
    lead = b.coordinates[:2]
    return total([y.at(*lead, *places, where=where) for places, where in boxes(b, axes)])


@sum_pool_adjoint.vjp("y")
def _(g, kernel_size, stride, padding):
    return F.sum_pool(g, kernel_size, stride, padding)


def pool_shape(spatial: int, kernel_size: Any, stride: Any) -> tuple[Shape, Shape]:
    """Return kernel and stride for each axis; the stride is the kernel unless given."""
    kernel = per_axis(kernel_size, spatial, "kernel_size")
    return kernel, kernel if stride is None else per_axis(stride, spatial, "stride")


def _sum_along(x: Array, kernel: int, step: int, axis: int) -> Array:
    if kernel == 1 and step == 1:
        return x
    reach = x.shape[axis] - kernel + 1
    lead = (slice(None),) * axis
    if kernel > SHORT:
        windows = np.lib.stride_tricks.sliding_window_view(x, kernel, axis)
        return np.asarray(sum_array(windows[(*lead, slice(0, reach, step))], (x.ndim,)))
    total = x[(*lead, slice(0, reach, step))].copy()
    for k in range(1, kernel):
        total += x[(*lead, slice(k, k + reach, step))]
    return total


def _spread_along(y: Array, kernel: int, step: int, axis: int) -> Array:
    if kernel == 1 and step == 1:
        return y
    reach = (y.shape[axis] - 1) * step + 1
    lead = (slice(None),) * axis
    spread = np.zeros((*y.shape[:axis], reach + kernel - 1, *y.shape[axis + 1 :]), y.dtype)
    for k in range(kernel):
        spread[(*lead, slice(k, k + reach, step))] += y
    return spread


# -- samples ----------------------------------------------------------------------------------

CASES: tuple[tuple[Shape, dict[str, Any]], ...] = (
    ((2, 2, 5), {"kernel_size": 2}),
    ((1, 2, 3, 4), {"kernel_size": 2, "stride": 1}),
    ((1, 1, 5, 4), {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0)}),
    ((1, 1, 2, 3, 2), {"kernel_size": (2, 2, 1), "stride": 1}),
    ((0, 2, 4, 4), {"kernel_size": 2}),
)


@sum_pool.samples
def _(s):
    for shape, settings in CASES:
        yield Sample(s.real(*shape), **settings)
    yield Sample(s.real(1, 1, 5, 5), 2, ceil_mode=True, label="ceil_mode")
    yield Sample(s.strided(1, 2, 3, 4), 2, label="non-contiguous")
    yield Sample(s.integers(1, 2, 4), 2, grad=0, label="integers")


@sum_pool.error_samples
def _(s):
    x = s.real(1, 1, 4, 4)
    yield ErrorSample(s.real(4, 4), 2, error=ValueError, match=r"Received: \(4, 4\)")
    yield ErrorSample(x, 5, error=ValueError, match=r"extent \(5, 5\)")
    yield ErrorSample(x, 2, padding=2, error=ValueError, match=r"padding=\(2, 2\)")
    yield ErrorSample(x, 2.5, error=TypeError, match="kernel_size must be an integer.*2.5")


@sum_pool_adjoint.samples
def _(s):
    for shape, settings in CASES:
        kernel, stride = pool_shape(len(shape) - 2, settings["kernel_size"], settings.get("stride"))
        pairs = fit_windows(
            shape[2:], kernel, stride, settings.get("padding", 0), (1,) * len(kernel), False
        )
        counts = window_counts(shape[2:], kernel, stride, pairs, (1,) * len(kernel))
        yield Sample(s.real(*shape[:2], *counts), shape[2:], **settings)


@sum_pool_adjoint.error_samples
def _(s):
    y = s.real(1, 1, 2, 2)
    yield ErrorSample(y, (6, 4), 2, error=ValueError, match=r"counts \(3, 2\).*\(1, 1, 2, 2\)")
    yield ErrorSample(y, (1, 1), 2, error=ValueError, match=r"extent \(2, 2\)")
