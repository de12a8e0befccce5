"""Resizing along one axis, and its adjoint: linear maps with few non-zero entries a row.

Interpolation and adaptive average pooling are these, one axis after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batching import shifted
from ...core.dim import is_known, surely_less
from ...core.dtype import Array, is_float
from ...core.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    ShapeError,
    UnknownSizeError,
)
from ...core.op import F, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import Shape, TensorType, as_int, normalize_axis
from ...core.tensor import Tensor
from .._axis_tables import Ranges, Taps, covering_ranges, ranges, taps, transposed_taps
from .._halves import through_float32
from .._placed_windows import range_elements, tapped, total

MODES = (
    *("nearest", "nearest-exact", "linear", "cubic", "area"),
    *("linear-antialias", "cubic-antialias"),
)


@op(general, linear=("x",), method=False, work="result", batch=shifted)
def resize_axis(
    x: Tensor,
    size: int,
    axis: int,
    mode: str = "linear",
    align_corners: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Return x with one axis resampled to `size` elements.

    mode            "nearest", "nearest-exact", "linear", "cubic" or "area" (averages);
                    "linear-antialias", "cubic-antialias" (wider filters where sizes shrink)
    align_corners   linear and cubic: let the first and last elements coincide, not the borders
    scale           distance between outputs, in inputs; default: the ratio of the sizes
    """


@resize_axis.canon
def _(x, size, axis, mode, align_corners, scale):
    size, axis, *rest = _canonical(x, size, axis, mode, align_corners, scale)
    if x.shape[axis] == 0 and size != 0:
        raise ShapeError(f"cannot resize an empty axis. Received: {tuple(x.shape)}, axis {axis}")
    return size, axis, *rest


@resize_axis.infer
def _(x, size, axis, mode, align_corners, scale):
    return TensorType(_resized(x.shape, axis, size), x.dtype)


@resize_axis.eval
@through_float32
def _(x, size, axis, mode, align_corners, scale):
    if size == x.shape[axis] and scale is None:
        return x
    if size == 0:
        return np.zeros(_resized(x.shape, axis, 0), x.dtype)
    if mode == "area":
        where = ranges(x.shape[axis], size)
        return sum_ranges(x, where, axis) / _lengths(where, x, axis)
    return sum_taps(x, taps(x.shape[axis], size, mode, align_corners, scale), axis)


@resize_axis.place
def _(b, x, size, axis, mode, align_corners, scale):
    if not is_known(x.shape):  # its sums would round in another order
        raise UnknownSizeError("resize_axis: the sizes must be known")
    if size == x.shape[axis] and scale is None:
        return x.here()
    if size == 0:
        return None
    if mode != "area":
        return tapped(b, x, axis, taps(x.shape[axis], size, mode, align_corners, scale))
    where = ranges(x.shape[axis], size)
    elements = range_elements(b, b.coordinates[axis], x.shape[axis], where)
    if elements is None:
        return None
    return _sum_at(b, x, axis, elements) / _length_at(b, where, b.coordinates[axis])


def _sum_at(b, x, axis, elements, shared=None):
    """Return the sum of elements along an axis, each over the length of the range it is from."""
    parts, places = [], list(b.coordinates)
    for place, holds in elements:
        places[axis] = place
        found = x.at(*places) if shared is None else x.at(*places) / _length_at(b, shared, place)
        parts.append(found if holds is None else b.select(holds, found, 0))
    return total(parts)


def _length_at(b, where, place):
    lengths = where.stop - where.start
    if (lengths == lengths[0]).all():
        return float(lengths[0])
    real = np.float64 if b.result == np.float64 else np.float32
    return b.table(lengths.astype(real)).at(place)


@resize_axis.vjp("x")
def _(g, x_shape, axis, mode, align_corners, scale):
    return F.resize_axis_adjoint(g, x_shape[axis], axis, mode, align_corners, scale)


@op(general, linear=("y",), method=False, batch=shifted)
def resize_axis_adjoint(
    y: Tensor,
    input_size: int,
    axis: int,
    mode: str = "linear",
    align_corners: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Return the adjoint of `resize_axis` from `input_size` elements, applied to y."""


@resize_axis_adjoint.canon
def _(y, input_size, axis, mode, align_corners, scale):
    size, axis, *rest = _canonical(y, input_size, axis, mode, align_corners, scale, "input_size")
    if size == 0 and y.shape[axis] != 0:
        raise ShapeError(f"an empty axis is not resized to {y.shape[axis]}. Received: input_size=0")
    return size, axis, *rest


@resize_axis_adjoint.infer
def _(y, input_size, axis, mode, align_corners, scale):
    return TensorType(_resized(y.shape, axis, input_size), y.dtype)


@resize_axis_adjoint.eval
@through_float32
def _(y, input_size, axis, mode, align_corners, scale):
    count = y.shape[axis]
    if input_size == count and scale is None:
        return y
    if count == 0:
        return np.zeros(_resized(y.shape, axis, input_size), y.dtype)
    if mode == "area":
        shares = y / _lengths(ranges(input_size, count), y, axis)
        return sum_ranges(shares, covering_ranges(input_size, count), axis)
    table = transposed_taps(input_size, count, mode, align_corners, scale)
    return sum_taps(y, table, axis)


@resize_axis_adjoint.place
def _(b, y, input_size, axis, mode, align_corners, scale):
    count = y.shape[axis]
    if input_size == count and scale is None:
        return y.here()
    if count == 0:
        return None
    if mode != "area":
        table = transposed_taps(input_size, count, mode, align_corners, scale)
        return tapped(b, y, axis, table)
    readers = covering_ranges(input_size, count)
    elements = range_elements(b, b.coordinates[axis], count, readers)
    if elements is None:
        return None
    return _sum_at(b, y, axis, elements, ranges(input_size, count))


@resize_axis_adjoint.vjp("y")
def _(g, y_shape, axis, mode, align_corners, scale):
    return F.resize_axis(g, y_shape[axis], axis, mode, align_corners, scale)


# -- kernels ----------------------------------------------------------------------------------


def sum_taps(x: Array, table: Taps, axis: int) -> Array:
    """Return the weighted sum of the elements at the taps along an axis."""
    if table.weights is None:
        return x.take(table.positions[0], axis)
    weights = table.weights.astype(x.dtype).reshape(len(table.weights), *_column(x, axis))
    total: Array = x.take(table.positions[0], axis) * weights[0]
    for positions, weight in zip(table.positions[1:], weights[1:], strict=True):
        part = x.take(positions, axis)
        part *= weight
        total += part
    if table.unread is not None and table.unread.size:
        unread: Any = (*(slice(None),) * axis, table.unread)
        total[unread] = 0  # and not 0 * inf
    return total


def sum_ranges(x: Array, where: Ranges, axis: int) -> Array:
    """Return the sums of x over ranges along an axis, which may overlap.

    reduceat sums from each index to the next: starts and stops are interleaved, and the sums
    between a stop and the next start are left out.
    """
    start, stop = where
    if np.all(stop - start == 1):
        return x.take(start, axis)
    if np.array_equal(start[1:], stop[:-1]):
        return np.add.reduceat(x, start, axis)
    size = x.shape[axis]
    if np.any(stop[:-1] == size):  # reduceat takes no index beyond the end: make one more element
        zero = np.zeros(_resized(x.shape, axis, 1), x.dtype)
        x = np.concatenate([x, zero], axis)
    bounds = np.stack([start, stop], axis=1).reshape(-1)
    if bounds[-1] == x.shape[axis]:
        bounds = bounds[:-1]
    sums = np.add.reduceat(x, bounds, axis)
    return sums[(*(slice(None),) * axis, slice(None, None, 2))]


def _lengths(where: Ranges, like: Array, axis: int) -> Array:
    return (where.stop - where.start).astype(like.dtype).reshape(_column(like, axis))


def _column(x: Array, axis: int) -> tuple[int, ...]:
    return (-1, *(1,) * (x.ndim - axis - 1))


def _resized(shape: Shape, axis: int, size: int) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


# -- checks -----------------------------------------------------------------------------------


def _canonical(
    x: Any, size: Any, axis: Any, mode: Any, align_corners: Any, scale: Any, what: str = "size"
) -> tuple[Any, ...]:
    size, axis = as_int(size, what), normalize_axis(axis, x.ndim)
    if surely_less(size, 0):
        raise ArgumentError(f"{what} must not be negative. Received: {size}")
    if mode not in MODES:
        raise ArgumentError(f"mode must be one of {', '.join(MODES)}. Received: {mode!r}")
    if align_corners is not True and align_corners is not False:
        raise ArgumentTypeError(f"align_corners must be True or False. Received: {align_corners!r}")
    if not is_float(x.dtype) and not mode.startswith("nearest"):
        raise DTypeError(f"mode {mode!r} needs floating-point values. Received: {x.dtype}")
    return size, axis, mode, align_corners, _as_scale(scale)


def _as_scale(scale: Any) -> float | None:
    if scale is None:
        return None
    if isinstance(scale, bool) or not isinstance(scale, (int, float, np.number)):
        raise ArgumentTypeError(f"scale must be a number. Received: {scale!r}")
    if not 0 < scale < np.inf:
        raise ArgumentError(f"scale must be positive and finite. Received: {scale!r}")
    return float(scale)


# -- samples ----------------------------------------------------------------------------------


def _settings() -> list[dict[str, Any]]:
    plain = [{"mode": mode} for mode in MODES]
    aligned = [{"mode": mode, "align_corners": True} for mode in ("linear", "cubic")]
    return [*plain, *aligned, {"mode": "linear", "scale": 0.4}, {"mode": "nearest", "scale": 0.7}]


@resize_axis.samples
def _(s):
    for settings in _settings():
        for size, count in ((3, 5), (5, 3), (4, 2), (3, 1), (1, 3), (3, 3)):
            yield Sample(s.real(2, size), axis=1, size=count, **settings)
    yield Sample(s.real(2, 3, 2), 4, 1)
    yield Sample(s.strided(3, 4), 5, 0, "area", label="non-contiguous")
    yield Sample(s.real(2, 3), 0, -1, label="to nothing")
    yield Sample(s.real(0, 3), 2, 1, "area", label="empty")
    yield Sample(s.integers(2, 3), 5, 1, "nearest", grad=0, label="integers")


@resize_axis.error_samples
def _(s):
    x = s.real(2, 3)
    yield ErrorSample(x, 4, 2, error=ValueError, match="axis 2 is out of range")
    yield ErrorSample(x, -1, 1, error=ValueError, match="size must not be negative.*-1")
    yield ErrorSample(x, 2, 1, "lanczos", error=ValueError, match="'lanczos'")
    yield ErrorSample(x, 2, 1, scale=0.0, error=ValueError, match="scale must be positive")
    yield ErrorSample(x, 2, 1, align_corners=2, error=TypeError, match="align_corners must be")
    yield ErrorSample(s.integers(2, 3), 2, 1, error=TypeError, match="'linear'.*int64")
    yield ErrorSample(s.real(2, 0), 2, 1, error=ValueError, match=r"empty axis.*\(2, 0\)")


@resize_axis_adjoint.samples
def _(s):
    for settings in _settings():
        for size, count in ((3, 5), (5, 3), (1, 3)):
            yield Sample(s.real(2, count), axis=1, input_size=size, **settings)
    yield Sample(s.real(2, 0), 3, 1, label="from nothing")


@resize_axis_adjoint.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), 0, 1, error=ValueError, match="input_size=0")
    yield ErrorSample(s.real(2, 3), 2, 5, error=ValueError, match="axis 5 is out of range")
