"""Smooth activation functions."""

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
from .special import normal_density


def _real_samples(s):
    yield from s.unary()
    yield Sample(np.array([-40.0, 40.0]), label="saturated")
    yield Sample(s.integers(3), label="integers")


@op(
    elementwise,
    promote="float",
    public={"wf": ("sigmoid",), "nn.functional": ("sigmoid",), "special": ("expit",)},
    scalar=True,
)
def sigmoid(x: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x)) for each element.

    >>> import weft as wf
    >>> wf.sigmoid(wf.tensor([0.0, 2.0]))
    tensor([0.5 , 0.88])
    """


@sigmoid.partial("x")
def _(out):
    return out * (1 - out)


@op(
    elementwise,
    promote="float",
    aliases=("logsigmoid",),
    public={"wf": ("log_sigmoid", "logsigmoid"), "nn.functional": ("logsigmoid",)},
)
def log_sigmoid(x: Tensor) -> Tensor:
    """Return log(sigmoid(x)), also where the sigmoid itself underflows."""


log_sigmoid.lower(lambda b, x: b.minimum(x, 0.0) - b.log1p(b.exp(-b.abs(x))))


@log_sigmoid.partial("x")
def _(x):
    return F.sigmoid(-x)


@op(
    elementwise,
    promote="float",
    aliases=("swish",),
    public={"wf": ("silu", "swish"), "nn.functional": ("silu",)},
)
def silu(x: Tensor) -> Tensor:
    """Return x * sigmoid(x) (Elfwing et al. 2017; swish, Ramachandran et al. 2017).

    >>> import weft as wf
    >>> wf.silu(wf.tensor([0.0, 2.0]))
    tensor([0.   , 1.762])
    """


silu.lower(lambda b, x: x / (1.0 + b.exp(-x)))


@silu.partial("x")
def _(x):
    s = F.sigmoid(x)
    return s * (1 + x * (1 - s))


@op(elementwise, promote="float", public=("wf", "nn.functional"))
def mish(x: Tensor) -> Tensor:
    """Return x * tanh(softplus(x)) (Misra 2019)."""


mish.lower(lambda b, x: x * b.tanh(b.maximum(x, 0.0) + b.log1p(b.exp(-b.abs(x)))))


@mish.partial("x")
def _(x):
    t = F.tanh(F.softplus(x))
    return t + x * F.sigmoid(x) * (1 - t * t)


@op(elementwise, promote="float", public=("wf", "nn.functional"))
def softsign(x: Tensor) -> Tensor:
    """Return x / (1 + |x|)."""


@softsign.partial("x")
def _(x):
    return F.reciprocal(F.square(1 + abs(x)))


_LAMBERT = (15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0)  # enough for float64


@op(elementwise, promote="float", public=("wf", "nn.functional"))
def tanhshrink(x: Tensor) -> Tensor:
    """Return x - tanh(x)."""


@tanhshrink.lower
def _(b, x):
    return b.select(b.abs(x) < 1.0, _shrink_near_zero(x), x - b.tanh(x))


def _shrink_near_zero(x):
    """Return x - tanh(x) for |x| <= 1 by Lambert's continued fraction, in which nothing cancels.

    tanh(x) = x / (1 + t) with t = x**2 / (3 + x**2 / (5 + ...)).
    """
    square = x * x
    t = square / _LAMBERT[0]
    for odd in _LAMBERT[1:]:
        t = square / (t + odd)
    return x * (t / (t + 1.0))


@tanhshrink.partial("x")
def _(x):
    return F.square(F.tanh(x))


for _record in (sigmoid, log_sigmoid, silu, mish, tanhshrink):
    _record.samples(_real_samples)


softsign.lower(lambda b, x: x / (1.0 + b.abs(x)))


@softsign.samples
def _(s):
    yield from s.unary(s.away)
    yield Sample(s.integers(3, low=-5), label="integers")


# -- gelu -----------------------------------------------------------------------------------------

_GELU_SCALE = math.sqrt(2.0 / math.pi)
_GELU_CUBIC = 0.044715
_GELU_LIMIT = 30.0


@op(elementwise, promote="float", public=("wf", "nn.functional"))
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    """Return x * Phi(x) with the normal distribution function Phi (Hendrycks and Gimpel 2016).

    approximate="tanh" takes Phi(x) as (1 + tanh(sqrt(2/pi) (x + 0.044715 x**3))) / 2. Neither way
    cancels where x is far below 0: in float32 relative errors stay below (8 + 3 x**2) 2**-24.

    >>> import weft as wf
    >>> wf.gelu(wf.tensor([0.0, 1.0]))
    tensor([0.   , 0.841])
    """


@gelu.canon
def _(x, approximate):
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f"approximate must be 'none' or 'tanh'. Received: {approximate!r}")
    return (approximate,)


@gelu.lower
def _(b, x, approximate):
    # In the terms of the derivative, so that a kernel of both has them once.
    if approximate == "tanh":
        return b.sigmoid(_gelu_argument(x) * 2.0) * x
    return b.normal_cdf(x) * x


@gelu.partial("x")
def _(x, approximate):
    if approximate == "tanh":
        return _tanh_gelu_slope(x)
    return F.normal_cdf(x) + x * normal_density(x)


def _tanh_gelu_slope(x):
    # Where the sigmoid has long reached its limits, squares of x could overflow.
    x = F.clip_to(x, -_GELU_LIMIT, _GELU_LIMIT)
    s = F.sigmoid(_gelu_argument(x) * 2)
    slope = (x * x * constant(3 * _GELU_CUBIC, x) + 1) * constant(2 * _GELU_SCALE, x)
    return s + x * s * (1 - s) * slope


def _gelu_argument(x):
    # x**3 as a power would cost thirty multiplications.
    return (x * x * constant(_GELU_CUBIC, x) + 1) * x * constant(_GELU_SCALE, x)


@gelu.samples
def _(s):
    for approximate in ("none", "tanh"):
        yield from s.unary(approximate=approximate)
        yield Sample(s.integers(3), approximate=approximate, label="integers")


@gelu.error_samples
def _(s):
    yield ErrorSample(s.real(3), approximate="fast", error=ValueError, match="Received: 'fast'")


# -- softplus -------------------------------------------------------------------------------------


@op(elementwise, promote="float", public=("wf", "nn.functional"))
def softplus(x: Tensor, beta: Any = 1.0, threshold: Any = 20.0) -> Tensor:
    """Return log(1 + exp(beta * x)) / beta, and x itself where beta * x exceeds the threshold.

    Nothing overflows without the threshold; math.inf switches it off.
    """


@softplus.canon
def _(x, beta, threshold):
    beta = as_real(beta, "beta")
    if beta == 0 or not math.isfinite(beta):
        raise ArgumentError(f"beta must be finite and not zero. Received: beta={beta}")
    return beta, as_real(threshold, "threshold")


@softplus.lower
def _(b, x, beta, threshold):
    z = x * beta
    # max(z, 0) / beta is taken from x, because beta * x may overflow and need not divide back.
    linear = b.maximum(x, 0.0) if beta > 0 else b.minimum(x, 0.0)
    return b.select(z > threshold, x, linear + b.log1p(b.exp(-b.abs(z))) / beta)


@softplus.partial("x")
def _(x, beta, threshold):
    z = x if beta == 1 else x * constant(beta, x)
    return F.where(z > threshold, 1, F.sigmoid(z))


@softplus.samples
def _(s):
    yield from s.unary()
    yield Sample(s.real(2, 3), beta=0.5, threshold=30.0, label="beta")
    yield Sample(s.real(3), -2.0, label="negative beta")
    yield Sample(np.array([0.5, 1.5]), threshold=1.0, label="beyond threshold")
    yield Sample(np.array([-800.0, 800.0]), threshold=math.inf, label="saturated")
    yield Sample(s.integers(3), label="integers")


@softplus.error_samples
def _(s):
    yield ErrorSample(s.real(3), beta=0, error=ValueError, match="Received: beta=0")
    yield ErrorSample(s.real(3), threshold=None, error=TypeError, match="threshold must be.*None")
