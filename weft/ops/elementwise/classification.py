"""Telling apart NaN, infinities and signs, and comparing within a tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtype import bool_, float64, float_limits, is_float
from ...core.errors import ArgumentError
from ...core.op import F, composite, elementwise, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, broadcast
from ...core.tensor import Tensor
from ._shared import as_number, as_real


@op(elementwise, result="bool", exact=True)
def isnan(x: Tensor) -> Tensor:
    """Return whether each element is NaN; integers never are."""


isnan.eval(np.isnan)  # three quarters of the time of x != x
isnan.lower(lambda b, x: b.is_nan(x))


@op(elementwise, result="bool", exact=True)
def isinf(x: Tensor) -> Tensor:
    """Return whether each element is infinite, of either sign."""


isinf.eval(np.isinf)  # one pass, not two: half the time
isinf.lower(lambda b, x: b.eq(b.abs(x), float("inf")) if x.dtype.kind == "f" else b.ne(x, x))


@op(elementwise, result="bool", exact=True)
def isposinf(x: Tensor) -> Tensor:
    """Return whether each element is positive infinity."""


isposinf.lower(lambda b, x: b.eq(x, float("inf")) if x.dtype.kind == "f" else b.ne(x, x))


@op(elementwise, result="bool", exact=True)
def isneginf(x: Tensor) -> Tensor:
    """Return whether each element is negative infinity."""


isneginf.lower(lambda b, x: b.eq(x, float("-inf")) if x.dtype.kind == "f" else b.ne(x, x))


@op(elementwise, result="bool", exact=True)
def isfinite(x: Tensor) -> Tensor:
    """Return whether each element is neither NaN nor infinite."""


isfinite.eval(np.isfinite)  # one pass, not two: half the time
isfinite.lower(lambda b, x: b.abs(x) < float("inf") if x.dtype.kind == "f" else b.eq(x, x))


@op(elementwise, result="bool")
def signbit(x: Tensor) -> Tensor:
    """Return whether each element carries a minus sign, as -0.0 does."""


@signbit.eval  # two thirds of the time that comparing bits takes
def _(x):
    return np.signbit(x) if x.dtype.kind not in "biu" else x < 0


@signbit.lower
def _(b, x):
    return (x if x.dtype.kind != "f" else b.bits(x, f"int{8 * x.dtype.itemsize}")) < 0


def _samples(s):
    yield from s.unary(grad=0)
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0])
    yield Sample(special, grad=0, label="special values")
    yield Sample(s.integers(3, low=-5), label="integers")
    yield Sample(s.booleans(3), label="booleans")


for _record in (isnan, isinf, isposinf, isneginf, isfinite, signbit):
    _record.samples(_samples)


@op(elementwise)
def nan_to_num(x: Tensor, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    """Return x with NaN and infinities replaced, these by the largest finite values by default.

    The derivative of a replaced element is 0.

    >>> import weft as wf
    >>> wf.nan_to_num(wf.tensor([float("nan"), 1.0]), nan=5.0)
    tensor([5., 1.])
    """


@nan_to_num.canon
def _(x, nan, posinf, neginf):
    # The largest number is that of x's dtype, not of the one in which 16-bit floats are computed.
    largest = float(float_limits(x.dtype).max) if is_float(x.dtype) else 0.0
    return (
        as_number(nan, "nan"),
        largest if posinf is None else as_number(posinf, "posinf"),
        -largest if neginf is None else as_number(neginf, "neginf"),
    )


@nan_to_num.lower
def _(b, x, nan, posinf, neginf):
    if x.dtype.kind != "f":
        return x
    finite = b.select(b.eq(x, np.inf), posinf, b.select(b.eq(x, -np.inf), neginf, x))
    return b.select(b.is_nan(x), nan, finite)


@nan_to_num.partial("x")
def _(x):
    return F.isfinite(x)


@nan_to_num.samples
def _(s):
    yield from s.unary()
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 2.0])
    yield Sample(special, nan=1.0, posinf=2.0, neginf=-3, grad=0, label="replacements")
    yield Sample(special[[0, 3, 4]], grad=0, label="NaN")
    yield Sample(s.integers(3), label="integers")


@nan_to_num.error_samples
def _(s):
    yield ErrorSample(s.real(3), nan="a", error=TypeError, match="nan must be.*'a'")


# -- nearness -------------------------------------------------------------------------------------


@op(elementwise, promote="common", result="bool")
def isclose(
    x: Tensor, y: Tensor, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Return whether |x - y| <= atol + rtol * |y|; infinities of one sign are close.

    >>> import weft as wf
    >>> wf.isclose(wf.tensor([1.0, 2.0]), wf.tensor([1.000001, 2.1]))
    tensor([ True, False])
    """


@isclose.canon
def _(x, y, rtol, atol, equal_nan):
    tolerances = as_real(rtol, "rtol"), as_real(atol, "atol")
    if not min(tolerances) >= 0:
        raise ArgumentError(f"tolerances must not be negative. Received: rtol={rtol}, atol={atol}")
    return (*tolerances, bool(equal_nan))


@isclose.infer
def _(x, y, rtol, atol, equal_nan):
    return TensorType(broadcast(x.shape, y.shape), bool_)


@isclose.lower
def _(b, x, y, rtol, atol, equal_nan):
    if x.dtype.kind == "b":
        return b.eq(x, y)
    if x.dtype.kind != "f":
        x, y = b.cast(x, float64), b.cast(y, float64)
    near = (b.abs(x - y) <= b.abs(y) * rtol + atol) & (b.abs(y) < float("inf"))
    close = near | b.eq(x, y)
    return close | (b.is_nan(x) & b.is_nan(y)) if equal_nan else close


@isclose.samples
def _(s):
    yield from s.binary(grad=0)
    x = np.array([1.0, np.nan, np.inf, -np.inf, 0.0])
    yield Sample(x, x, grad=0, label="special values")
    yield Sample(x, x, equal_nan=True, grad=0, label="equal_nan")
    yield Sample(x, x[::-1], rtol=0.5, atol=1, grad=0, label="tolerances")
    yield Sample(s.integers(3), s.integers(3), label="integers")
    yield Sample(s.booleans(3), s.booleans(3), label="booleans")


@isclose.error_samples
def _(s):
    yield ErrorSample(s.real(2), s.real(2), rtol=-1, error=ValueError, match="rtol=-1")
    yield ErrorSample(s.real(2), s.real(2), atol="a", error=TypeError, match="atol must be.*'a'")


@composite(method=True)
def allclose(
    x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Tell, as a Python bool, whether all elements of x and y are close; see `isclose`.

    >>> import weft as wf
    >>> wf.allclose(wf.tensor([1.0, 2.0]), wf.tensor([1.0, 2.000001]))
    True
    """
    return bool(F.all(F.isclose(x, y, rtol, atol, equal_nan)))
