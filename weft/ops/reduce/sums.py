"""Sums, means and counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dim import Dim, may_stretch
from ...core.division import Division
from ...core.dtype import DType, as_dtype, int64, is_float, uint64
from ...core.errors import ShapeError
from ...core.op import F, composite, op, reduction
from ...core.samples import ErrorSample, Sample
from ...core.shape import Axes, Shape, TensorType, as_shape, broadcast_axes
from ...core.sums import sum_array_to
from ...core.tensor import Tensor
from .._halves import rounded_once
from ._common import (
    canon_reduction,
    count_of,
    reduced_type,
    reduction_samples,
    reduction_text,
    spread,
)


@op(reduction, linear=("x",), result="any", combines="sum")
def sum(
    x: Tensor, axis: Axes = None, keepdims: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Return the sum over the given axes (all of them by default).

    Integers and truth values add up in int64 (uint64 if unsigned), 16-bit floats in float32 before
    the result is rounded. The sum of no elements is 0.

    >>> import weft as wf
    >>> wf.sum(wf.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    tensor([4., 6.])
    """


@sum.spelling
def _(types, axis, keepdims, dtype):
    return None if dtype is not None else reduction_text("np.sum", types, axis, keepdims)


@sum.canon
def _(x, axis, keepdims, dtype):
    return *canon_reduction(x, axis, keepdims), None if dtype is None else as_dtype(dtype)


@sum.infer
def _(x, axis, keepdims, dtype):
    return reduced_type(x, axis, keepdims, dtype or total_dtype(x.dtype))


@sum.vjp("x")
def _(g, x_shape, x_dtype, axis, keepdims):
    if g.dtype != x_dtype:
        g = F.cast(g, x_dtype)
    return spread(g, x_shape, axis, keepdims)


sum.lower(lambda b, x, axis, keepdims, dtype: b.reduce("sum", b.cast(x, b.result)))


@sum.samples
def _(s):
    yield from reduction_samples(s)
    yield Sample(s.booleans(2, 3), axis=1, label="truth values count in int64")
    yield Sample(s.integers(2, 3, dtype=np.int8, low=100, high=127), label="int8 beyond 127")
    yield Sample(s.integers(4, dtype=np.uint8), label="uint8")
    yield Sample(np.full(3000, 1.0, np.float16), label="float16 beyond 2048", grad=0)
    yield Sample(s.real(3), dtype=np.float32, grad=0, label="dtype")
    yield Sample(s.real(3) * 4, dtype=np.int64, grad=0, label="dtype")


@sum.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), axis=2, error=IndexError, match="axis 2 is out of range")
    yield ErrorSample(s.real(2, 3), axis=(0, -2), error=ValueError, match="more than once")
    yield ErrorSample(s.real(3), axis=0.5, error=TypeError, match="Received: 0.5")
    yield ErrorSample(s.real(3), keepdims=2, error=TypeError, match="keepdims .*Received: 2")
    yield ErrorSample(s.real(3), dtype="text", error=TypeError, match="Received: 'text'")


def total_dtype(dtype: DType) -> DType:
    """Return the dtype in which sums and products of a dtype are given."""
    if is_float(dtype):
        return dtype
    return uint64 if dtype.kind == "u" else int64


@op(reduction, linear=("x",), promote="float", combines="mean")
def mean(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return the arithmetic mean over the given axes (all of them by default).

    Integers give the default float; dtype= casts the elements first. The mean of no elements is
    nan.

    >>> import weft as wf
    >>> wf.mean(wf.tensor([1, 2, 6]))
    tensor(3.)
    """


@mean.spelling
def _(types, axis, keepdims):
    plain = types[0].dtype.kind == "f" and types[0].dtype.itemsize > 2 and 0 not in types[0].shape
    return reduction_text("np.mean", types, axis, keepdims) if plain else None


@mean.by_keywords()
def _(x, axis=None, keepdims=False, dtype=None):
    return F.mean(x if dtype is None else F.cast(x, as_dtype(dtype)), axis, keepdims)


mean.canon(canon_reduction)
mean.infer(reduced_type)


@mean.vjp("x")
def _(g, x_shape, axis, keepdims):
    count: Any = count_of(x_shape, axis)
    # Of no elements there is no gradient, whatever is divided by.
    return spread(g / (count if isinstance(count, Dim) else count or 1), x_shape, axis, keepdims)


@mean.lower
def _(b, x, axis, keepdims):
    return b.reduce("sum", x) / b.number(_divisor, b.count)


def _divisor(count: int) -> float:
    return count or float("nan")


@mean.samples
def _(s):
    yield from reduction_samples(s)
    yield Sample(s.integers(2, 3), axis=0, label="integers")
    yield Sample(s.booleans(3), label="truth values")
    yield Sample(np.full(4, 60000.0, np.float16), label="float16 sum overflows", grad=0)


@mean.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), axis=-3, error=IndexError, match="axis -3 is out of range")
    yield ErrorSample(s.real(), axis=0, error=IndexError, match="0-d")
    yield ErrorSample(s.real(3), keepdims="no", error=TypeError, match="Received: 'no'")


@op(reduction, linear=("x",), method=False)
def sum_to(x: Tensor, shape: Shape) -> Tensor:
    """Return x summed over the axes along which `shape` broadcasts to x's shape.

    The adjoint of `broadcast_to`: `sum_to(g, x.shape)` is the gradient of `broadcast_to(x, ...)`.
    """


@sum_to.canon
def _(x, shape):
    shape = as_shape(shape)
    if shape != x.shape:
        _check_broadcasts(shape, tuple(x.shape))
    return (shape,)


@sum_to.spelling
def _(types, shape):
    lead = len(types[0].shape) - len(shape)
    if types[0].dtype.kind != "f" or types[0].dtype.itemsize == 2:
        return None
    if types[0].shape == shape:
        return "{x}"
    if types[0].shape[lead:] == shape:
        return reduction_text("np.sum", types, tuple(range(lead)), keepdims=False)
    text = reduction_text("np.sum", types, broadcast_axes(shape, types[0].shape), keepdims=True)
    return f"{text}.reshape({shape})" if lead else text


@sum_to.infer
def _(x, shape):
    return TensorType(shape, x.dtype)


@sum_to.eval  # its axes follow from shapes
def _(x, shape):
    return sum_array_to(x, shape).astype(x.dtype, copy=False)


@sum_to.vjp("x")
def _(g, x_shape):
    return F.broadcast_to(g, x_shape)


sum_to.lower(lambda b, x, shape: b.reduce("sum", x))


@sum_to.division
def _(x, shape):
    lead = x.ndim - len(shape)
    kept = tuple(i + lead if shape[i] == x.shape[i + lead] else None for i in range(len(shape)))
    sums: dict[Any, Any] = {i: "sum" for i in range(x.ndim) if i not in kept}
    labels = tuple(range(x.ndim))
    return Division([labels], kept, sums, lambda at, x: F.sum_to(x, at.shape))


@sum_to.batch
def _(x, shape, examples):
    ones = (1,) * (x.ndim - 1 - len(shape))
    return F.reshape(F.sum_to(x, (examples, *ones, *shape)), (examples, *shape))


@sum_to.samples
def _(s):
    shapes = [((2, 3), ()), ((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 3), (2, 3)), ((), ())]
    shapes += [((4, 2, 3), (2, 1)), ((1, 3), (1, 1)), ((0, 3), (1, 3)), ((2, 1, 3), (1, 1))]
    for big, small in shapes:
        yield Sample(s.real(*big), small)
    yield Sample(s.strided(2, 3), (3,), label="non-contiguous")
    yield Sample(s.integers(2, 3), (1, 3), label="integers")


@sum_to.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), (2,), error=ValueError, match=r"\(2,\) .*\(2, 3\)")
    yield ErrorSample(s.real(3), (2, 3), error=ValueError, match=r"\(2, 3\) .*\(3,\)")
    yield ErrorSample(s.real(3), "ab", error=TypeError, match="Received: 'a'")


def _check_broadcasts(shape: Shape, full: Shape) -> None:
    ends = zip(reversed(shape), reversed(full), strict=False)
    if len(shape) > len(full) or not all(may_stretch(*pair) for pair in ends):
        raise ShapeError(
            f"shape {shape} does not broadcast to the tensor's shape {full}, so there is nothing "
            "to sum over"
        )


@op(reduction, combines="sum")
def count_nonzero(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return the number of elements other than zero (nan counts) as int64."""


count_nonzero.canon(canon_reduction)


@count_nonzero.infer
def _(x, axis, keepdims):
    return reduced_type(x, axis, keepdims, int64)


count_nonzero.lower(lambda b, x, axis, keepdims: b.reduce("sum", b.cast(b.truth(x), b.result)))


@count_nonzero.expand  # sums have kernels for all axes
def _(x, axis, keepdims):
    return F.sum(F.cast(F.not_equal(x, F.zeros_like(x)), int64), axis, keepdims)


@count_nonzero.samples
def _(s):
    yield from reduction_samples(s, s.booleans, grad=0)
    yield Sample(np.array([0.0, -0.0, 1.0, np.nan, np.inf]), grad=0)
    yield Sample(s.integers(2, 3, high=2), axis=1)


@count_nonzero.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), axis=5, error=IndexError, match="axis 5 is out of range")
    yield ErrorSample(s.real(2), axis="x", error=TypeError, match="Received: 'x'")


@composite(method=True)
def nansum(x: Any, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None) -> Any:
    """Return the sum over the given axes, taking nan as zero; dtype= casts the elements first."""
    x = x if dtype is None else F.cast(x, as_dtype(dtype))
    if not is_float(x.dtype):
        return F.sum(x, axis, keepdims)
    return F.sum(F.where(F.isnan(x), F.zeros_like(x), x), axis, keepdims)


@composite(method=True)
@rounded_once
def nanmean(x: Any, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None) -> Any:
    """Return the mean over the given axes of the elements that are not nan (nan if all are)."""
    x = x if dtype is None else F.cast(x, as_dtype(dtype))
    if not is_float(x.dtype):
        return F.mean(x, axis, keepdims)
    present = F.cast(~F.isnan(x), x.dtype)
    return nansum(x, axis, keepdims) / F.sum(present, axis, keepdims)
