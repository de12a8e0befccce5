"""Scattering with a reduction: sums, products, means and extremes of what goes to one place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.batching import shifted
from ...core.dim import may_equal
from ...core.dtype import int64, is_float
from ...core.errors import ArgumentError
from ...core.op import F, composite, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, normalize_axis
from ...core.tensor import Tensor
from .._halves import rounded_once
from .._operands import names_errors
from ._checks import check_integer, check_range, operands
from .gather import along, put_along

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


@composite(method=True)
@names_errors
@rounded_once
def scatter_reduce(
    x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return x with each element combined with the elements of src that `index` sends to it.

    reduce        "sum", "prod", "mean", "amax" or "amin"
    include_self  False: elements that receive anything forget their own value

    Ties of amax and amin share the gradient equally.

    >>> import weft as wf
    >>> x, src = wf.zeros(2), wf.tensor([1.0, 4.0, -2.0])
    >>> wf.scatter_reduce(x, 0, wf.tensor([0, 0, 1]), src, "amax")
    tensor([4., 0.])
    """
    if reduce not in REDUCTIONS:
        raise ArgumentError(f"reduce must be one of {', '.join(REDUCTIONS)}. Received: {reduce!r}")
    x, index, src = operands(x, index, src)
    if tuple(index.shape) != tuple(src.shape) and index.ndim == src.ndim:
        src = src[tuple(slice(size) for size in index.shape)]  # only so much of it is read
    if reduce in ("amax", "amin"):
        largest, own = reduce == "amax", bool(include_self)
        return F.scatter_extreme(x, index, src, dim, largest, own)
    if reduce == "prod":
        return F.scatter_product(x, index, src, dim, bool(include_self))
    counts = F.scatter_add(F.zeros_like(x), dim, index, F.full_like(src, 1))
    start = x if include_self else F.where(counts == 0, x, F.zeros_like(x))
    total: Tensor = F.scatter_add(start, dim, index, src)
    if reduce == "sum":
        return total
    own_count = F.full_like(x, 1) if include_self else F.cast(counts == 0, x.dtype)
    count = counts + own_count
    return total / count if is_float(x.dtype) else F.floor_divide(total, count)


@composite(method=True)
@names_errors
def index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return x with its slices along an axis combined with slices of source, by a 1-D index.

    reduce   "prod", "mean", "amax" or "amin"; otherwise as `scatter_reduce`

    >>> import weft as wf
    >>> x, source = wf.ones((2, 2)), wf.tensor([[2.0, 3.0], [4.0, 5.0]])
    >>> wf.index_reduce(x, 0, wf.tensor([1, 1]), source, "prod")
    tensor([[ 1.,  1.],
            [ 8., 15.]])
    """
    x, index, source = operands(x, index, source)
    check_integer(index)
    axis = normalize_axis(dim, x.ndim, "dim")
    if index.ndim > 1:
        raise ArgumentError(f"index must be 1-D. Received: shape {tuple(index.shape)}")
    spread = (1,) * axis + (-1,) + (1,) * (source.ndim - axis - 1)
    places = F.broadcast_to(F.reshape(index, spread), tuple(source.shape))
    combined: Tensor = scatter_reduce(x, axis, places, source, reduce, include_self=include_self)
    return combined


@op(general, promote=("x", "src"), method=False, batch=shifted)
def scatter_extreme(
    x: Tensor, index: Tensor, src: Tensor, dim: int, largest: bool, include_self: bool
) -> Tensor:
    """Return the largest (or smallest) of each element of x and what `index` sends to it."""


@scatter_extreme.canon
def _(x, index, src, dim, largest, include_self):
    return _checked_axis(x, index, src, dim), bool(largest), bool(include_self)


def _checked_axis(x: Any, index: Any, src: Any, dim: Any) -> int:
    check_integer(index)
    one_shape = may_equal(tuple(index.shape), tuple(src.shape))
    if not (x.ndim == index.ndim == src.ndim and one_shape):
        raise ArgumentError(
            f"index and src must have one shape, with as many dimensions as x, {tuple(x.shape)}. "
            f"Received: index {tuple(index.shape)}, src {tuple(src.shape)}"
        )
    return normalize_axis(dim, x.ndim, "dim")


@scatter_extreme.eval
def _(x, index, src, dim, largest, include_self):
    out, places = x.copy(), along(index, dim)
    choose = np.maximum if largest else np.minimum
    try:
        if not include_self:
            out[places] = src  # any of them: the true extreme follows
        choose.at(out, places, src)
    except IndexError:
        check_range(index, x.shape[dim], dim)
        raise
    return out


@scatter_extreme.scatter
def _(b, x, index, src, dim, largest, include_self):
    if not include_self:
        return None
    return put_along(b, index, src, x.shape[dim], dim, "max" if largest else "min", x)


@scatter_extreme.expand
def _(x, index, src, dim, largest, include_self):
    if include_self:
        return None
    start = _untouched(x, index, src, dim, _least(x.dtype, largest))
    return F.scatter_extreme(start, index, src, dim, largest, True)


def _untouched(x: Any, index: Any, src: Any, dim: int, instead: Any) -> Any:
    """Return x with a number in all elements that something is sent to."""
    counts = F.gather_adjoint(F.full_like(src, 1, dtype=int64), index, tuple(x.shape), dim)
    return F.where(counts == 0, x, F.full_like(x, instead))


def _least(dtype: Any, largest: bool) -> Any:
    """Return what is never the largest, or the smallest, of two."""
    if dtype.kind == "f":
        return -math.inf if largest else math.inf
    limits = np.iinfo(dtype) if dtype.kind != "b" else None
    low, high = (False, True) if limits is None else (limits.min, limits.max)
    return low if largest else high


@scatter_extreme.infer
def _(x, index, src, dim, largest, include_self):
    return TensorType(x.shape, x.dtype)


@scatter_extreme.vjp("x")
def _(g, x, index, src, out, dim, include_self):
    chosen, _, share = _shares(g, x, index, src, out, dim, include_self)
    return F.where(chosen, share, F.zeros_like(share))


@scatter_extreme.vjp("src")
def _(g, x, index, src, out, dim, include_self):
    _, sent, share = _shares(g, x, index, src, out, dim, include_self)
    received = F.gather(share, dim, index)
    return F.where(sent, received, F.zeros_like(received))


def _shares(
    g: Any, x: Any, index: Any, src: Any, out: Any, dim: int, include_self: bool
) -> tuple[Any, Any, Any]:
    """Return where x is the extreme, where src is, and the gradient shared among those."""
    shape = tuple(g.shape)
    sent = src == F.gather(out, dim, index)
    chosen = x == out
    if not include_self:
        touched = F.gather_adjoint(F.full_like(src, 1), index, shape, dim)
        chosen = chosen & (touched == 0)
    winners = F.gather_adjoint(F.cast(sent, g.dtype), index, shape, dim) + F.cast(chosen, g.dtype)
    return chosen, sent, g / F.where(winners == 0, F.full_like(winners, 1), winners)


@scatter_extreme.samples
def _(s):
    for largest in (True, False):
        for own in (True, False):
            values = s.distinct(7)
            yield Sample(values[:3], np.array([0, 2, 0, 2]), values[3:], 0, largest, own)
    values = s.distinct(10)
    yield Sample(
        values[:6].reshape(2, 3),
        np.array([[0, 2], [1, 1]]),
        values[6:].reshape(2, 2),
        1,
        True,
        True,
    )


@scatter_extreme.error_samples
def _(s):
    x, src = s.real(3), s.real(2)
    yield ErrorSample(
        x, np.array([0, 3]), src, 0, True, True, error=IndexError, match=r"index\[1\] = 3 .* size 3"
    )
    yield ErrorSample(
        x, np.array([0]), src, 0, True, True, error=ValueError, match=r"index \(1,\), src \(2,\)"
    )


@op(general, promote=("x", "src"), method=False, batch=shifted)
def scatter_product(
    x: Tensor, index: Tensor, src: Tensor, dim: int, include_self: bool = True
) -> Tensor:
    """Return each element of x times all that `index` sends to it."""


@scatter_product.canon
def _(x, index, src, dim, include_self):
    return _checked_axis(x, index, src, dim), bool(include_self)


@scatter_product.eval
def _(x, index, src, dim, include_self):
    out, places = x.copy(), along(index, dim)
    try:
        if not include_self:
            out[places] = 1
        np.multiply.at(out, places, src)
    except IndexError:
        check_range(index, x.shape[dim], dim)
        raise
    return out


@scatter_product.scatter
def _(b, x, index, src, dim, include_self):
    if not include_self:
        return None
    return put_along(b, index, src, x.shape[dim], dim, "prod", x)


@scatter_product.expand
def _(x, index, src, dim, include_self):
    if include_self:
        return None
    return F.scatter_product(_untouched(x, index, src, dim, 1), index, src, dim, True)


@scatter_product.infer
def _(x, index, src, dim, include_self):
    return TensorType(x.shape, x.dtype)


@scatter_product.vjp("x")
def _(g, x, index, src, dim, include_self):
    others, zeros, counts = _products_of(x, index, src, dim)
    of_sent = F.where(zeros == 0, others, 0)
    return g * (of_sent if include_self else F.where(counts == 0, F.ones_like(g), 0))


@scatter_product.vjp("src")
def _(g, x, index, src, dim, include_self):
    others, zeros, _ = _products_of(x, index, src, dim)
    own = x if include_self else F.ones_like(x)
    sent = F.gather(g * own * others, dim, index)
    zeros = F.gather(zeros, dim, index)
    is_zero = src == 0
    rest = F.where(is_zero, sent, sent / F.where(is_zero, F.ones_like(src), src))
    return F.where(zeros - F.cast(is_zero, zeros.dtype) == 0, rest, 0)


def _products_of(x: Any, index: Any, src: Any, dim: int) -> tuple[Any, Any, Any]:
    """Return for each place the product of what is sent but zeros, how many zeros, how many."""
    is_zero = src == 0
    shape = tuple(x.shape)
    ones = F.ones_like(x)
    products = F.scatter_product(ones, index, F.where(is_zero, F.ones_like(src), src), dim)
    zeros = F.gather_adjoint(F.cast(is_zero, x.dtype), index, shape, dim)
    return products, zeros, F.gather_adjoint(F.ones_like(src), index, shape, dim)


@scatter_product.samples
def _(s):
    index = np.array([0, 2, 0, 2])
    for own in (True, False):
        yield Sample(s.away(3), index, s.away(4), 0, own)
    x, src = s.away(2, 3), s.away(2, 2)
    yield Sample(x, np.array([[0, 2], [1, 1]]), src, 1, label="other axis")
    zero = np.array([0.0, 2.0, 3.0, 0.0])
    yield Sample(s.away(3), index, zero, 0, grad=0, label="zeros")


@scatter_product.error_samples
def _(s):
    x, src = s.real(3), s.real(2)
    yield ErrorSample(x, np.array([0, 3]), src, 0, error=IndexError, match=r"index\[1\] = 3")
    yield ErrorSample(x, np.array([0]), src, 0, error=ValueError, match=r"index \(1,\), src \(2,\)")
