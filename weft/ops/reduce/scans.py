"""Running sums and products along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dim import may_equal
from ...core.dtype import DType, as_dtype, float32, float64, is_float, is_half
from ...core.errors import AxisError, ShapeError
from ...core.op import F, op, reduction
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, normalize_axis
from ...core.sums import widened
from ...core.tensor import Tensor
from ._common import as_flag
from .sums import total_dtype


@op(reduction, linear=("x",), aliases=("cumulative_sum",), work="result")
def cumsum(
    x: Tensor, axis: int | None = None, *, exclusive: bool = False, reverse: bool = False
) -> Tensor:
    """Return running sums along an axis, which a vector need not name.

    exclusive leaves each element out of its own sum; reverse sums from the end. Integers and truth
    values add up in int64, floats in float64; each sum is then rounded. dtype= casts the elements
    first.

    >>> import weft as wf
    >>> wf.cumsum(wf.tensor([1, 2, 3]))
    tensor([1, 3, 6])
    """


@cumsum.by_keywords()
def _(x, axis=None, exclusive=False, reverse=False, dtype=None):
    return F.cumsum(_in_dtype(x, dtype), axis, exclusive=exclusive, reverse=reverse)


def _in_dtype(x, dtype):
    return x if dtype is None else F.cast(x, as_dtype(dtype))


@cumsum.eval
def _(x, axis, exclusive, reverse):
    return scan(np.add, x, axis, exclusive, reverse, float64)


@cumsum.scan
def _(b, x, axis, exclusive, reverse):
    # A sum of float32 stops growing at 2**24 times its terms, and there are no blocks to add up.
    wide = float64 if is_float(b.result) else b.result
    total = b.carry(0, wide)
    after = b.next(total, total + b.cast(x, wide))
    return b.cast(total if exclusive else after, b.result)


@cumsum.vjp("x")
def _(g, axis, exclusive, reverse):
    return F.cumsum(g, axis, exclusive=exclusive, reverse=not reverse)


@op(reduction, aliases=("cumulative_prod",), work="result")
def cumprod(
    x: Tensor, axis: int | None = None, *, exclusive: bool = False, reverse: bool = False
) -> Tensor:
    """Return running products along an axis, which a vector need not name.

    exclusive leaves each element out of its own product; reverse multiplies from the end. The
    gradient is exact at zeros. dtype= casts the elements first.
    """


@cumprod.by_keywords()
def _(x, axis=None, exclusive=False, reverse=False, dtype=None):
    return F.cumprod(_in_dtype(x, dtype), axis, exclusive=exclusive, reverse=reverse)


@cumprod.eval
def _(x, axis, exclusive, reverse):
    wide = float32 if is_half(x.dtype) else x.dtype
    return scan(np.multiply, x, axis, exclusive, reverse, wide)


@cumprod.scan
def _(b, x, axis, exclusive, reverse):
    product = b.carry(1, b.result)
    after = b.next(product, product * b.cast(x, b.result))
    return product if exclusive else after


@cumprod.vjp("x")
def _(g, x, axis, exclusive, reverse):
    # d out_j / d x_i = (product before i) * (product from i+1 to j), so that with the linear
    # recurrence below nothing is divided by x_i, which may be zero.
    before = F.cumprod(x, axis, exclusive=True, reverse=reverse)
    if exclusive:
        return before * F.linear_recurrence(x, g, axis, reverse=not reverse)
    return before * (g + F.linear_recurrence(x, x * g, axis, reverse=not reverse))


def _canon_scan(x, axis, exclusive, reverse):
    flags = as_flag(exclusive, "exclusive"), as_flag(reverse, "reverse")
    return scan_axis(x, axis), *flags


def _scan_type(x, axis, exclusive, reverse):
    return TensorType(x.shape, total_dtype(x.dtype))


def _scan_samples(s):
    yield Sample(s.real(4))
    yield Sample(s.real(1))
    yield Sample(s.real(2, 3), axis=0)
    yield Sample(s.real(2, 3), axis=-1)
    for exclusive, reverse in ((True, False), (False, True), (True, True)):
        yield Sample(s.real(4), exclusive=exclusive, reverse=reverse)
        yield Sample(s.real(2, 3), axis=1, exclusive=exclusive, reverse=reverse)
    yield Sample(s.real(0), label="empty")
    yield Sample(s.real(2, 0, 3), axis=1, exclusive=True, label="empty")
    yield Sample(np.array([1.5, 0.0, -2.0, 0.0, 3.0]), label="zeros")
    yield Sample(s.strided(2, 3), axis=1, label="non-contiguous")
    yield Sample(s.integers(2, 3, dtype=np.int8), axis=1, label="integers")
    yield Sample(s.booleans(4), label="truth values")


def _scan_errors(s):
    yield ErrorSample(s.real(2, 3), error=ValueError, match=r"name the axis.*\(2, 3\)")
    yield ErrorSample(s.real(2, 3), axis=2, error=IndexError, match="axis 2 is out of range")
    yield ErrorSample(s.real(), axis=0, error=IndexError, match="0-d")
    yield ErrorSample(s.real(3), exclusive=1, error=TypeError, match="exclusive.*Received: 1")


for _scan in (cumsum, cumprod):
    _scan.canon(_canon_scan)
    _scan.infer(_scan_type)
    _scan.samples(_scan_samples)
    _scan.error_samples(_scan_errors)


@op(reduction, promote="common", method=False, public=True)
def linear_recurrence(
    a: Tensor, b: Tensor, axis: int | None = None, *, reverse: bool = False
) -> Tensor:
    """Return the states y[0] = 0, y[i+1] = a[i] * y[i] + b[i] along an axis, without the last one.

    reverse runs from the end. Derivatives of running products are of this form, and so are linear
    recurrent layers; its own gradient is the same recurrence run the other way.

    >>> import weft as wf
    >>> wf.linear_recurrence(wf.tensor([2.0, 2.0, 2.0]), wf.tensor([1.0, 1.0, 1.0]))
    tensor([0., 1., 3.])
    """


@linear_recurrence.canon
def _(a, b, axis, reverse):
    if a.shape != b.shape and not may_equal(a.shape, b.shape):
        raise ShapeError(
            f"a and b must have the same shape. Received: {tuple(a.shape)} and {tuple(b.shape)}"
        )
    return scan_axis(a, axis), as_flag(reverse, "reverse")


@linear_recurrence.infer
def _(a, b, axis, reverse):
    return a


@linear_recurrence.scan
def _(builder, a, b, axis, reverse):
    state = builder.carry(0, builder.result)
    builder.next(state, a * state + b)
    return state


@linear_recurrence.eval
def _(a, b, axis, reverse):
    order = slice(None, None, -1 if reverse else 1)
    factors, terms = (np.moveaxis(widened(x), axis, 0)[order] for x in (a, b))
    states = np.zeros_like(terms)
    for i in range(len(terms) - 1):
        np.multiply(factors[i], states[i], out=states[i + 1 : i + 2])
        states[i + 1] += terms[i]
    return np.moveaxis(states[order], 0, axis).astype(a.dtype, copy=False)


@linear_recurrence.vjp("a")
def _(g, out, a, axis, reverse):
    return out * F.linear_recurrence(a, g, axis, reverse=not reverse)


@linear_recurrence.vjp("b")
def _(g, a, axis, reverse):
    return F.linear_recurrence(a, g, axis, reverse=not reverse)


@linear_recurrence.samples
def _(s):
    for reverse in (False, True):
        yield Sample(s.real(4), s.real(4), reverse=reverse)
        yield Sample(s.real(2, 3), s.real(2, 3), axis=0, reverse=reverse)
        yield Sample(s.real(2, 3), s.real(2, 3), axis=1, reverse=reverse)
    yield Sample(s.real(1), s.real(1))
    yield Sample(s.real(0), s.real(0), label="empty")
    yield Sample(s.strided(2, 3), s.strided(2, 3), axis=1, label="non-contiguous")


@linear_recurrence.error_samples
def _(s):
    yield ErrorSample(s.real(3), s.real(2), error=ValueError, match=r"\(3,\) and \(2,\)")
    yield ErrorSample(s.real(2, 3), s.real(2, 3), error=ValueError, match="name the axis")


def scan_axis(x: Any, axis: Any) -> int:
    """Return the axis of a running reduction; only a vector may leave it out."""
    if axis is not None:
        return normalize_axis(axis, x.ndim)
    if x.ndim != 1:
        raise AxisError(
            f"name the axis to run along, or flatten the tensor first. Received: shape "
            f"{tuple(x.shape)} and axis=None"
        )
    return 0


def scan(ufunc: np.ufunc, x: Any, axis: int, exclusive: bool, reverse: bool, wide: DType) -> Any:
    """Accumulate by a ufunc, floats in a dtype as wide as given."""
    order = (slice(None),) * axis + (slice(None, None, -1 if reverse else 1),)
    result = total_dtype(x.dtype)
    running = ufunc.accumulate(x[order], axis=axis, dtype=wide if is_float(result) else result)
    if exclusive:
        running = _shifted(running, axis, ufunc.identity)
    return running[order].astype(result, copy=False)


def _shifted(running: Any, axis: int, first: Any) -> Any:
    """Return running values moved on by one place, with the identity at the start."""
    lead = (slice(None),) * axis
    shifted = np.empty_like(running)
    shifted[(*lead, slice(None, 1))] = first
    shifted[(*lead, slice(1, None))] = running[(*lead, slice(None, -1))]
    return shifted
