"""Sizes as tensors: what a graph computes from shapes that are known when it runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dim import Dim, may_equal
from ..core.dim.number import RealDim, check_expression, number_value
from ..core.dtype import as_dtype, int64, is_float
from ..core.errors import DTypeError, ShapeError
from ..core.op import F, general, movement, op
from ..core.operands import scalar_array
from ..core.samples import ErrorSample, Sample
from ..core.shape import Shape, TensorType, as_int, as_shape
from ..core.tensor import Tensor
from ._memory import check_allocation


@op(general, method=False)
def size_value(dim: Any, dtype: Any = int64) -> Tensor:
    """Return a size, or a number computed from sizes, as a tensor without dimensions.

    A number is given as an expression: see core/dim/number.py.
    """


@size_value.canon
def _(dim, dtype):
    dtype = as_dtype(dtype)
    if not isinstance(dim, (RealDim, tuple)):
        return as_int(dim, "dim"), dtype
    if not is_float(dtype):
        raise DTypeError(f"the number {dim!r} is not an integer and does not fit in {dtype}")
    return check_expression(dim.expression if isinstance(dim, RealDim) else dim), dtype


@size_value.infer
def _(dim, dtype):
    return TensorType((), dtype)


@size_value.eval
def _(dim, dtype):
    return scalar_array(number_value(dim), dtype)


@size_value.samples
def _(s):
    yield Sample(3)
    yield Sample(3, "float32", label="other dtype")
    yield Sample(("truediv", 1.0, ("mul", 3, 2)), "float64", label="expression")


@size_value.error_samples
def _(s):
    yield ErrorSample(1.5, error=TypeError, match="dim must be an integer.*1.5")
    yield ErrorSample(("truediv", 1, 3), error=TypeError, match="does not fit in int64")
    yield ErrorSample(("exec", 1), "float32", error=TypeError, match="not an expression of sizes")
    yield ErrorSample(("truediv", 1, 0), "float32", error=ValueError, match="division by zero")


@op(general, method=False)
def iota(length: Any) -> Tensor:
    """Return the integers 0, 1, ... of a length that may be known only when a graph runs."""


@iota.canon
def _(length):
    length = as_int(length, "length")
    if not isinstance(length, Dim):
        if length < 0:
            raise ShapeError(f"length must not be negative. Received: {length}")
        check_allocation("iota", (length,), int64)
    return (length,)


@iota.infer
def _(length):
    return TensorType((length,), int64)


@iota.eval
def _(length):
    return np.arange(length, dtype=np.int64)


@iota.place
def _(b, length):
    return b.coordinates[0].expr


@iota.samples
def _(s):
    yield Sample(4)
    yield Sample(0, label="empty")


@iota.error_samples
def _(s):
    yield ErrorSample(-1, error=ValueError, match="negative.*-1")
    yield ErrorSample("a", error=TypeError, match="length must be an integer")


@op(movement, linear=("x",), method=False, identity=True)
def ensure_shape(x: Tensor, shape: Shape) -> Tensor:
    """Return x if it has a shape, else raise: how a graph checks what it knows only when it runs.

    >>> import weft as wf
    >>> from weft.core.op import F
    >>> F.ensure_shape(wf.zeros(2, 3), (2, 3)).shape
    (2, 3)
    """


@ensure_shape.canon
def _(x, shape):
    return (as_shape(shape),)


@ensure_shape.infer
def _(x, shape):
    _check_shape(x, shape)
    # Of two sizes that must be equal, the known one is the better description.
    return TensorType(
        tuple(b if isinstance(a, Dim) else a for a, b in zip(x.shape, shape, strict=True)), x.dtype
    )


@ensure_shape.eval
def _(x, shape):
    _check_shape(x, shape)
    return x


@ensure_shape.vjp("x")
def _(g, x_shape):
    return F.ensure_shape(g, x_shape)


@ensure_shape.samples
def _(s):
    yield Sample(s.real(2, 3), (2, 3))
    yield Sample(s.real(), (), label="0-d")
    yield Sample(s.integers(0, 2), [0, 2], label="empty")


@ensure_shape.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), (3, 2), error=ValueError, match=r"\(3, 2\).*\(2, 3\)")
    yield ErrorSample(s.real(2), (2, 1), error=ValueError, match=r"\(2, 1\).*\(2,\)")
    yield ErrorSample(s.real(2), 2.5, error=TypeError, match="Received: 2.5")


def _check_shape(x: Any, shape: Shape) -> None:
    if x.shape != shape and not may_equal(tuple(x.shape), shape):
        raise ShapeError(f"the shape must be {shape}. Received: {tuple(x.shape)}")
