"""Exponential linear units: activation functions that are linear above 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import ArgumentError
from ...core.op import F, elementwise, op
from ...core.samples import ErrorSample, Sample
from ...core.tensor import Tensor
from .._operands import constant
from ._shared import as_real


@op(elementwise, promote="float", public=("wf", "nn.functional"))
def elu(x: Tensor, alpha: Any = 1.0) -> Tensor:
    """Return x above 0 and alpha * (exp(x) - 1) elsewhere (Clevert et al. 2015).

    The derivative at 0 is that of the exponential side, alpha.
    """


@elu.canon
def _(x, alpha):
    return (as_real(alpha, "alpha"),)


elu.lower(lambda b, x, alpha: b.select(x > 0.0, x, b.expm1(b.minimum(x, 0.0)) * alpha))


@elu.partial("x")
def _(x, alpha):
    return F.where(x > 0, 1, F.exp(F.minimum(x, 0)) * constant(alpha, x))


@op(elementwise, promote="float", public=("wf", "nn.functional"))
def celu(x: Tensor, alpha: Any = 1.0) -> Tensor:
    """Return x above 0 and alpha * (exp(x / alpha) - 1) elsewhere (Barron 2017)."""


@celu.canon
def _(x, alpha):
    alpha = as_real(alpha, "alpha")
    if alpha == 0:
        raise ArgumentError("alpha must not be zero, since x is divided by it. Received: alpha=0")
    return (alpha,)


@celu.lower
def _(b, x, alpha):
    return b.select(x > 0.0, x, b.expm1(b.minimum(x, 0.0) / alpha) * alpha)


@celu.partial("x")
def _(x, alpha):
    return F.where(x > 0, 1, F.exp(F.minimum(x, 0) / constant(alpha, x)))


def _alpha_samples(s):
    yield from s.unary(s.away)
    for alpha in (0.5, 2):
        yield Sample(s.away(2, 3), alpha, label=f"alpha {alpha}")
    yield Sample(np.array([-1000.0, 1000.0]), label="saturated")
    yield Sample(s.integers(3, low=-3), label="integers")


def _alpha_errors(s):
    yield ErrorSample(s.real(3), alpha="a", error=TypeError, match="alpha must be.*str 'a'")


for _record in (elu, celu):
    _record.samples(_alpha_samples)
    _record.error_samples(_alpha_errors)

# The fixed point of Klambauer et al. (2017), equation 14: mean 0 and variance 1 are preserved.
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@op(elementwise, promote="float", public=("wf", "nn.functional"))
def selu(x: Tensor) -> Tensor:
    """Return the scaled exponential linear unit of self-normalising networks."""


@selu.vjp("x")
def _(g, x):
    below = g * F.exp(F.minimum(x, 0)) * constant(_SELU_ALPHA * _SELU_SCALE, x)
    return F.where(x > 0, g * constant(_SELU_SCALE, x), below)


selu.lower(
    lambda b, x: b.select(
        x > 0.0, x * _SELU_SCALE, b.expm1(b.minimum(x, 0.0)) * (_SELU_ALPHA * _SELU_SCALE)
    )
)


@selu.samples
def _(s):
    yield from s.unary(s.away)
    yield Sample(np.array([-1000.0, 1000.0]), label="saturated")
