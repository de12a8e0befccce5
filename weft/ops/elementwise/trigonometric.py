"""Circular functions, their inverses, and angles."""

from __future__ import annotations

import math

import numpy as np

from ...core.op import F, elementwise, op
from ...core.samples import Sample
from ...core.tensor import Tensor
from .._operands import constant


@op(elementwise, promote="float", scalar=True)
def sin(x: Tensor) -> Tensor:
    """Return the sine of each element, in radians."""


@sin.partial("x")
def _(x):
    return F.cos(x)


@op(elementwise, promote="float", scalar=True)
def cos(x: Tensor) -> Tensor:
    """Return the cosine of each element, in radians."""


@cos.partial("x")
def _(x):
    return -F.sin(x)


@op(elementwise, promote="float", scalar=True)
def tan(x: Tensor) -> Tensor:
    """Return the tangent of each element, in radians."""


@tan.partial("x")
def _(out):
    return out * out + 1


@op(elementwise, promote="float", aliases=("arcsin",), scalar=True)
def asin(x: Tensor) -> Tensor:
    """Return the angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1]."""


@asin.partial("x")
def _(x):
    return F.rsqrt((1 - x) * (1 + x))  # 1 - x**2 would cancel near the ends


@op(elementwise, promote="float", aliases=("arccos",), scalar=True)
def acos(x: Tensor) -> Tensor:
    """Return the angle in [0, pi] whose cosine is x; NaN outside [-1, 1]."""


@acos.partial("x")
def _(x):
    return -F.rsqrt((1 - x) * (1 + x))


@op(elementwise, promote="float", aliases=("arctan",), scalar=True)
def atan(x: Tensor) -> Tensor:
    """Return the angle in [-pi/2, pi/2] whose tangent is x."""


@atan.vjp("x")
def _(g, x):
    return g / (x * x + 1)


def _angle_samples(s):
    yield from s.unary(lambda *shape: s.real(*shape, low=-1.2, high=1.2))
    yield Sample(s.integers(3), label="integers")


def _ratio_samples(s):
    yield from s.unary(lambda *shape: s.real(*shape, low=-0.9, high=0.9))
    yield Sample(np.array([-1, 0, 1]), label="integers")
    yield Sample(np.array([-1.5, 1.5]), grad=0, label="outside")


for _record in (sin, cos, tan, atan):
    _record.samples(_angle_samples)
for _record in (asin, acos):
    _record.samples(_ratio_samples)


@op(elementwise, promote="float", aliases=("arctan2",), scalar=True)
def atan2(y: Tensor, x: Tensor) -> Tensor:
    """Return the angle of the point (x, y) in (-pi, pi]. Mind the order: y comes first.

    At the origin the derivatives are taken as 0.

    >>> import weft as wf
    >>> wf.atan2(wf.tensor([1.0, 0.0]), wf.tensor([0.0, -1.0]))
    tensor([1.571, 3.142])
    """


@atan2.partial("y")
def _(y, x):
    r = _radius(x, y)
    return x / r / r


@atan2.partial("x")
def _(y, x):
    r = _radius(x, y)
    return -(y / r / r)


def _radius(x, y):
    """Return the distance from the origin; dividing by it twice overflows later than its square."""
    r = F.hypot(x, y)
    return F.where(r == 0, 1, r)


@atan2.samples
def _(s):
    yield from s.binary(s.away)
    zeros = np.array([0.0, -0.0])
    yield Sample(zeros[:, None], zeros, grad=0, label="origin")


@op(elementwise, promote="float", public=("wf", "special"))
def sinc(x: Tensor) -> Tensor:
    """Return sin(pi x) / (pi x), and 1 at 0.

    >>> import weft as wf
    >>> wf.sinc(wf.tensor([0.0, 0.5]))
    tensor([1.    , 0.6366])
    """


@sinc.lower
def _(b, x):
    # The same sine between -1/2 and 1/2, found without rounding: sin(pi x) is 0 at whole numbers,
    # and pi x, which may overflow, is never made.
    r = x - b.round(x * 0.5) * 2.0
    r = b.select(b.abs(r) > 0.5, b.copysign(b.constant(1.0, x.dtype), r) - r, r)
    is_zero = b.eq(x, 0.0)
    wave = b.sin(r * math.pi) * (1 / math.pi)
    return b.select(is_zero, 1.0, wave / b.select(is_zero, 1.0, x))


@sinc.partial("x")
def _(out, x):
    # Near 0, cos(t) - sin(t)/t with t = pi x cancels, and the Taylor series takes over: at 1/6 its
    # first omitted term is below 1e-18 and the cancellation costs no more than four bits.
    near = abs(x) * 6 < 1
    r = x - F.round(x * constant(0.5, x)) * 2  # the same cosine, and no overflow
    far = (F.cos(r * constant(math.pi, x)) - out) / F.where(near, 1, x)
    t = F.where(near, x, 0) * constant(math.pi, x)
    return F.where(near, _sinc_slope_series(t) * constant(math.pi, x), far)


# d/dt sin(t)/t = sum over k >= 1 of (-1)**k * 2k * t**(2k - 1) / (2k + 1)!
_SINC_SLOPE = [(-1) ** k * 2 * k / math.factorial(2 * k + 1) for k in range(1, 9)]


def _sinc_slope_series(t):
    square = t * t
    total = square * constant(_SINC_SLOPE[-1], t)
    for coefficient in reversed(_SINC_SLOPE[1:-1]):
        total = (total + constant(coefficient, t)) * square
    total = total + constant(_SINC_SLOPE[0], t)
    return t * total


@sinc.samples
def _(s):
    yield from s.unary()
    yield Sample(np.array([0.0, 1e-3, -0.1, 0.15, 1e-30]), label="near zero")
    yield Sample(s.integers(3, high=2), label="integers")


@op(elementwise, promote="float", linear=("x",))
def deg2rad(x: Tensor) -> Tensor:
    """Return angles in degrees as radians."""


deg2rad.lower(lambda b, x: x * (math.pi / 180.0))


@deg2rad.vjp("x")
def _(g):
    return F.deg2rad(g)


@op(elementwise, promote="float", linear=("x",))
def rad2deg(x: Tensor) -> Tensor:
    """Return angles in radians as degrees."""


rad2deg.lower(lambda b, x: x * (180.0 / math.pi))


@rad2deg.vjp("x")
def _(g):
    return F.rad2deg(g)


for _record in (deg2rad, rad2deg):
    _record.samples(_angle_samples)
