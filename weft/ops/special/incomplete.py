"""The incomplete gamma functions."""

from __future__ import annotations

from typing import Any

from ...core.errors import GradientError
from ...core.op import F, elementwise, op
from ...core.special import incomplete
from ...core.tensor import Tensor
from ._shared import pair_samples


@op(elementwise, promote="float", method=False, aliases=("gammainc",), public=True)
def igamma(a: Tensor, x: Tensor) -> Tensor:
    """Return the lower incomplete gamma function over gamma(a), a > 0 and x >= 0.

    It is the distribution function of the gamma distribution. The second derivative by a is not
    defined here.

    >>> import weft as wf
    >>> wf.special.igamma(wf.tensor(1.0), wf.tensor([0.0, 1.0]))
    tensor([0.   , 0.632])
    """


igamma.eval(incomplete.igamma)


@igamma.partial("a")
def _(a, x):
    return F.igamma_slope(a, x)


@igamma.partial("x")
def _(a, x):
    return _density(a, x)


@op(elementwise, promote="float", method=False, aliases=("gammaincc",), public=True)
def igammac(a: Tensor, x: Tensor) -> Tensor:
    """Return 1 - igamma(a, x), without cancellation where igamma is near 1."""


igammac.eval(incomplete.igammac)


@igammac.partial("a")
def _(a, x):
    return -F.igamma_slope(a, x)


@igammac.partial("x")
def _(a, x):
    return -_density(a, x)


@op(elementwise, promote="float", method=False)
def igamma_slope(a: Tensor, x: Tensor) -> Tensor:
    """Return the derivative of igamma(a, x) by a."""


igamma_slope.eval(incomplete.igamma_slope)


@igamma_slope.partial("a")
def _(a):
    raise GradientError("igamma: the second derivative by a is not known")


@igamma_slope.partial("x")
def _(a, x):
    return _density(a, x) * (F.log(x) - F.digamma(a))


@op(elementwise, promote="float", method=False)
def gamma_draw_slope(a: Tensor, x: Tensor) -> Tensor:
    """Return how a draw x of the gamma distribution of shape a moves as a does.

    It is minus the derivative of the distribution function by a, over the density.
    """


gamma_draw_slope.eval(incomplete.gamma_draw_slope)


@gamma_draw_slope.partial("a")
def _(a):
    raise GradientError("gamma: the second derivative of a draw by its shape is not known")


@gamma_draw_slope.partial("x")
def _(a, x, out):
    # Of -(dP/da) / p, by the quotient rule: -(log(x) - digamma(a)) - out p' / p.
    return F.digamma(a) - F.log(x) - out * ((a - 1) / x - 1)


def _density(a: Any, x: Any) -> Any:
    return F.exp(F.xlogy(a - 1, x) - x - F.lgamma(a))


def _shapes(s: Any, *shape: int) -> Any:
    return s.positive(*shape, low=0.4, high=6.0)


pair_samples(igamma, _shapes, _shapes, grad=1)
pair_samples(igammac, _shapes, _shapes, grad=1)
pair_samples(igamma_slope, _shapes, _shapes, grad=0)
pair_samples(gamma_draw_slope, _shapes, _shapes, grad=0)
