"""Hyperbolic functions and their inverses."""

from __future__ import annotations

import numpy as np

from ...core.op import F, elementwise, op
from ...core.samples import Sample
from ...core.tensor import Tensor
from ._shared import real_samples


@op(elementwise, promote="float", scalar=True)
def sinh(x: Tensor) -> Tensor:
    """Return the hyperbolic sine of each element."""


@sinh.partial("x")
def _(x):
    return F.cosh(x)


@op(elementwise, promote="float", scalar=True)
def cosh(x: Tensor) -> Tensor:
    """Return the hyperbolic cosine of each element."""


@cosh.partial("x")
def _(x):
    return F.sinh(x)


@op(elementwise, promote="float", public=("wf", "nn.functional"), scalar=True)
def tanh(x: Tensor) -> Tensor:
    """Return the hyperbolic tangent of each element.

    >>> import weft as wf
    >>> wf.tanh(wf.tensor([0.0, 1.0]))
    tensor([0.   , 0.762])
    """


@tanh.partial("x")
def _(out):
    return 1 - out * out


@op(elementwise, promote="float", aliases=("arcsinh",), scalar=True)
def asinh(x: Tensor) -> Tensor:
    """Return the inverse hyperbolic sine of each element."""


@asinh.vjp("x")
def _(g, x):
    return g / F.hypot(x, 1)  # x**2 would overflow


@op(elementwise, promote="float", aliases=("arccosh",), scalar=True)
def acosh(x: Tensor) -> Tensor:
    """Return the inverse hyperbolic cosine of each element; NaN below 1."""


@acosh.vjp("x")
def _(g, x):
    return g / (F.sqrt(x - 1) * F.sqrt(x + 1))  # x**2 would overflow, and cancel near 1


@op(elementwise, promote="float", aliases=("arctanh",), scalar=True)
def atanh(x: Tensor) -> Tensor:
    """Return the inverse hyperbolic tangent of each element; NaN outside [-1, 1]."""


@atanh.vjp("x")
def _(g, x):
    return g / ((1 - x) * (1 + x))


for _record in (sinh, cosh, tanh, asinh):
    _record.samples(real_samples)


@acosh.samples
def _(s):
    yield from s.unary(lambda *shape: s.positive(*shape, low=1.3, high=3.0))
    yield Sample(s.integers(3, low=1), label="integers")
    yield Sample(np.array([0.5, 1.0, np.inf]), grad=0, label="special values")


@atanh.samples
def _(s):
    yield from s.unary(lambda *shape: s.real(*shape, low=-0.9, high=0.9))
    yield Sample(np.array([-1, 0, 1]), label="integers")
    yield Sample(np.array([-1.0, 1.0, 1.5]), grad=0, label="special values")
