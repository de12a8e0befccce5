"""Powers and roots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtype import bool_, int8
from ...core.errors import ArgumentError, DTypeError
from ...core.op import F, elementwise, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType
from ...core.tensor import Tensor
from .._operands import constant
from ._shared import positive_samples


@op(elementwise, promote="common", aliases=("power",), operator="__pow__")
def pow(x: Tensor, y: Tensor) -> Tensor:
    """Return x ** y.

    0 ** 0 is 1. A negative base with an exponent that is not whole gives NaN; with a whole one its
    power is real, but the derivative with respect to the exponent is NaN. At a base of 0 that
    derivative is taken as 0 for exponents >= 0. Integers to negative integers are refused.

    >>> import weft as wf
    >>> wf.pow(wf.tensor([1.0, 2.0, 3.0]), 2)
    tensor([1., 4., 9.])
    """


def _cube(x):
    return x * x * x


def _fourth(x):
    return np.square(np.square(x))


# Exponents for which a few multiplications or one instruction do the work of exp and log.
_SHORTCUTS: dict[float, Callable[[Any], Any]] = {
    2.0: np.square,
    3.0: _cube,
    4.0: _fourth,
    0.5: np.sqrt,
    -1.0: np.reciprocal,
}


@pow.shortcut  # the same by operators, which have machine code for large arrays
def _(y):
    found = {2.0: F.square, 3.0: _large_cube, 4.0: _large_fourth, 0.5: F.sqrt, -1.0: F.reciprocal}
    return found.get(y)


def _large_cube(x):
    return F.mul(F.square(x), x)


def _large_fourth(x):
    return F.square(F.square(x))


@pow.eval  # which exponent it is shows in its value, not in its dtype
def _(x, y):
    if isinstance(y, np.ndarray) and y.ndim == 0 and y.dtype.kind == "f":
        shortcut = _SHORTCUTS.get(y.item())
        if shortcut is not None:
            return shortcut(x)
    elif getattr(x, "dtype", None) == bool_ and getattr(y, "dtype", None) == bool_:
        raise DTypeError("truth values have no powers; cast them first. Received: dtype bool")
    try:
        return np.power(x, y)
    except ValueError as error:
        if "negative integer powers" not in str(error):
            raise
        raise ArgumentError(
            "integers cannot be raised to negative integers; cast the base to a float first. "
            f"Received: a smallest exponent of {np.min(y)}"
        ) from None


@pow.partial("x")
def _(x, y):
    if isinstance(y, np.ndarray) and y.ndim == 0:
        return _slope(x, y.item())
    # An exponent of 0 has slope 0 even at x = 0, where y * x**(y - 1) would be 0 * inf.
    return y * F.pow(x, F.where(y == 0, 1, y - 1))


def _slope(x, exponent):
    """Return d(x**exponent)/dx of raw arrays for an exponent known as a number."""
    if exponent == 2.0:
        return 2 * x
    if exponent == 0.0:
        return F.zeros_like(x)
    return constant(exponent, x) * F.pow(x, np.array(exponent - 1.0, x.dtype))


@pow.partial("y")
def _(x, y, out):
    # Where the power is constantly zero (or 1, at 0**0) a base of 1 stands in: its logarithm is 0,
    # and no infinity can reach a higher derivative.
    return out * F.log(F.where((x == 0) & (y >= 0), 1, x))


@pow.lower
def _(b, x, y):
    lowered = _LOWERED.get(y.data) if y.kind == "const" else None
    return b.pow(x, y) if lowered is None else lowered(b, x)


_LOWERED: dict[Any, Callable[[Any, Any], Any]] = {
    2.0: lambda b, x: x * x,
    3.0: lambda b, x: x * x * x,
    4.0: lambda b, x: (x * x) * (x * x),
    0.5: lambda b, x: b.sqrt(x),
}


@pow.samples
def _(s):
    yield from s.binary(s.positive, s.real)
    for exponent in (2, 3, 4, 0.5, -1, -2, 1.7, 1, 0):
        yield Sample(s.positive(3), exponent, label="number")
    yield Sample(s.away(2, 3), np.array([2.0, 3.0, -1.0]), grad=0, label="negative base")
    yield Sample(s.away(3), 3, label="negative base, number")
    yield Sample(np.zeros(3), np.array([0.0, 1.0, 2.5]), grad=0, label="base zero")
    yield Sample(s.integers(2, 3), s.integers(3), label="integers")


@pow.error_samples
def _(s):
    yield ErrorSample(s.integers(3), -2, error=ValueError, match="smallest exponent of -2")
    yield ErrorSample(s.booleans(2), s.booleans(2), error=TypeError, match="dtype bool")


@op(elementwise, total=True, never_negative=True, numpy="{x} ** 2", scalar=True)
def square(x: Tensor) -> Tensor:
    """Return x * x."""


@square.partial("x")
def _(x):
    return 2 * x


@square.infer
def _(x):
    return TensorType(x.shape, int8 if x.dtype == bool_ else x.dtype)  # as NumPy's own


@square.samples
def _(s):
    yield from s.unary()
    yield Sample(s.integers(3), label="integers")
    yield Sample(s.booleans(3), label="booleans")


@op(elementwise, promote="float", never_negative=True, exact=True, scalar=True)
def sqrt(x: Tensor) -> Tensor:
    """Return the square root of each element: NaN below 0, and an infinite derivative at 0.

    >>> import weft as wf
    >>> wf.sqrt(wf.tensor([4.0, 9.0]))
    tensor([2., 3.])
    """


@sqrt.vjp("x")
def _(g, out):
    return g / (2 * out)


@op(elementwise, promote="float", scalar=True)
def rsqrt(x: Tensor) -> Tensor:
    """Return 1 / sqrt(x) for each element."""


@rsqrt.partial("x")
def _(out):
    return out * out * out / -2


@op(elementwise, promote="float", scalar=True)
def reciprocal(x: Tensor) -> Tensor:
    """Return 1 / x for each element; integers become the default float first."""


@reciprocal.partial("x")
def _(out):
    return -(out * out)


for _record in (sqrt, rsqrt, reciprocal):
    _record.samples(positive_samples)


@op(elementwise, promote="float", scalar=True)
def hypot(x: Tensor, y: Tensor) -> Tensor:
    """Return sqrt(x**2 + y**2) without overflow on the way; the derivative at (0, 0) is 0.

    >>> import weft as wf
    >>> wf.hypot(wf.tensor(3.0), wf.tensor(4.0))
    tensor(5.)
    """


@hypot.partial("x")
def _(x, out):
    return x / F.where(out == 0, 1, out)


@hypot.partial("y")
def _(y, out):
    return y / F.where(out == 0, 1, out)


@hypot.samples
def _(s):
    yield from s.binary(s.away)
    yield Sample(np.array([0.0, 3e30]), np.array([0.0, 4e30]), grad=0, label="extremes")
