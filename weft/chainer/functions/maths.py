"""Functions of elements, sums and products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.op import F
from ...core.tensor import Tensor
from ._common import function, named

absolute = named("absolute", "abs")
arccos = named("arccos", "acos")
arcsin = named("arcsin", "asin")
arctan = named("arctan", "atan")
arctan2 = named("arctan2", "atan2")
arctanh = named("arctanh", "atanh")
ceil = named("ceil")
cos = named("cos")
cosh = named("cosh")
det = named("det")
batch_det = named("batch_det", "det")
digamma = named("digamma")
einsum = named("einsum")
erf = named("erf")
erfc = named("erfc")
erfinv = named("erfinv")
exp = named("exp")
expm1 = named("expm1")
fix = named("fix", "trunc")
floor = named("floor")
fmod = named("fmod")
inv = named("inv")
batch_inv = named("batch_inv", "inv")
lgamma = named("lgamma")
log = named("log")
log10 = named("log10")
log1p = named("log1p")
log2 = named("log2")
polygamma = named("polygamma")
rsqrt = named("rsqrt")
sign = named("sign")
sin = named("sin")
sinh = named("sinh")
sqrt = named("sqrt")
square = named("square")
tan = named("tan")


@function
def add(*xs: Tensor) -> Tensor:
    """Return the sum of two or more variables."""
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total


@function
def argmax(x: Tensor, axis: int | None = None) -> Tensor:
    """Return where the largest element stands, as int32."""
    return F.cast(F.argmax(x, axis), np.int32)


@function
def argmin(x: Tensor, axis: int | None = None) -> Tensor:
    """Return where the smallest element stands, as int32."""
    return F.cast(F.argmin(x, axis), np.int32)


@function
def average(
    x: Tensor, axis: Any = None, weights: Tensor | None = None, keepdims: bool = False
) -> Tensor:
    """Return the mean over some axes, weighted where weights are given."""
    if weights is None:
        return F.mean(x, axis, keepdims)
    if weights.ndim != x.ndim:
        axes = (axis,) if isinstance(axis, int) else tuple(axis)
        wanted = [x.shape[i] if i in {a % x.ndim for a in axes} else 1 for i in range(x.ndim)]
        weights = F.reshape(weights, tuple(wanted))
    weights = F.broadcast_to(weights, x.shape)
    return F.sum(x * weights, axis, keepdims) / F.sum(weights, axis, keepdims)


@function
def batch_l2_norm_squared(x: Tensor) -> Tensor:
    """Return the sum of squares of each example."""
    return F.sum(F.square(F.reshape(x, (x.shape[0], -1))), 1)


@function
def bias(x: Tensor, y: Tensor, axis: int = 1) -> Tensor:
    """Return x + y, with the axes of y beginning at the given one of x."""
    return x + _aligned(x, y, axis)


@function
def scale(x: Tensor, y: Tensor, axis: int = 1) -> Tensor:
    """Return x * y, with the axes of y beginning at the given one of x."""
    return x * _aligned(x, y, axis)


def _aligned(x: Tensor, y: Tensor, axis: int) -> Tensor:
    return F.reshape(y, (*[1] * axis, *y.shape, *[1] * (x.ndim - axis - y.ndim)))


@function
def cholesky(a: Tensor) -> Tensor:
    """Return the lower triangular factor of positive definite matrices."""
    return F.cholesky(a)


@function
def clip(x: Tensor, x_min: Any, x_max: Any) -> Tensor:
    """Return x kept between two numbers."""
    return F.clip(x, x_min, x_max)


@function
def cumsum(x: Tensor, axis: int | None = None) -> Tensor:
    """Return sums of all elements so far."""
    return F.cumsum(x, axis) if axis is not None else F.cumsum(F.reshape(x, (-1,)), 0)


@function
def cumprod(x: Tensor, axis: int | None = None) -> Tensor:
    """Return products of all elements so far."""
    return F.cumprod(x, axis) if axis is not None else F.cumprod(F.reshape(x, (-1,)), 0)


@function
def linear_interpolate(p: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return p * x + (1 - p) * y."""
    return p * x + (1 - p) * y


@function
def logsumexp(x: Tensor, axis: Any = None) -> Tensor:
    """Return the logarithm of the sum of exponentials."""
    return F.logsumexp(x, axis)


@function
def matmul(a: Tensor, b: Tensor, transa: bool = False, transb: bool = False) -> Tensor:
    """Return the matrix product, of transposed matrices where asked."""
    return F.matmul(_turned(a, transa), _turned(b, transb))


@function
def batch_matmul(a: Tensor, b: Tensor, transa: bool = False, transb: bool = False) -> Tensor:
    """Return products of batches of matrices; of vectors, taken as columns."""
    a = F.expand_dims(a, 2) if a.ndim == 2 else a
    b = F.expand_dims(b, 2) if b.ndim == 2 else b
    return F.matmul(_turned(a, transa), _turned(b, transb))


def _turned(x: Tensor, turned: bool) -> Tensor:
    return F.swapaxes(x, -1, -2) if turned and x.ndim > 1 else x


@function
def max(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the largest elements."""
    return F.max(x, axis, keepdims)


@function
def min(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the smallest elements."""
    return F.min(x, axis, keepdims)


@function
def mean(
    x: Tensor, axis: Any = None, weights: Tensor | None = None, keepdims: bool = False
) -> Tensor:
    """Return the mean over some axes."""
    return average.__wrapped__(x, axis, weights, keepdims)  # type: ignore[attr-defined]  # of `function`


@function
def sum(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the sum over some axes."""
    return F.sum(x, axis, keepdims)


@function
def prod(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the product over some axes."""
    return F.prod(x, axis, keepdims)


@function
def maximum(*xs: Tensor) -> Tensor:
    """Return the largest of some variables at each place."""
    best = xs[0]
    for x in xs[1:]:
        best = F.maximum(best, x)
    return best


@function
def minimum(*xs: Tensor) -> Tensor:
    """Return the smallest of some variables at each place."""
    best = xs[0]
    for x in xs[1:]:
        best = F.minimum(best, x)
    return best


@function
def ndtr(x: Tensor) -> Tensor:
    """Return the distribution function of the normal distribution."""
    return 0.5 * F.erfc(x * -(0.5**0.5))


@function
def ndtri(x: Tensor) -> Tensor:
    """Return the inverse of the distribution function of the normal distribution."""
    return F.erfinv(2 * x - 1) * 2.0**0.5


@function
def squared_difference(x1: Tensor, x2: Tensor) -> Tensor:
    """Return the squares of differences."""
    return F.square(x1 - x2)


@function
def sum_to(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Return x summed over axes until it has a shape that it could be broadcast from."""
    shape = tuple(shape)
    lead = x.ndim - len(shape)
    axes = (
        *range(lead),
        *(i + lead for i, s in enumerate(shape) if s == 1 and x.shape[i + lead] != 1),
    )
    return F.reshape(F.sum(x, axes, True), shape) if axes else x


@function
def tensordot(a: Tensor, b: Tensor, axes: Any = 2) -> Tensor:
    """Return the product of two variables, summed over some axes."""
    return F.tensordot(a, b, axes)
