"""Comparisons: truth values out of numbers. They have no derivative."""

from __future__ import annotations

import numpy as np

from ...core.op import elementwise, op
from ...core.samples import Sample
from ...core.tensor import Tensor


@op(
    elementwise,
    promote="common",
    result="bool",
    aliases=("eq",),
    laws=("commutative",),
    exact=True,
    operator="__eq__",
)
def equal(x: Tensor, y: Tensor) -> Tensor:
    """Return x == y, element by element; NaN equals nothing.

    >>> import weft as wf
    >>> wf.equal(wf.tensor([1, 2, 3]), wf.tensor([1, 0, 3]))
    tensor([ True, False,  True])
    """


@op(
    elementwise,
    promote="common",
    result="bool",
    aliases=("ne",),
    laws=("commutative",),
    exact=True,
    operator="__ne__",
)
def not_equal(x: Tensor, y: Tensor) -> Tensor:
    """Return x != y, element by element; NaN differs from everything, itself included."""


@op(elementwise, promote="common", result="bool", aliases=("lt",), exact=True, operator="__lt__")
def less(x: Tensor, y: Tensor) -> Tensor:
    """Return x < y, element by element; False where either is NaN."""


@op(elementwise, promote="common", result="bool", aliases=("le",), exact=True, operator="__le__")
def less_equal(x: Tensor, y: Tensor) -> Tensor:
    """Return x <= y, element by element; False where either is NaN."""


@op(elementwise, promote="common", result="bool", aliases=("gt",), exact=True, operator="__gt__")
def greater(x: Tensor, y: Tensor) -> Tensor:
    """Return x > y, element by element; False where either is NaN."""


@op(elementwise, promote="common", result="bool", aliases=("ge",), exact=True, operator="__ge__")
def greater_equal(x: Tensor, y: Tensor) -> Tensor:
    """Return x >= y, element by element; False where either is NaN."""


def _samples(s):
    yield from s.binary()
    yield Sample(s.integers(2, 3), s.integers(3), label="integers")
    yield Sample(s.booleans(3), s.booleans(3), label="booleans")
    yield Sample(s.integers(3), 2, label="number")
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])
    yield Sample(special[:, None], special, grad=0, label="special values")


for _record in (equal, not_equal, less, less_equal, greater, greater_equal):
    _record.samples(_samples)

equal.lower(lambda b, x, y: b.eq(x, y))
not_equal.lower(lambda b, x, y: b.ne(x, y))
less.lower(lambda b, x, y: x < y)
less_equal.lower(lambda b, x, y: x <= y)
greater.lower(lambda b, x, y: x > y)
greater_equal.lower(lambda b, x, y: x >= y)
