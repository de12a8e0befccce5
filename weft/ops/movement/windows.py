"""Sliding windows along an axis, and differences of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...core.dim import surely_less
from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite, movement, op
from ...core.operands import common_dtype, tensor_from, to_dtype
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, as_int, normalize_axis
from ...core.tensor import Tensor
from .._halves import rounded_once, through_float32


@op(movement, linear=("x",), method="unfold")
def sliding_windows(x: Tensor, dimension: int, size: int, step: int = 1) -> Tensor:
    """Return the windows of `size` elements along a dimension, `step` apart, as a new last axis.

    As PyTorch's Tensor.unfold: x.unfold(dimension, size, step).

    >>> import weft as wf
    >>> wf.sliding_windows(wf.arange(5), 0, size=3, step=2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """


@sliding_windows.canon
def _(x, dimension, size, step):
    dimension = normalize_axis(dimension, x.ndim, "dimension")
    size, step = _canon_window(size, step)
    if surely_less(x.shape[dimension], size):
        raise ShapeError(
            f"a window of {size} does not fit into dimension {dimension} of shape {tuple(x.shape)}"
        )
    return dimension, size, step


@sliding_windows.infer
def _(x, dimension, size, step):
    count = (x.shape[dimension] - size) // step + 1
    return TensorType((*x.shape[:dimension], count, *x.shape[dimension + 1 :], size), x.dtype)


@sliding_windows.eval
def _(x, dimension, size, step):
    count = (x.shape[dimension] - size) // step + 1
    shape = (*x.shape[:dimension], count, *x.shape[dimension + 1 :], size)
    stride = x.strides[dimension]
    strides = (*x.strides[:dimension], stride * step, *x.strides[dimension + 1 :], stride)
    return as_strided(x, shape, strides, writeable=False)


@sliding_windows.view
def _(x, dimension, size, step):
    shape, strides = list(x.shape), list(x.strides)
    shape[dimension] = (shape[dimension] - size) // step + 1
    strides[dimension] *= step
    return x.restrided((*shape, size), (*strides, x.strides[dimension]))


@sliding_windows.vjp("x")
def _(g, x_shape, dimension, size, step):
    return F.fold_windows(g, dimension, size, step, x_shape[dimension])


@sliding_windows.samples
def _(s):
    yield Sample(s.real(5), 0, 3)
    yield Sample(s.real(5), 0, 3, 2)
    yield Sample(s.real(5), -1, 1, 3, label="gaps")
    yield Sample(s.real(2, 4), 1, 4)
    yield Sample(s.real(4, 2), 0, size=2, step=1)
    yield Sample(s.real(0, 3), 1, 2, label="empty")
    yield Sample(s.strided(2, 4), 1, 2, label="non-contiguous")


@sliding_windows.error_samples
def _(s):
    yield ErrorSample(s.real(3), 0, 4, error=ValueError, match=r"window of 4 .*\(3,\)")
    yield ErrorSample(s.real(3), 0, 0, error=ValueError, match="size .*Received: 0")
    yield ErrorSample(s.real(3), 0, 2, -1, error=ValueError, match="step .*Received: -1")
    yield ErrorSample(s.real(3), 1, 2, error=IndexError, match="dimension 1 is out of range")


@op(movement, linear=("x",), method=False)
def fold_windows(x: Tensor, dimension: int, size: int, step: int, length: int) -> Tensor:
    """Return windows added back onto a dimension of the given length, where they overlap summed.

    The adjoint of `sliding_windows`: x holds the windows along `dimension`, their elements along
    its last axis.
    """


@fold_windows.canon
def _(x, dimension, size, step, length):
    dimension = normalize_axis(dimension, x.ndim - 1, "dimension")
    size, step = _canon_window(size, step)
    length = as_int(length, "length")
    if x.shape[-1] != size or x.shape[dimension] != (length - size) // step + 1:
        raise ShapeError(
            f"{(length - size) // step + 1} windows of {size} cover a length of {length}. "
            f"Received: shape {tuple(x.shape)} with dimension {dimension}"
        )
    return dimension, size, step, length


@fold_windows.infer
def _(x, dimension, size, step, length):
    return TensorType((*x.shape[:dimension], length, *x.shape[dimension + 1 : -1]), x.dtype)


@fold_windows.eval
@through_float32
def _(x, dimension, size, step, length):
    windows = np.moveaxis(x, (dimension, -1), (0, 1))
    total = np.zeros((length, *windows.shape[2:]), x.dtype)
    count = len(windows)
    if count < size:  # loop over the fewer: the windows, or the places in a window
        for i in range(count):
            total[i * step : i * step + size] += windows[i]
    else:
        for i in range(size):
            total[i : i + (count - 1) * step + 1 : step] += windows[:, i]
    return np.moveaxis(total, 0, dimension)


@fold_windows.vjp("x")
def _(g, dimension, size, step):
    return F.sliding_windows(g, dimension, size, step)


@fold_windows.place
def _(b, x, dimension, size, step, length):
    count = x.shape[dimension]
    if size > WIDEST_FOLD or not count:
        return None
    here, total = b.coordinates[dimension], None
    for k in range(size):
        place, where = b.window_of(here - k, step, count)
        places = [*b.coordinates, k]
        places[dimension] = place
        part = x.at(*places, where=where)
        total = part if total is None else total + part
    return total


WIDEST_FOLD = 64  # elements of a window that code adds one by one


@fold_windows.samples
def _(s):
    yield Sample(s.real(3, 3), 0, 3, 1, 5)
    yield Sample(s.real(2, 3), 0, 3, 2, 6)
    yield Sample(s.real(2, 3, 2), 1, 2, 1, 4)
    yield Sample(s.real(2, 1, 4), 1, 4, 1, 4)


@fold_windows.error_samples
def _(s):
    yield ErrorSample(s.real(3, 3), 0, 3, 1, 6, error=ValueError, match=r"4 windows.*\(3, 3\)")
    yield ErrorSample(s.real(3, 3), 0, 2, 1, 4, error=ValueError, match=r"\(3, 3\)")


def _canon_window(size: Any, step: Any) -> tuple[int, int]:
    size, step = as_int(size, "size"), as_int(step, "step")
    if surely_less(size, 1):
        raise ArgumentError(f"the size of a window must be at least 1. Received: {size}")
    if step < 1:
        raise ArgumentError(f"the step between windows must be at least 1. Received: {step}")
    return size, step


@composite(method=True)
@rounded_once
def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Return the n-th differences of neighbours along an axis; truth values give "differs".

    `prepend` and `append` are joined to x first, one number as a slice of it; where n is 0 they
    are not looked at.

    >>> import weft as wf
    >>> wf.diff(wf.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    times = as_int(n, "diff: n")
    if times < 0:
        raise ArgumentError(f"diff: n must not be negative. Received: {times}")
    axis = normalize_axis(axis, x.ndim, "diff: axis")
    if times == 0:
        return x
    if prepend is not None or append is not None:
        before, after = (_as_slices(part, x, axis) for part in (prepend, append))
        x = F.concat([*before, x, *after], axis)
    lead = (slice(None),) * axis
    for _ in range(times):
        later, earlier = x[(*lead, slice(1, None))], x[(*lead, slice(None, -1))]
        x = later != earlier if x.dtype == np.bool_ else later - earlier
    return x


def _as_slices(part: Any, x: Any, axis: int) -> list[Any]:
    """Return what is joined to x along an axis as a list: nothing, or tensors like x."""
    if part is None:
        return []
    if isinstance(part, (bool, int, float)):  # it takes the dtype of x where that can hold it
        part = to_dtype(part, common_dtype([x, part]))
    part = part if hasattr(part, "ndim") else tensor_from(part, "diff: what is joined to x")
    if part.ndim:
        return [part]
    return [F.broadcast_to(part, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))]


@composite(aliases=("trapz",), public={"wf": ("trapezoid",)})
@rounded_once
def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    """Return the integral of y along an axis by the trapezoidal rule.

    The points lie at `x` (of y's shape, or one vector), or `dx` apart.
    """
    axis = normalize_axis(axis, y.ndim, "trapezoid: axis")
    return F.sum(_areas(y, x, dx, axis), axis)


def _areas(y: Any, x: Any, dx: float, axis: int) -> Any:
    """Return the areas of the trapezoids between neighbours."""
    lead = (slice(None),) * axis
    heights = y[(*lead, slice(1, None))] + y[(*lead, slice(None, -1))]
    if x is None:
        return heights * (dx / 2)
    if x.ndim == 1:
        x = F.reshape(x, (-1, *(1,) * (y.ndim - 1 - axis)))
        return heights * diff(x, axis=0) / 2
    return heights * diff(x, axis=axis) / 2


@composite(public=("wf",))
@rounded_once
def cumulative_trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    """Return the integrals of y along an axis from its first point to each later one.

    The points lie at `x` (of y's shape, or one vector), or `dx` apart.

    >>> import weft as wf
    >>> wf.cumulative_trapezoid(wf.tensor([1.0, 3.0, 5.0]))
    tensor([2., 6.])
    """
    axis = normalize_axis(axis, y.ndim, "cumulative_trapezoid: axis")
    return F.cumsum(_areas(y, x, dx, axis), axis)
