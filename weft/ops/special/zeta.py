"""The zeta function of Hurwitz, and the multivariate gamma function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.errors import ArgumentError, GradientError
from ...core.op import F, composite, elementwise, op
from ...core.samples import Sample
from ...core.shape import as_int
from ...core.special import hurwitz
from ...core.tensor import Tensor
from .._operands import operand
from .._traced import in_operators


@op(elementwise, promote="float", method=False, public=True)
def zeta(x: Tensor, q: Tensor) -> Tensor:
    """Return the sum of (q + k)**-x over k = 0, 1, ...: the zeta function of Hurwitz.

    Infinite at x = 1 and NaN below it. There is no derivative by x.

    >>> import weft as wf
    >>> wf.special.zeta(wf.tensor(2.0), wf.tensor([1.0, 2.0]))
    tensor([1.645 , 0.645])
    """


zeta.eval(hurwitz.hurwitz_zeta)
in_operators(zeta)


@zeta.partial("x")
def _(x):
    raise GradientError("zeta: the derivative by x is not known; detach it")


@zeta.partial("q")
def _(x, q):
    return -x * F.zeta(x + 1, q)


@zeta.samples
def _(s):
    yield Sample(s.positive(2, low=1.5), s.positive(2), grad=0)
    yield Sample(s.integers(2, 1, low=2), s.positive(3), label="whole x")
    yield Sample(s.positive(0), s.positive(0), grad=0)
    edges = np.array([1.0, 0.5, 3.0, 3.0, 2.5]), np.array([2.0, 2.0, -1.0, -0.5, -0.5])
    yield Sample(*edges, grad=0, label="edges")


@composite(aliases=("mvlgamma",))
def multigammaln(x: Any, p: int) -> Any:
    """Return the logarithm of the multivariate gamma function of dimension p, x > (p - 1) / 2.

    >>> import weft as wf
    >>> wf.special.multigammaln(wf.tensor([2.0, 3.0]), 2)
    tensor([0.452, 1.55 ])
    """
    x = operand("multigammaln", "x", x)
    count = as_int(p, "multigammaln: p")
    if count < 1:
        raise ArgumentError(f"multigammaln: p must be at least 1. Received: {count}")
    total = F.lgamma(x)
    for k in range(1, count):
        total = total + F.lgamma(x - 0.5 * k)
    return total + 0.25 * count * (count - 1) * math.log(math.pi)
