"""Relatives of the normal distribution function: erfcx, log_ndtr and ndtri."""

from __future__ import annotations

import math

import numpy as np

from ...core.op import F, elementwise, op
from ...core.samples import Sample
from ...core.special import gaussian
from ...core.tensor import Tensor
from .._operands import constant
from .._traced import in_operators
from ._shared import few_samples


@op(elementwise, promote="float", method=False, public=True)
def erfcx(x: Tensor) -> Tensor:
    """Return exp(x**2) * erfc(x), which underflows nowhere and overflows below -26.

    >>> import weft as wf
    >>> wf.special.erfcx(wf.tensor([0.0, 30.0]))
    tensor([1.   , 0.019])
    """


erfcx.eval(gaussian.erfcx)


@erfcx.partial("x")
def _(x, out):
    return 2 * x * out - constant(2 / math.sqrt(math.pi), x)


@op(elementwise, promote="float", method=False, public=True)
def log_ndtr(x: Tensor) -> Tensor:
    """Return the logarithm of the normal distribution function, precise in both tails.

    >>> import weft as wf
    >>> wf.special.log_ndtr(wf.tensor([-40.0, 0.0]))
    tensor([-804.608,   -0.693])
    """


log_ndtr.eval(gaussian.log_ndtr)


@log_ndtr.partial("x")
def _(x):
    # density / ndtr, of which both underflow far below 0
    return constant(math.sqrt(2 / math.pi), x) / F.erfcx(x * constant(-math.sqrt(0.5), x))


@op(elementwise, promote="float", method=False, public=True)
def ndtri(p: Tensor) -> Tensor:
    """Return the inverse of the normal distribution function: NaN outside [0, 1].

    >>> import weft as wf
    >>> wf.special.ndtri(wf.tensor([0.5, 0.975]))
    tensor([0.  , 1.96])
    """


ndtri.eval(gaussian.ndtri)


@ndtri.partial("p")
def _(out):
    return F.exp(out * out * constant(0.5, out)) * constant(math.sqrt(2 * math.pi), out)


in_operators(erfcx, log_ndtr, ndtri)
few_samples(erfcx, low=-2.0, high=3.0)
few_samples(log_ndtr, low=-3.0, high=3.0)


@ndtri.samples
def _(s):
    yield Sample(s.real(low=0.05, high=0.95))
    yield Sample(s.real(4, 3, low=0.05, high=0.95).T, label="non-contiguous")
    yield Sample(s.real(0, 2))
    yield Sample(np.array([0.0, 1.0, 1e-300, -0.5, 1.5, np.nan]), grad=0, label="special values")
