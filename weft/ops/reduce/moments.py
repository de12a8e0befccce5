"""Variance and standard deviation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dim import Dim
from ...core.dtype import float64
from ...core.errors import ArgumentError, ArgumentTypeError
from ...core.op import F, op, reduction
from ...core.samples import ErrorSample, Sample
from ...core.shape import Axes
from ...core.tensor import Tensor
from .._operands import constant
from ._common import (
    as_flag,
    canon_reduction,
    count_of,
    reduced_type,
    reduction_samples,
    spread,
)


@op(reduction, promote="float", keywords={"ddof": "correction"})
def var(x: Tensor, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the variance over the given axes (all of them by default).

    The squared deviations are divided by n - correction: 0 (the default, as in NumPy and the array
    API) for the variance of the elements, 1 for the unbiased estimate (PyTorch's default, which
    unbiased=True names too; ddof is NumPy's name of the correction). With PyTorch's `dim=` the
    correction must be said. Where n - correction is not positive the result is nan.

    >>> import weft as wf
    >>> wf.var(wf.tensor([1.0, 3.0]), correction=1)
    tensor(2.)
    """


@op(reduction, promote="float", keywords={"ddof": "correction"})
def std(x: Tensor, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the standard deviation over the given axes: the square root of `var`.

    The gradient at equal elements, where none exists, is 0.
    """


def _freedom(count: int, correction: float) -> float:
    freedom = count - correction
    return freedom if freedom > 0 else float("nan")


def _lowered_variance(b, x, axis, correction, keepdims):
    deviation = x - b.reduce("sum", x) / b.count
    return b.reduce("sum", deviation * deviation) / b.number(_freedom, b.count, correction)


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
    scale = _scale(factor, count_of(x.shape, axis) - correction, x)
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


def _moment_by_keywords(moment: Any) -> Any:
    """Return what PyTorch's keywords do: they divide by n - 1 there, by n here, so that it is said.

    `dim=` without a correction raises, where the numbers would silently be others.
    """

    def rule(
        x: Any,
        dim: Axes = None,
        unbiased: Any = None,
        keepdim: bool = False,
        correction: Any = None,
    ) -> Any:
        if (unbiased is None) == (correction is None):
            said = "" if unbiased is None else f", correction={correction!r}, unbiased={unbiased!r}"
            raise ArgumentError(
                f"{moment.name}: with dim= or keepdim= say what to divide by, once: correction=1 "
                "or unbiased=True (PyTorch's default, n - 1), or correction=0 or unbiased=False "
                f"(NumPy's default, n). Received: dim={dim!r}{said}"
            )
        if unbiased is not None:
            correction = float(as_flag(unbiased, f"{moment.name}: unbiased"))
        return moment(x, dim, correction=correction, keepdims=keepdim)

    return rule


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
    _moment.by_keywords()(_moment_by_keywords(_moment))
    _moment.samples(_moment_samples)
    _moment.error_samples(_moment_errors)
