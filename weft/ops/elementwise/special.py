"""The error function, the gamma function, and their relatives."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from ...core import special
from ...core.errors import ArgumentError
from ...core.op import F, elementwise, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import as_int
from ...core.tensor import Tensor
from .._operands import constant
from .._traced import in_operators, traced
from ._shared import real_samples

_MAX_ORDER = 500  # the highest derivative that the polygamma kernel computes
_MAX_TRACED = 100  # and one whose coefficients are far from overflow


@op(elementwise, promote="float", scalar=True, public=("wf", "special"))
def erf(x: Tensor) -> Tensor:
    """Return the error function, 2/sqrt(pi) times the integral of exp(-t**2) from 0 to x.

    >>> import weft as wf
    >>> wf.erf(wf.tensor([0.0, 0.5]))
    tensor([0.  , 0.52])
    """


@erf.partial("x")
def _(x):
    return F.exp(-(x * x)) * constant(2 / math.sqrt(math.pi), x)


@op(elementwise, promote="float", scalar=True, public=("wf", "special"))
def erfc(x: Tensor) -> Tensor:
    """Return 1 - erf(x), accurate also where erf(x) is close to 1."""


@erfc.partial("x")
def _(x):
    return F.exp(-(x * x)) * constant(-2 / math.sqrt(math.pi), x)


@op(elementwise, promote="float", method=False, scalar=True, public={"special": ("ndtr",)})
def normal_cdf(x: Tensor) -> Tensor:
    """Return the probability that a standard normal variable is at most x."""


@normal_cdf.partial("x")
def normal_density(x: Any) -> Any:
    """Return the density of the normal distribution."""
    return F.exp(x * x * constant(-0.5, x)) * constant(1 / math.sqrt(2 * math.pi), x)


@op(elementwise, promote="float", public=("wf", "special"))
def erfinv(x: Tensor) -> Tensor:
    """Return the inverse of erf: infinite at -1 and 1, NaN outside [-1, 1]."""


erfinv.eval(special.erfinv)


@erfinv.partial("x")
def _(out):
    return F.exp(out * out) * constant(math.sqrt(math.pi) / 2, out)


@op(elementwise, promote="float", public={"wf": ("lgamma",), "special": ("gammaln",)})
def lgamma(x: Tensor) -> Tensor:
    """Return the logarithm of the absolute value of the gamma function.

    >>> import weft as wf
    >>> wf.lgamma(wf.tensor([3.0, 5.0]))  # log(2!), log(4!)
    tensor([0.693, 3.178])
    """


lgamma.eval(special.lgamma)


@lgamma.partial("x")
def _(x):
    return F.digamma(x)


@op(elementwise, promote="float", public={"wf": ("digamma",), "special": ("digamma", "psi")})
def digamma(x: Tensor) -> Tensor:
    """Return the derivative of lgamma."""


digamma.eval(special.digamma)


@digamma.partial("x")
def _(x):
    return F.polygamma(1, x)


@op(elementwise, promote="float", public=("wf", "special"))
def polygamma(n: Any, x: Tensor) -> Tensor:
    """Return the n-th derivative of digamma, n >= 0.

    >>> import weft as wf
    >>> wf.polygamma(1, wf.tensor(1.0))  # pi**2 / 6
    tensor(1.6449)
    """


@polygamma.canon
def _(x, n):
    order = as_int(n, "n")
    if not 0 <= order <= _MAX_ORDER:
        raise ArgumentError(f"n must be from 0 to {_MAX_ORDER}. Received: n={order}")
    return (order,)


@polygamma.eval
def _(x, n):
    return special.polygamma(n, x)


@polygamma.expand
def _(x, n):
    return traced(partial(special.polygamma, n))(x) if n <= _MAX_TRACED else None


@polygamma.partial("x")
def _(x, n):
    return F.polygamma(n + 1, x)


@polygamma.as_method
def _(self, n):
    return polygamma(n, self)


in_operators(erfinv, lgamma, digamma)


@polygamma.samples
def _(s):
    for order in (0, 1, 2, 5):
        yield Sample(order, s.positive(3), label=f"order {order}")
    yield Sample(1, s.positive())
    yield Sample(2, s.positive(2, 0))
    yield Sample(1, s.positive(3, 2).T, label="non-contiguous")
    yield Sample(1, s.integers(3, low=1), label="integers")


@polygamma.error_samples
def _(s):
    yield ErrorSample(-1, s.positive(3), error=ValueError, match="Received: n=-1")
    yield ErrorSample(1.5, s.positive(3), error=TypeError, match="n must be an integer.*1.5")
    yield ErrorSample(1, "text", error=TypeError, match="x must be a tensor")


@erfinv.samples
def _(s):
    yield from s.unary(lambda *shape: s.real(*shape, low=-0.9, high=0.9))
    yield Sample(np.array([-1.0, 1.0, 2.0]), grad=0, label="special values")


def _gamma_samples(s):
    yield from s.unary(s.positive)
    yield Sample(np.array([-0.4, -1.3, -2.6]), label="negative")
    yield Sample(s.integers(3, low=1), label="integers")


for _record, _samples in (
    (erf, real_samples),
    (erfc, real_samples),
    (normal_cdf, real_samples),
    (lgamma, _gamma_samples),
    (digamma, _gamma_samples),
):
    _record.samples(_samples)
