"""Division with remainder."""

from __future__ import annotations

import numpy as np

from ...core.dtype import bool_
from ...core.errors import DTypeError
from ...core.op import F, elementwise, op
from ...core.samples import ErrorSample, Sample
from ...core.tensor import Tensor
from ._shared import without_derivative


@op(elementwise, promote="common", operator="__floordiv__", scalar=True)
def floor_divide(x: Tensor, y: Tensor) -> Tensor:
    """Return the largest whole number not above x / y; the derivative is 0.

    An integer divided by zero gives 0, as in NumPy; floats follow IEEE 754.

    >>> import weft as wf
    >>> wf.floor_divide(wf.tensor([7, -7]), 2)
    tensor([ 3, -4])
    """


without_derivative(floor_divide)


@op(elementwise, promote="common", aliases=("remainder",), operator="__mod__", scalar=True)
def mod(x: Tensor, y: Tensor) -> Tensor:
    """Return the remainder of floor division, which has the sign of y (Python's %).

    An integer modulo zero gives 0, as in NumPy; a float gives NaN.

    >>> import weft as wf
    >>> wf.mod(wf.tensor([7, -7]), 3)
    tensor([1, 2])
    """


@mod.vjp("x")
def _(g):
    return g


@mod.partial("y")
def _(x, y):
    return -F.floor_divide(x, y)


@op(elementwise, promote="common", scalar=True)
def fmod(x: Tensor, y: Tensor) -> Tensor:
    """Return the remainder of division towards zero, which has the sign of x (C's fmod).

    >>> import weft as wf
    >>> wf.fmod(wf.tensor([7, -7]), 3)
    tensor([ 1, -1])
    """


@fmod.vjp("x")
def _(g):
    return g


@fmod.partial("y")
def _(x, y):
    return -F.trunc(x / y)


def _refuse_bool(x, y):
    """Raise for truth values, which NumPy would divide as int8."""
    if getattr(x, "dtype", None) == bool_ and getattr(y, "dtype", None) == bool_:
        raise DTypeError("truth values cannot be divided; cast them first. Received: dtype bool")
    return ()


def _samples(s):
    yield from s.binary(s.away, lambda *shape: s.positive(*shape, low=2.5, high=4.0))
    dividend, divisor = np.array([5.3, -5.3, 7.1, -7.1]), np.array([2.0, 2.0, -3.0, -3.0])
    yield Sample(dividend, divisor, label="both signs")
    yield Sample(s.integers(2, 3, low=-9, high=9), s.integers(3, low=1), label="integers")
    yield Sample(s.integers(3, low=-9, high=9), np.array([-2, 3, 0]), label="integer by zero")
    yield Sample(s.away(3), 3, label="number")


def _error_samples(s):
    yield ErrorSample(s.booleans(2), s.booleans(2), error=TypeError, match="dtype bool")


for _record in (floor_divide, mod, fmod):
    _record.canon(_refuse_bool)
    _record.samples(_samples)
    _record.error_samples(_error_samples)
