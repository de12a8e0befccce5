"""Rounding to whole numbers. These functions are piecewise constant: their derivative is 0."""

from __future__ import annotations

import numpy as np

from ...core.dtype import float64
from ...core.op import elementwise, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import as_int
from ...core.tensor import Tensor
from ._shared import without_derivative


@op(elementwise, laws=("idempotent",), scalar=True)
def floor(x: Tensor) -> Tensor:
    """Return the largest whole number not above each element; integers stay as they are."""


@op(elementwise, laws=("idempotent",), scalar=True)
def ceil(x: Tensor) -> Tensor:
    """Return the smallest whole number not below each element; integers stay as they are."""


@op(elementwise, laws=("idempotent",), scalar=True)
def trunc(x: Tensor) -> Tensor:
    """Return each element without its fraction; integers stay as they are."""


def _samples(s):
    yield from s.unary(lambda *shape: s.away(*shape, points=(-1.0, 0.0, 1.0)))
    yield Sample(s.integers(3, low=-5), label="integers")
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.5, -0.5, 1e30])
    yield Sample(special, grad=0, label="special values")


for _record in (floor, ceil, trunc):
    without_derivative(_record)
    _record.samples(_samples)


@op(elementwise, public=("wf", "special"))
def round(x: Tensor, decimals: int = 0) -> Tensor:
    """Return each element rounded to a number of decimals, halves to the even neighbour.

    Negative decimals round to tens, hundreds and so on.

    >>> import weft as wf
    >>> wf.round(wf.tensor([0.5, 1.5, 2.25]))
    tensor([0., 2., 2.])
    """


@round.canon
def _(x, decimals):
    return (as_int(decimals, "decimals"),)


@round.lower
def _(b, x, decimals):
    if decimals == 0 or (decimals > 0 and x.dtype.kind != "f"):
        return b.round(x)
    power = 10.0 ** abs(decimals)
    if decimals > 0:
        return b.round(x * power) / power
    wide = x if x.dtype.kind == "f" else b.cast(x, float64)
    return b.cast(b.round(wide / power) * power, x.dtype)


without_derivative(round)


@round.samples
def _(s):
    yield from s.unary(lambda *shape: s.away(*shape, points=(-1.5, -0.5, 0.5, 1.5)))
    yield Sample(np.array([1.23, -5.68]), 1, label="decimals")
    yield Sample(np.array([123.4, -56.7]), decimals=-1, label="negative decimals")
    yield Sample(s.integers(3, high=900), -2, label="integers")
    yield Sample(np.array([0.5, 1.5, 2.5, -0.5]), grad=0, label="halves")


@round.error_samples
def _(s):
    yield ErrorSample(s.real(3), 1.5, error=TypeError, match="decimals must be an integer.*1.5")


@op(elementwise)
def frac(x: Tensor) -> Tensor:
    """Return the fraction of each element, with its sign: x - trunc(x)."""


frac.lower(lambda b, x: x - b.trunc(x))


@frac.vjp("x")
def _(g):
    return g


frac.samples(_samples)
