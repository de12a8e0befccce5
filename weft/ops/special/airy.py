"""Airy's function Ai and its derivative: solutions of y'' = x y."""

from __future__ import annotations

from ...core.op import F, elementwise, op
from ...core.special import airy
from ...core.tensor import Tensor
from .._traced import in_operators
from ._shared import few_samples


@op(elementwise, promote="float", method=False, public=True)
def airy_ai(x: Tensor) -> Tensor:
    """Return Airy's function Ai.

    >>> import weft as wf
    >>> wf.special.airy_ai(wf.tensor([-2.0, 0.0, 2.0]))
    tensor([0.227, 0.355, 0.035])
    """


airy_ai.eval(airy.airy_ai)


@airy_ai.partial("x")
def _(x):
    return F.airy_ai_slope(x)


@op(elementwise, promote="float", method=False)
def airy_ai_slope(x: Tensor) -> Tensor:
    """Return the derivative of Airy's function Ai."""


airy_ai_slope.eval(airy.airy_ai_slope)


@airy_ai_slope.partial("x")
def _(x):
    return x * F.airy_ai(x)


in_operators(airy_ai, airy_ai_slope)
few_samples(airy_ai, low=-4.0, high=3.0)
few_samples(airy_ai_slope, low=-4.0, high=3.0)
