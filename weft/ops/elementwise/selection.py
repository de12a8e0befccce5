"""Choosing and mixing elements of two tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.op import F, composite, elementwise, op
from ...core.operands import is_number
from ...core.samples import ErrorSample, Sample
from ...core.tensor import Tensor
from .._halves import rounded_once


@op(
    elementwise,
    promote=("x", "y"),
    linear=("x", "y"),
    keywords={"input": "x", "other": "y"},
    total=True,
    exact=True,
    work="nothing",
    numpy="np.where({condition}, {x}, {y})",
)
def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return x where the condition holds and y elsewhere, all three broadcast together.

    A condition that is not of dtype bool holds where it is not zero. The gradient of the side that
    was not chosen is exactly zero, and stays so through the elementwise operations that computed
    it, even where their own derivatives are infinite or NaN.

    >>> import weft as wf
    >>> x = wf.tensor([-1.0, 2.0])
    >>> wf.where(x > 0, x, 0.0)
    tensor([0., 2.])
    >>> wf.grad(lambda x: wf.where(x > 0, wf.log(x), 0.0).sum())(wf.tensor([0.0, 2.0]))
    tensor([0. , 0.5])
    """


@where.vjp("x")
def _(g, condition):
    return F.where(condition, g, 0)


@where.vjp("y")
def _(g, condition):
    return F.where(condition, 0, g)


where.lower(lambda b, condition, x, y: b.select(b.truth(condition), x, y))


@where.samples
def _(s):
    for shapes in (((), (), ()), ((3,), (3,), (3,)), ((2, 1), (3,), (2, 3)), ((0,), (0,), (1,))):
        c, x, y = shapes
        yield Sample(s.booleans(*c), s.real(*x), s.real(*y))
    yield Sample(s.booleans(2, 3), s.real(3, 2).T, s.strided(2, 3), label="non-contiguous")
    yield Sample(s.booleans(3), s.real(3), 0.0, label="number")
    yield Sample(s.booleans(3), 1, s.real(2, 3), label="number first")
    yield Sample(s.integers(3, high=2), s.real(3), s.real(3), label="integer condition")
    yield Sample(s.booleans(3), s.integers(3), s.integers(3), label="integers")


@where.error_samples
def _(s):
    yield ErrorSample(
        s.booleans(3), s.real(3), s.real(4), error=ValueError, match=r"\(3,\) and \(4,\)"
    )
    yield ErrorSample(s.booleans(3), "a", s.real(3), error=TypeError, match="x must be a tensor")


@where.as_method
def _(self, condition, other):
    return where(condition, self, other)


@op(elementwise, promote="float", keywords={"end": "y"})
def lerp(x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """Return x + weight * (y - x), exactly x at weight 0 and exactly y at weight 1.

    >>> import weft as wf
    >>> wf.lerp(wf.tensor([0.0, 10.0]), wf.tensor([1.0, 20.0]), 0.5)
    tensor([ 0.5, 15. ])
    """


@lerp.partial("x")
def _(weight):
    return 1 - weight


@lerp.partial("y")
def _(weight):
    return weight


@lerp.partial("weight")
def _(x, y):
    return y - x


lerp.lower(
    lambda b, x, y, weight: b.select(
        weight < 0.5, x + weight * (y - x), y - (y - x) * (1.0 - weight)
    )
)


@lerp.samples
def _(s):
    yield Sample(s.real(3), s.real(3), s.real(3))
    yield Sample(s.real(), s.real(), s.real())
    yield Sample(s.real(2, 1), s.real(3), s.real(2, 3))
    yield Sample(s.real(0, 3), s.real(3), s.real())
    yield Sample(s.real(3, 2).T, s.real(2, 3), 0.3, label="number")
    yield Sample(s.integers(3), s.integers(3), 0.5, label="integers")


@lerp.error_samples
def _(s):
    yield ErrorSample(s.real(2), s.real(3), 0.5, error=ValueError, match=r"\(2,\) and \(3,\)")
    yield ErrorSample(s.real(2), s.real(2), "a", error=TypeError, match="weight must be a tensor")


@op(elementwise, promote="float", scalar=True)
def copysign(x: Tensor, y: Tensor) -> Tensor:
    """Return the magnitude of x with the sign of y, that of -0.0 included.

    The derivative with respect to y is 0, and that with respect to x is 0 at x = 0.
    """


@copysign.partial("x")
def _(x, y):
    return F.sign(x) * F.copysign(1, y)


@copysign.vjp("y")
def _(g):
    return F.zeros_like(g)


@copysign.samples
def _(s):
    yield from s.binary(s.away)
    zeros = np.array([0.0, -0.0])
    yield Sample(np.array([1.0, -1.0]), zeros, grad=0, label="signed zeros")


@op(elementwise, promote="float")
def heaviside(x: Tensor, values: Tensor) -> Tensor:
    """Return 0 below 0, 1 above it, and `values` where x is 0; the derivative of the step is 0.

    >>> import weft as wf
    >>> wf.heaviside(wf.tensor([-1.0, 0.0, 2.0]), 0.5)
    tensor([0. , 0.5, 1. ])
    """


heaviside.eval(np.heaviside)  # one pass, not five; of few elements a tenth of the time


@heaviside.lower
def _(b, x, y):
    step = b.select(x < 0.0, b.constant(0.0, y.dtype), 1.0)
    return b.select(b.is_nan(x), x, b.select(b.eq(x, 0.0), y, step))


@heaviside.vjp("x")
def _(g):
    return F.zeros_like(g)


@heaviside.partial("values")
def _(x):
    return x == 0


@heaviside.samples
def _(s):
    yield from s.binary(s.away, s.real)
    yield Sample(np.zeros(3), s.real(3), grad=0, label="at zero")


@composite(method=True)
@rounded_once
def addcmul(x: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """Return x + value * tensor1 * tensor2."""
    product = tensor1 * tensor2
    return x + (product if is_number(value, 1) else product * value)


@composite(method=True)
@rounded_once
def addcdiv(x: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """Return x + value * tensor1 / tensor2."""
    quotient = tensor1 / tensor2
    return x + (quotient if is_number(value, 1) else quotient * value)
