"""Products over axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtype import DType, as_dtype
from ...core.op import F, op, reduction
from ...core.samples import ErrorSample, Sample
from ...core.shape import Axes
from ...core.tensor import Tensor
from ._common import (
    canon_reduction,
    from_rows,
    reduced_type,
    reduction_samples,
    rows_of,
    spread,
)
from .sums import total_dtype


@op(reduction, result="any", combines="prod")
def prod(
    x: Tensor, axis: Axes = None, keepdims: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Return the product over the given axes (all of them by default).

    Integers and truth values multiply in int64 (uint64 if unsigned), 16-bit floats in float32
    before the result is rounded. The product of no elements is 1. The gradient is exact at zeros.

    >>> import weft as wf
    >>> wf.prod(wf.tensor([1.0, 2.0, 4.0]))
    tensor(8.)
    """


@prod.canon
def _(x, axis, keepdims, dtype):
    return *canon_reduction(x, axis, keepdims), None if dtype is None else as_dtype(dtype)


@prod.infer
def _(x, axis, keepdims, dtype):
    return reduced_type(x, axis, keepdims, dtype or total_dtype(x.dtype))


@prod.vjp("x")
def _(g, x, axis, keepdims):
    if g.dtype != x.dtype:
        g = F.cast(g, x.dtype)
    return spread(g, x.shape, axis, keepdims) * _product_of_others(x, axis)


def _product_of_others(x: Any, axis: tuple[int, ...]) -> Any:
    """Return for each element the product of all others it was multiplied with.

    That is the product before it times the product after it; dividing by the element itself would
    fail at zeros.
    """
    rows = rows_of(x, axis)
    before = F.cumprod(rows, -1, exclusive=True)
    after = F.cumprod(rows, -1, exclusive=True, reverse=True)
    return from_rows(before * after, x.shape, axis)


prod.lower(lambda b, x, axis, keepdims, dtype: b.reduce("prod", b.cast(x, b.result)))


@prod.samples
def _(s):
    yield from reduction_samples(s)
    zeros = np.array([[1.5, 0.0, 2.0], [0.0, 3.0, 0.0], [1.0, -2.0, 0.5]])
    yield Sample(zeros, axis=1, label="zeros")
    yield Sample(zeros, label="zeros")
    yield Sample(s.integers(2, 3, low=1), axis=1, label="integers")
    yield Sample(np.array([200, 200], np.uint8), label="uint8 beyond 255")
    yield Sample(s.booleans(4), label="truth values")
    yield Sample(np.array([300.0, 300.0, 0.001], np.float16), label="float16", grad=0)
    yield Sample(s.real(3), dtype=np.float32, grad=0, label="dtype")


@prod.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), axis=2, error=IndexError, match="axis 2 is out of range")
    yield ErrorSample(s.real(2), axis=(0, 0), error=ValueError, match="more than once")
    yield ErrorSample(s.real(2), keepdims=2, error=TypeError, match="Received: 2")
