"""Variance and standard deviation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dim import Dim
from ...core.dtype import float64
from ...core.errors import ArgumentTypeError
from ...core.op import F, op, reduction
from ...core.samples import ErrorSample, Sample
from ...core.shape import Axes, Shape
from ...core.sums import sum_array, widened
from ...core.tensor import Tensor
from ..elementwise._shared import constant
from ._common import (
    canon_reduction,
    count_of,
    reduced_type,
    reduction_samples,
    spread,
)


@op(reduction, promote="float")
def var(x: Tensor, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the variance over the given axes (all of them by default).

    The squared deviations are divided by n - correction: 0 (the default, as in NumPy and the array
    API) for the variance of the elements, 1 for the unbiased estimate (PyTorch's default). As a
    method, x.var(unbiased=True) is accepted too. Where n - correction is not positive the result
    is nan.

    >>> import weft as wf
    >>> wf.var(wf.tensor([1.0, 3.0]), correction=1)
    tensor(2.)
    """


@op(reduction, promote="float")
def std(x: Tensor, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the standard deviation over the given axes: the square root of `var`.

    The gradient at equal elements, where none exists, is 0.
    """


@var.eval
def _(x, axis, correction, keepdims):
    return _variance(x, axis, correction, keepdims).astype(x.dtype, copy=False)


@std.eval
def _(x, axis, correction, keepdims):
    return np.sqrt(_variance(x, axis, correction, keepdims)).astype(x.dtype, copy=False)


def _variance(x, axis, correction, keepdims):
    """Return the variance by two passes; 16-bit floats are computed in float32."""
    wide = widened(x)
    total = sum_array(wide, axis, True)
    deviation = wide - total / (count_of(x.shape, axis) or 1)
    squares = sum_array(np.square(deviation), axis, keepdims)
    freedom = _freedom(x.shape, axis, correction)
    return squares / freedom if freedom > 0 else squares * np.float32(np.nan)


def _freedom(shape: Shape, axis: tuple[int, ...], correction: float) -> float:
    return count_of(shape, axis) - correction


def _lowered_variance(b, x, axis, correction, keepdims):
    deviation = x - b.reduce("sum", x) / float(b.count)
    freedom = b.count - correction
    return b.reduce("sum", deviation * deviation) / (freedom if freedom > 0 else float("nan"))


var.lower(_lowered_variance)
std.lower(lambda b, *operands: b.sqrt(_lowered_variance(b, *operands)))


@var.vjp("x")
def _(g, x, axis, correction, keepdims):
    return spread(g, x.shape, axis, keepdims) * _deviation(x, axis, correction, 2.0)


@std.vjp("x")
def _(g, out, x, axis, correction, keepdims):
    flat = out == 0
    slope = F.where(flat, F.zeros_like(g), g) / F.where(flat, F.ones_like(out), out)
    return spread(slope, x.shape, axis, keepdims) * _deviation(x, axis, correction, 1.0)


def _deviation(x: Any, axis: tuple[int, ...], correction: float, factor: float) -> Any:
    """Return factor / (n - correction) times the deviation from the mean."""
    scale = _scale(factor, _freedom(x.shape, axis, correction), x)
    return (x - F.mean(x, axis, keepdims=True)) * scale


def _scale(factor: float, freedom: Any, x: Any) -> Any:
    if isinstance(freedom, Dim):
        count = F.size_value(freedom, float64)
        return F.cast(F.where(count > 0, factor / count, float("nan")), x.dtype)
    return constant(factor / freedom if freedom > 0 else float("nan"), x)


def _canon_moment(x, axis, correction, keepdims):
    axis, keepdims = canon_reduction(x, axis, keepdims)
    if isinstance(correction, bool) or not isinstance(correction, (int, float, np.number)):
        raise ArgumentTypeError(f"correction must be a number. Received: {correction!r}")
    return axis, float(correction), keepdims


def _moment_type(x, axis, correction, keepdims):
    return reduced_type(x, axis, keepdims)


def _moment_method(moment: Any) -> Any:
    """Return the Tensor method, which also takes PyTorch's `unbiased` and NumPy's `ddof`."""

    def method(
        x: Tensor,
        axis: Axes = None,
        *,
        correction: float | None = None,
        keepdims: bool = False,
        unbiased: bool | None = None,
        ddof: float | None = None,
        **names: Any,
    ) -> Any:
        given = [v for v in (correction, unbiased, ddof) if v is not None]
        if len(given) > 1:
            raise ArgumentTypeError(
                f"{moment.name}: correction, unbiased and ddof say the same; give one of them. "
                f"Received: {given}"
            )
        chosen = given[0] if given else 0.0
        correction = float(chosen) if isinstance(chosen, bool) else chosen
        return moment.function(x, axis, correction=correction, keepdims=keepdims, **names)

    method.__name__ = moment.name
    method.__doc__ = moment.doc
    return method


def _moment_samples(s):
    yield from reduction_samples(s, s.distinct, empty=False)
    for shape in ((0,), (2, 0, 3)):
        yield Sample(s.real(*shape), axis=min(len(shape) - 1, 1), label="empty")
    yield Sample(s.real(4), correction=1)
    yield Sample(s.real(2, 3), axis=1, correction=1.5, keepdims=True)
    yield Sample(s.real(1), correction=1, grad=0, label="one element")
    yield Sample(np.array([3.0, 3.0]), grad=0, label="equal elements")
    yield Sample(s.integers(2, 3), axis=0, label="integers")
    yield Sample(np.array([1e4, 1e4 + 1, 1e4 + 2], np.float32), grad=0, label="far from zero")


def _moment_errors(s):
    yield ErrorSample(s.real(2, 3), axis=2, error=IndexError, match="axis 2 is out of range")
    yield ErrorSample(s.real(3), correction="1", error=TypeError, match="Received: '1'")
    yield ErrorSample(s.real(3), correction=True, error=TypeError, match="Received: True")


for _moment in (var, std):
    _moment.canon(_canon_moment)
    _moment.infer(_moment_type)
    _moment.as_method(_moment_method(_moment))
    _moment.samples(_moment_samples)
    _moment.error_samples(_moment_errors)
