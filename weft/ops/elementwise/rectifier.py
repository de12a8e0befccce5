"""Piecewise linear activation functions.

At a kink the derivative is that of the flat (or outer) side: relu'(0) = 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dim import may_equal
from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite, elementwise, op
from ...core.samples import ErrorSample, Sample
from ...core.tensor import Tensor
from .._operands import constant
from ._shared import as_number, as_real, counted


@op(elementwise, laws=("idempotent",), numpy="np.maximum({x}, 0)", public=("wf", "nn.functional"))
def relu(x: Tensor) -> Tensor:
    """Return max(x, 0); the derivative at 0 is 0.

    >>> import weft as wf
    >>> wf.relu(wf.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """


relu.infer(counted)


@relu.partial("x")
def _(out):
    return out > 0


relu.lower(lambda b, x: b.maximum(x, 0))


@relu.samples
def _(s):
    yield from s.unary(s.away)
    yield Sample(s.integers(3, low=-3), label="integers")
    yield Sample(s.booleans(3), label="booleans")


@op(elementwise, laws=("idempotent",), public=("wf", "nn.functional"))
def relu6(x: Tensor) -> Tensor:
    """Return min(max(x, 0), 6); the derivative at 0 and at 6 is 0."""


relu6.infer(counted)


relu6.lower(lambda b, x: b.minimum(b.maximum(x, 0), 6))


@relu6.partial("x")
def _(out):
    return (out > 0) & (out < 6)


@op(elementwise, promote="float", exact=True, public=("wf", "nn.functional"))
def leaky_relu(x: Tensor, negative_slope: Any = 0.01) -> Tensor:
    """Return x above 0 and negative_slope * x elsewhere; at 0 the slope is negative_slope."""


@leaky_relu.canon
def _(x, negative_slope):
    return (as_real(negative_slope, "negative_slope"),)


@leaky_relu.eval
def _(x, negative_slope):
    below = x * constant(negative_slope, x)
    if 0 < negative_slope <= 1:  # a third of the time that choosing takes
        return np.maximum(x, below)
    return np.where(x > 0, x, below)


@leaky_relu.vjp("x")
def _(g, x, negative_slope):
    return F.where(x > 0, g, g * constant(negative_slope, g))


leaky_relu.lower(lambda b, x, slope: b.select(x > 0.0, x, x * slope))


@leaky_relu.samples
def _(s):
    yield from s.unary(s.away)
    for slope in (0.3, 0, -0.5, 2):
        yield Sample(s.away(2, 3), slope, label=f"slope {slope}")


@leaky_relu.error_samples
def _(s):
    yield ErrorSample(s.real(3), None, error=TypeError, match="negative_slope must be.*None")


@composite(method=True, public=("wf", "nn.functional"))
def prelu(x: Any, weight: Any) -> Any:
    """Return x above 0 and weight * x elsewhere, with one weight or one per channel (axis 1).

    >>> import weft as wf
    >>> wf.prelu(wf.tensor([[-1.0, -1.0]]), wf.tensor([0.1, 0.5]))
    tensor([[-0.1, -0.5]])
    """
    if weight.size == 1:
        slopes = F.reshape(weight, ())
    elif x.ndim >= 2 and may_equal(weight.shape, (x.shape[1],)):
        slopes = F.reshape(weight, (weight.size,) + (1,) * (x.ndim - 2))
    elif may_equal(weight.size, 1):
        slopes = F.reshape(weight, ())
    else:
        raise ShapeError(
            "prelu: weight must have one element or one per channel (axis 1 of x). "
            f"Received: weight of shape {tuple(weight.shape)}, x of shape {tuple(x.shape)}"
        )
    return F.where(x > 0, x, slopes * x)


# -- bounded --------------------------------------------------------------------------------------


@op(elementwise, promote="float", laws=("idempotent",), public=("wf", "nn.functional"))
def hardtanh(x: Tensor, min_val: Any = -1.0, max_val: Any = 1.0) -> Tensor:
    """Return x cut off at min_val and max_val; the derivative at both is 0."""


@hardtanh.canon
def _(x, min_val, max_val):
    low, high = as_number(min_val, "min_val"), as_number(max_val, "max_val")
    if not low <= high:
        raise ArgumentError(
            f"min_val must not exceed max_val. Received: min_val={low}, max_val={high}"
        )
    return low, high


@hardtanh.partial("x")
def _(x, min_val, max_val):
    return (x > min_val) & (x < max_val)


hardtanh.lower(lambda b, x, low, high: b.minimum(b.maximum(x, low), high))


@hardtanh.samples
def _(s):
    yield from s.unary(lambda *shape: s.away(*shape, points=(-1.0, 1.0)))
    yield Sample(s.away(2, 3, points=(-0.5, 1.5)), -0.5, max_val=1.5, label="bounds")


@hardtanh.error_samples
def _(s):
    yield ErrorSample(s.real(3), 2, 1, error=ValueError, match="min_val=2, max_val=1")
    yield ErrorSample(s.real(3), "a", error=TypeError, match="min_val must be.*'a'")


@op(elementwise, promote="float", public=("wf", "nn.functional"))
def hardsigmoid(x: Tensor) -> Tensor:
    """Return min(max(x + 3, 0), 6) / 6; the derivative at -3 and 3 is 0."""


hardsigmoid.lower(lambda b, x: b.minimum(b.maximum(x + 3.0, 0.0), 6.0) / 6.0)


@hardsigmoid.vjp("x")
def _(g, x):
    return g * ((x > -3) & (x < 3)) / 6


@op(elementwise, promote="float", public=("wf", "nn.functional"))
def hardswish(x: Tensor) -> Tensor:
    """Return x * hardsigmoid(x) (Howard et al. 2019); the derivative is 0 at -3 and 1 at 3."""


hardswish.lower(lambda b, x: x * (b.minimum(b.maximum(x + 3.0, 0.0), 6.0) / 6.0))


@hardswish.partial("x")
def _(x):
    return F.where(x <= -3, 0, F.where(x >= 3, 1, (2 * x + 3) / 6))


def _bounded_samples(s):
    yield from s.unary(s.away)
    yield Sample(np.array([-4.0, -2.5, 0.5, 2.5, 4.0, 7.0]), label="both ends")
    yield Sample(s.integers(3, low=-9, high=9), label="integers")


for _record in (relu6, hardsigmoid, hardswish):
    _record.samples(_bounded_samples)


# -- shrinking ------------------------------------------------------------------------------------


@op(elementwise, promote="float", public=("wf", "nn.functional"))
def softshrink(x: Tensor, lambd: Any = 0.5) -> Tensor:
    """Return x moved towards 0 by lambd, and 0 within [-lambd, lambd], bounds included."""


softshrink.lower(lambda b, x, bound: x - b.minimum(b.maximum(x, -bound), bound))


@softshrink.partial("x")
def _(x, lambd):
    return (x > lambd) | (x < -lambd)


@op(elementwise, promote="float", public=("wf", "nn.functional"))
def hardshrink(x: Tensor, lambd: Any = 0.5) -> Tensor:
    """Return x, and 0 within [-lambd, lambd], bounds included."""


hardshrink.lower(lambda b, x, bound: b.select((x >= -bound) & (x <= bound), 0.0, x))


@hardshrink.partial("x")
def _(x, lambd):
    return (x > lambd) | (x < -lambd)


def _shrink_canon(x, lambd):
    bound = as_real(lambd, "lambd")
    if not bound >= 0:
        raise ArgumentError(f"lambd must not be negative. Received: lambd={bound}")
    return (bound,)


def _shrink_samples(s):
    yield from s.unary(lambda *shape: s.away(*shape, points=(-0.5, 0.5)))
    yield Sample(s.away(2, 3, points=(-1.0, 1.0)), lambd=1, label="lambd 1")
    yield Sample(s.away(3), 0, label="lambd 0")


def _shrink_errors(s):
    yield ErrorSample(s.real(3), -1, error=ValueError, match="Received: lambd=-1")
    yield ErrorSample(s.real(3), "a", error=TypeError, match="lambd must be.*'a'")


for _record in (softshrink, hardshrink):
    _record.canon(_shrink_canon)
    _record.samples(_shrink_samples)
    _record.error_samples(_shrink_errors)


@op(elementwise, promote="float", exact=True, public=("wf", "nn.functional"))
def threshold(x: Tensor, threshold: Any, value: Any) -> Tensor:
    """Return x where it exceeds the threshold and a fixed value elsewhere; NaN stays NaN."""


@threshold.canon
def _(x, threshold, value):
    return as_number(threshold, "threshold"), as_number(value, "value")


@threshold.partial("x")
def _(x, threshold):
    return x > threshold


threshold.lower(lambda b, x, limit, value: b.select(x <= limit, value, x))


@threshold.samples
def _(s):
    yield from s.unary(s.away, threshold=0, value=-1.5)
    yield Sample(s.away(3, points=(0.5,)), 0.5, 20, label="positional")


@threshold.error_samples
def _(s):
    yield ErrorSample(s.real(3), "a", 1.0, error=TypeError, match="threshold must be.*'a'")
    yield ErrorSample(s.real(3), 1.0, None, error=TypeError, match="value must be.*None")
