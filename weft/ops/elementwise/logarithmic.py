"""Logarithms of probabilities and of sums: logit, entr, xlog1py, logaddexp2."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.errors import ArgumentError
from ...core.op import F, elementwise, op
from ...core.samples import ErrorSample, Sample
from ...core.tensor import Tensor
from .._operands import constant
from ._shared import as_real
from .exponential import difference


@op(elementwise, promote="float", public=("wf", "special"))
def logit(x: Tensor, eps: float | None = None) -> Tensor:
    """Return log(x / (1 - x)), the inverse of sigmoid: NaN outside [0, 1].

    eps   probabilities nearer than this to 0 or 1 are taken to be that near

    >>> import weft as wf
    >>> wf.logit(wf.tensor([0.5, 0.9]))
    tensor([0.   , 2.197])
    """


@logit.canon
def _(x, eps):
    if eps is None:
        return (None,)
    eps = as_real(eps, "eps")
    if not 0 <= eps <= 0.5:
        raise ArgumentError(f"eps must be from 0 to 0.5. Received: eps={eps}")
    return (eps,)


@logit.lower
def _(b, x, eps):
    p = x if eps is None else b.minimum(b.maximum(x, eps), 1.0 - eps)
    return b.log(p / (1.0 - p))


@logit.partial("x")
def _(x, eps):
    slope = 1 / (x * (1 - x))
    return slope if eps is None else F.where((x >= eps) & (x <= 1 - eps), slope, 0)


@logit.samples
def _(s):
    yield from s.unary(lambda *shape: s.real(*shape, low=0.1, high=0.9))
    yield Sample(np.array([0.05, 0.2, 0.95]), eps=0.1, label="eps")
    yield Sample(np.array([0.0, 1.0, 2.0]), grad=0, label="special values")


@logit.error_samples
def _(s):
    yield ErrorSample(s.real(3), 0.7, error=ValueError, match="Received: eps=0.7")
    yield ErrorSample(s.real(3), "a", error=TypeError, match="eps must be a Python number")


@op(elementwise, promote="float", public=("wf", "special"))
def entr(x: Tensor) -> Tensor:
    """Return -x * log(x), which is 0 at 0 and minus infinity below.

    >>> import weft as wf
    >>> wf.entr(wf.tensor([0.0, 0.5, 1.0]))
    tensor([ 0.   ,  0.347, -0.   ])
    """


@entr.lower
def _(b, x):
    inside = b.select(b.eq(x, 0.0), 0.0, -(x * b.log(x)))
    return b.select(x < 0.0, -math.inf, inside)


@entr.partial("x")
def _(x):
    return F.where(x < 0, constant(np.nan, x), -F.log(F.maximum(x, 0)) - 1)


@entr.samples
def _(s):
    yield from s.unary(s.positive)
    yield Sample(np.array([0.0, -1.0, np.inf, np.nan]), grad=0, label="special values")


@op(elementwise, promote="float", public=("wf", "special"))
def xlog1py(x: Tensor, y: Tensor) -> Tensor:
    """Return x * log(1 + y), which is 0 where x is 0 (unless y is NaN).

    At x = 0, y = -1 both derivatives are taken as 0.

    >>> import weft as wf
    >>> wf.xlog1py(wf.tensor([0.0, 2.0]), wf.tensor([-1.0, 1.0]))
    tensor([0.   , 1.386])
    """


@xlog1py.lower
def _(b, x, y):
    return b.select(b.eq(x, 0.0) & ~b.is_nan(y), 0.0, x * b.log1p(y))


@xlog1py.partial("x")
def _(x, y):
    return F.log1p(_away_from_pole(x, y))


@xlog1py.partial("y")
def _(x, y):
    return x / (1 + _away_from_pole(x, y))


def _away_from_pole(x: Any, y: Any) -> Any:
    return F.where((x == 0) & (y == -1), 0, y)


@xlog1py.samples
def _(s):
    yield from s.binary(s.real, s.positive)
    yield Sample(np.zeros(4), np.array([-1.0, 0.0, -2.0, np.inf]), grad=0, label="x zero")


@op(elementwise, promote="float")
def logaddexp2(x: Tensor, y: Tensor) -> Tensor:
    """Return log2(2**x + 2**y) without overflow.

    >>> import weft as wf
    >>> wf.logaddexp2(wf.tensor(1000.0), wf.tensor(1000.0))
    tensor(1001.)
    """


logaddexp2.eval(np.logaddexp2)  # NumPy's to the bit, in one pass


@logaddexp2.lower
def _(b, x, y):
    apart = b.maximum(x, y) + b.log1p(b.exp2(-b.abs(x - y))) * (1 / math.log(2.0))
    return b.select(b.eq(x, y), x + 1.0, apart)  # equal infinities have no difference


@logaddexp2.partial("x")
def _(x, y):
    return F.sigmoid(difference(x, y) * constant(math.log(2.0), x))


@logaddexp2.partial("y")
def _(x, y):
    return F.sigmoid(difference(y, x) * constant(math.log(2.0), x))


@logaddexp2.samples
def _(s):
    yield from s.binary()
    yield Sample(np.full(2, 3.0), np.full(2, 3.0), label="equal")
    inf = np.array([np.inf, -np.inf])
    yield Sample(inf, inf, grad=0, label="infinite")
