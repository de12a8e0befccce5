"""Exponentials and logarithms."""

from __future__ import annotations

import math

import numpy as np

from ...core.op import F, elementwise, op
from ...core.samples import Sample
from ...core.tensor import Tensor
from .._operands import constant
from ._shared import positive_samples, real_samples

_LN2 = math.log(2.0)
_LN10 = math.log(10.0)


@op(elementwise, promote="float", never_negative=True, scalar=True)
def exp(x: Tensor) -> Tensor:
    """Return e**x for each element.

    >>> import weft as wf
    >>> wf.exp(wf.tensor([0.0, 1.0]))
    tensor([1.   , 2.718])
    """


exp.partial_is("x", "out")


@op(elementwise, promote="float", scalar=True, public=("wf", "special"))
def exp2(x: Tensor) -> Tensor:
    """Return 2**x for each element."""


@exp2.partial("x")
def _(out):
    return out * constant(_LN2, out)


@op(elementwise, promote="float", scalar=True, public=("wf", "special"))
def expm1(x: Tensor) -> Tensor:
    """Return e**x - 1, accurate also for small x."""


@expm1.partial("x")
def _(x):
    return F.exp(x)  # not out + 1, which is 0 long before e**x is


@op(elementwise, promote="float", scalar=True)
def log(x: Tensor) -> Tensor:
    """Return the natural logarithm of each element: -inf at 0, NaN below.

    >>> import weft as wf
    >>> wf.log(wf.tensor([1.0, 10.0]))
    tensor([0.   , 2.303])
    """


@log.vjp("x")
def _(g, x):
    return g / x


@op(elementwise, promote="float", scalar=True)
def log2(x: Tensor) -> Tensor:
    """Return the logarithm to base 2 of each element."""


@log2.vjp("x")
def _(g, x):
    return g / (x * constant(_LN2, x))


@op(elementwise, promote="float", scalar=True)
def log10(x: Tensor) -> Tensor:
    """Return the logarithm to base 10 of each element."""


@log10.vjp("x")
def _(g, x):
    return g / (x * constant(_LN10, x))


@op(elementwise, promote="float", scalar=True, public=("wf", "special"))
def log1p(x: Tensor) -> Tensor:
    """Return log(1 + x), accurate also for small x."""


@log1p.vjp("x")
def _(g, x):
    return g / (x + 1)


for _record in (exp, exp2, expm1):
    _record.samples(real_samples)
for _record in (log, log2, log10, log1p):
    _record.samples(positive_samples)


@op(elementwise, promote="float")
def logaddexp(x: Tensor, y: Tensor) -> Tensor:
    """Return log(exp(x) + exp(y)) without overflow.

    >>> import weft as wf
    >>> wf.logaddexp(wf.tensor(1000.0), wf.tensor(1000.0))
    tensor(1000.69)
    """


logaddexp.eval(np.logaddexp)  # NumPy's to the bit; of few elements a tenth of the time


@logaddexp.lower
def log_of_sum(b, x, y):
    """Return log(exp(x) + exp(y)) in code."""
    apart = b.maximum(x, y) + b.log1p(b.exp(-b.abs(x - y)))
    return b.select(b.eq(x, y), x + math.log(2.0), apart)  # equal infinities have no difference


@logaddexp.partial("x")
def _(x, y):
    return F.sigmoid(difference(x, y))


@logaddexp.partial("y")
def _(x, y):
    return F.sigmoid(difference(y, x))


def difference(x, y):
    """Return x - y, and 0 where both are the same infinity."""
    return F.where((x == y) & F.isinf(x), 0, x - y)


@logaddexp.samples
def _(s):
    yield from s.binary()
    yield Sample(np.full(2, 3.0), np.full(2, 3.0), label="equal")
    inf = np.array([np.inf, -np.inf])
    yield Sample(inf, inf, grad=0, label="infinite")


@op(elementwise, promote="float", public=("wf", "special"))
def xlogy(x: Tensor, y: Tensor) -> Tensor:
    """Return x * log(y), which is 0 where x is 0 (unless y is NaN).

    At x = y = 0 both derivatives are taken as 0.

    >>> import weft as wf
    >>> wf.xlogy(wf.tensor([0.0, 2.0]), wf.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """


@xlogy.lower
def _(b, x, y):
    return b.select(b.eq(x, 0.0) & ~b.is_nan(y), 0.0, x * b.log(y))


@xlogy.partial("x")
def _(x, y):
    return F.log(_away_from_origin(x, y))


@xlogy.partial("y")
def _(x, y):
    return x / _away_from_origin(x, y)


def _away_from_origin(x, y):
    return F.where((x == 0) & (y == 0), 1, y)


@xlogy.samples
def _(s):
    yield from s.binary(s.real, s.positive)
    yield Sample(np.zeros(4), np.array([0.0, 1.0, -1.0, np.inf]), grad=0, label="x zero")
