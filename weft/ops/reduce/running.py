"""Running extrema and running log-sums of exponentials along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtype import float64, int64
from ...core.op import F, op, reduction
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType
from ...core.tensor import Tensor
from .._pairs import Pair, one_axis
from ..elementwise.exponential import log_of_sum
from .scans import scan_axis


@op(reduction)
def cummax(x: Tensor, axis: int | None = None) -> Tensor:
    """Return the largest element so far along an axis, which a vector need not name.

    Only values are returned; `cumargmax` gives positions, and `dim=` both, as PyTorch does. nan
    stays once met. The gradient goes to the element that set the value, to the last one among
    equals.

    >>> import weft as wf
    >>> wf.cummax(wf.tensor([1, 3, 2, 4]))
    tensor([1, 3, 3, 4])
    >>> wf.cummax(wf.tensor([1, 3, 2, 4]), dim=0).indices
    tensor([0, 1, 1, 3])
    """


@op(reduction)
def cummin(x: Tensor, axis: int | None = None) -> Tensor:
    """Return the smallest element so far along an axis, which a vector need not name.

    Only values are returned; `cumargmin` gives positions, and `dim=` both, as PyTorch does. nan
    stays once met. The gradient goes to the element that set the value, to the last one among
    equals.
    """


@cummax.by_keywords(pairs=True)
def _(x, dim):
    axis = one_axis("cummax", x, dim)
    return Pair(F.cummax(x, axis), F.cumargmax(x, axis))


@cummin.by_keywords(pairs=True)
def _(x, dim):
    axis = one_axis("cummin", x, dim)
    return Pair(F.cummin(x, axis), F.cumargmin(x, axis))


@op(reduction)
def cumargmax(x: Tensor, axis: int | None = None) -> Tensor:
    """Return where the largest element so far along an axis stands: the last one among equals."""


@op(reduction)
def cumargmin(x: Tensor, axis: int | None = None) -> Tensor:
    """Return where the smallest element so far along an axis stands: the last one among equals."""


@cummax.eval
def _(x, axis):
    return np.maximum.accumulate(x, axis=axis)


@cummin.eval
def _(x, axis):
    return np.minimum.accumulate(x, axis=axis)


@cummax.scan
def _(b, x, axis):
    best = b.carry(_least(x.dtype, False), x.dtype)
    return b.next(best, b.maximum(best, x))


@cummin.scan
def _(b, x, axis):
    best = b.carry(_least(x.dtype, True), x.dtype)
    return b.next(best, b.minimum(best, x))


@cumargmax.scan
def _(b, x, axis):
    return _record(b, x, b.maximum, False)


@cumargmin.scan
def _(b, x, axis):
    return _record(b, x, b.minimum, True)


def _record(b, x, better, smallest):
    best, place = b.carry(_least(x.dtype, smallest), x.dtype), b.carry(0, int64)
    reached = b.next(best, better(best, x))
    is_record = b.eq(x, reached)
    if x.dtype.kind == "f":
        is_record = is_record | b.is_nan(x)
    return b.next(place, b.select(is_record, b.step(), place))


def _least(dtype: Any, smallest: bool) -> Any:
    """Return what every element is better than, or as good as."""
    if dtype.kind == "b":
        return smallest
    if dtype.kind == "f":
        return np.inf if smallest else -np.inf
    limits = np.iinfo(dtype)
    return limits.max if smallest else limits.min


@cumargmax.eval
def _(x, axis):
    return _last_records(x, np.maximum.accumulate(x, axis=axis), axis)


@cumargmin.eval
def _(x, axis):
    return _last_records(x, np.minimum.accumulate(x, axis=axis), axis)


def _last_records(x: Any, running: Any, axis: int) -> Any:
    """Return for each place the latest place at which the running extremum was met."""
    is_record = (x == running) | np.isnan(x)
    places = np.arange(x.shape[axis], dtype=int64)
    places = places.reshape((-1,) + (1,) * (x.ndim - 1 - axis))
    return np.maximum.accumulate(np.where(is_record, places, 0), axis=axis)


@cummax.vjp("x")
def _(g, x, axis):
    return F.gather_adjoint(g, F.cumargmax(x, axis), g.shape, axis)


@cummin.vjp("x")
def _(g, x, axis):
    return F.gather_adjoint(g, F.cumargmin(x, axis), g.shape, axis)


def _canon_running(x, axis):
    return (scan_axis(x, axis),)


def _running_type(x, axis):
    return x


def _position_type(x, axis):
    return TensorType(x.shape, int64)


def _running_samples(s):
    yield Sample(s.distinct(5))
    yield Sample(s.distinct(2, 3), axis=0)
    yield Sample(s.distinct(2, 3, 2), axis=-2)
    yield Sample(s.distinct(0), label="empty")
    yield Sample(s.distinct(4, 6)[::2, ::-1].T, axis=1, label="non-contiguous")
    yield Sample(np.array([1.0, 1.0, 0.0, 1.0]), grad=0, label="ties")
    yield Sample(np.array([1.0, np.nan, 2.0, np.nan, 0.0]), grad=0, label="nan")
    yield Sample(s.integers(2, 4), axis=1, label="integers")


def _running_errors(s):
    yield ErrorSample(s.real(2, 3), error=ValueError, match=r"name the axis.*\(2, 3\)")
    yield ErrorSample(s.real(2, 3), axis=2, error=IndexError, match="axis 2 is out of range")


for _running in (cummax, cummin, cumargmax, cumargmin):
    _running.canon(_canon_running)
    _running.infer(_position_type if _running in (cumargmax, cumargmin) else _running_type)
    _running.samples(_running_samples)
    _running.error_samples(_running_errors)


@op(reduction, promote="float")
def logcumsumexp(x: Tensor, axis: int | None = None) -> Tensor:
    """Return log(cumsum(exp(x))) along an axis, which a vector need not name, without overflow."""


logcumsumexp.canon(_canon_running)
logcumsumexp.infer(_running_type)
logcumsumexp.error_samples(_running_errors)


@logcumsumexp.eval
def _(x, axis):
    return np.logaddexp.accumulate(x.astype(float64), axis=axis).astype(x.dtype, copy=False)


@logcumsumexp.scan
def _(b, x, axis):
    total = b.carry(-np.inf, float64)  # as running sums are
    return b.cast(b.next(total, log_of_sum(b, total, b.cast(x, float64))), b.result)


@logcumsumexp.vjp("x")
def _(g, out, x, axis):
    # With w_i = exp(x_i - out_i), the share of element i in its own sum, a later sum j holds it
    # with w_i * (1 - w_{i+1}) ... (1 - w_j): a recurrence whose factors never exceed 1.
    share = F.exp(x - F.where(out == -np.inf, F.zeros_like(out), out))
    rest = 1 - share
    return share * (g + F.linear_recurrence(rest, rest * g, axis, reverse=True))


@logcumsumexp.samples
def _(s):
    yield Sample(s.real(4))
    yield Sample(s.real(1))
    yield Sample(s.real(2, 3), axis=0)
    yield Sample(s.real(2, 3), axis=-1)
    yield Sample(s.real(0), label="empty")
    yield Sample(np.array([1000.0, -1000.0, 1001.0]), label="would overflow")
    yield Sample(np.array([-np.inf, -np.inf, 1.0, np.inf, 2.0]), grad=0, label="inf")
    yield Sample(s.strided(2, 3), axis=1, label="non-contiguous")
    yield Sample(s.integers(4), label="integers")
