"""Conversion between element types."""

from __future__ import annotations

from typing import Any

from ...core.dtype import as_dtype
from ...core.op import F, elementwise, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType
from ...core.tensor import Tensor


@op(
    elementwise,
    linear=("x",),
    result="any",
    method=False,
    total=True,
    work="nothing",
    numpy="np.asarray({x}, {dtype})",
    public=True,
)
def cast(x: Tensor, dtype: Any) -> Tensor:
    """Return the elements converted to a dtype; as a method, x.to(dtype) or x.astype(dtype).

    Floats lose their fraction towards zero when they become integers. Integers that do not fit a
    narrower integer type wrap around; floats that do not fit (NaN and the infinities among them)
    give an unspecified integer. Anything but zero becomes True. Only conversions from float to
    float have a gradient, which is converted back.

    >>> import weft as wf
    >>> wf.cast(wf.tensor([1.7, -1.7]), wf.int32)
    tensor([ 1, -1], dtype=int32)
    """


@cast.spelling
def _(types, dtype):
    return f"np.{dtype.name}({{x}})" if types[0].shape == () and dtype.kind in "iuf" else None


@cast.canon
def _(x, dtype):
    return (as_dtype(dtype),)


@cast.infer
def _(x, dtype):
    return TensorType(x.shape, dtype)


@cast.eval  # nothing to look up: two thirds of the time for few elements
def _(x, dtype):
    return x.astype(dtype)


@cast.vjp("x")
def _(g, x_dtype):
    return F.cast(g, x_dtype)


cast.lower(lambda b, x, dtype: b.cast(x, dtype))


@cast.samples
def _(s):
    yield from s.unary(dtype="float64")
    yield Sample(s.real(3), "float32", grad=0, label="narrow")
    yield Sample(s.real(3), float, grad=0, label="default float")
    yield Sample(s.real(2, 3), int, grad=0, label="to integer")
    yield Sample(s.real(3), "bool", grad=0, label="to bool")
    yield Sample(s.integers(2, 3), "uint8", label="integers")
    yield Sample(s.booleans(3), "float32", label="booleans")


@cast.error_samples
def _(s):
    yield ErrorSample(s.real(3), "complex64", error=TypeError, match="complex64 is not supported")
    yield ErrorSample(s.real(3), "real", error=TypeError, match="expected a dtype.*'real'")
