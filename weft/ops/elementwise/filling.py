"""Constants in the shape and dtype of another tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtype import DType, as_dtype
from ...core.errors import ArgumentTypeError, DTypeError, ShapeError, WeftError, user_site
from ...core.op import F, composite, elementwise, op
from ...core.operands import array_from, common_dtype, holds_tensors, tensor_from
from ...core.placing import made_on
from ...core.samples import ErrorSample, Sample
from ...core.shape import Shape, TensorType
from ...core.tensor import Tensor, make_leaf, placed_like
from ._shared import named


@op(elementwise, method=False, result="any", work="nothing")
def fill_like(x: Tensor, value: Any, dtype: Any = None) -> Tensor:
    """Return a constant in the shape (and, if no dtype is given, the dtype) of x."""


@fill_like.canon
def _(x, value, dtype):
    value = fill_number(value, "fill_value")
    wanted = x.dtype if dtype is None else as_dtype(dtype)
    check_fits(value, wanted, "fill_value")
    return value, wanted


@fill_like.infer
def _(x, value, dtype):
    return TensorType(x.shape, dtype)


@fill_like.spelling
def _(types, value, dtype):
    if types[0].shape == () or types[0].dtype != dtype:
        return None
    if value in (0, 1) and str(value)[0] != "-":
        return "np.ones_like({x})" if value else "np.zeros_like({x})"
    return f"np.full_like({{x}}, {value!r})" if np.isfinite(value) else None


@fill_like.eval  # a constant has no shape to compute with
def _(x, value, dtype):
    if value.__class__ is int and value == 0:  # not -0.0
        return np.zeros(x.shape, dtype)
    return np.full(x.shape, value, dtype)


fill_like.lower(lambda b, x, value, dtype: b.constant(value, dtype))


@fill_like.samples
def _(s):
    yield from s.unary(grad=0, value=2.5)
    yield Sample(s.real(3), 0, grad=0, label="zero")
    yield Sample(s.real(3), -0.0, grad=0, label="minus zero")
    yield Sample(s.real(3), True, dtype="bool", grad=0, label="bool")
    yield Sample(s.integers(3), 2, label="integers")
    yield Sample(s.integers(3), 0.5, dtype="float32", label="other dtype")


@fill_like.error_samples
def _(s):
    yield ErrorSample(s.real(3), "a", error=TypeError, match="must be a number.*'a'")
    yield ErrorSample(s.integers(3), 0.5, error=TypeError, match="0.5 .*int64")
    yield ErrorSample(s.real(3), 1, "complex", error=TypeError, match="complex")


@composite(method=False)
def full_like(
    x: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Any:
    """Return a tensor of the shape and dtype of x with every element set to a number.

    The value may be a tensor that broadcasts to the shape: gradients flow to it.

    >>> import weft as wf
    >>> wf.full_like(wf.zeros(2), 7)
    tensor([7., 7.])
    """
    return _constant_like("full_like", x, fill_value, dtype, requires_grad, device)


@composite(method=False)
def zeros_like(
    x: Any, *, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Any:
    """Return zeros of the shape and dtype of x."""
    return _constant_like("zeros_like", x, 0, dtype, requires_grad, device)


@composite(method=False)
def ones_like(x: Any, *, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Any:
    """Return ones of the shape and dtype of x."""
    return _constant_like("ones_like", x, 1, dtype, requires_grad, device)


def empty_like(
    x: Any, *, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """Return arbitrary values in the shape and dtype of x, to be written before they are read."""
    source = x if hasattr(x, "shape") else array_from(x, "empty_like: x")
    values = np.empty(source.shape, source.dtype if dtype is None else as_dtype(dtype))
    made = make_leaf(values, requires_grad, user_site())
    return placed_like(x, made) if device is None else made_on(made, device)


def _constant_like(
    name: str, x: Any, value: Any, dtype: Any, requires_grad: bool, device: Any
) -> Any:
    try:
        result = _fill(x, value, dtype)
        made = result.detach().requires_grad_() if requires_grad else result
        return made if device is None else made_on(made, device)
    except WeftError as error:
        raise named(error, name, "fill_like") from None


def _fill(x: Any, value: Any, dtype: Any) -> Any:
    if not is_spread(value):
        return F.fill_like(x, value, dtype)
    wanted = x.dtype if dtype is None else as_dtype(dtype)
    return spread(value, x.shape, wanted, "fill_value")


def is_spread(value: Any) -> bool:
    """Tell whether what to fill with is a tensor or an array, to be broadcast, not a number."""
    return holds_tensors(value) or isinstance(value, np.ndarray)


def spread(value: Any, shape: Shape, dtype: DType | None, what: str) -> Tensor:
    """Return tensors or an array broadcast to a shape, by a recorded operation."""
    if dtype is None and getattr(value, "weak", False):  # a number of a recording
        dtype = common_dtype([value])
    source = tensor_from(value, what, dtype)
    try:
        result: Tensor = F.broadcast_to(source, shape)
    except ShapeError:
        raise ShapeError(f"{what} of shape {source.shape} does not broadcast to {shape}") from None
    return result


def fill_number(value: Any, what: str) -> bool | int | float:
    """Return the number to fill with; raise for anything that is not one."""
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return value.item()
    raise ArgumentTypeError(
        f"{what} must be a number. Received: {type(value).__name__} {value!r:.60}"
    )


def check_fits(value: bool | int | float, dtype: DType, what: str) -> None:
    """Raise if the dtype cannot hold the number; floats may round it or make it infinite."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        fits = limits.min <= value <= limits.max and value % 1 == 0
    else:
        fits = not isinstance(value, int) or value.bit_length() < 1024  # what float64 reaches
    if not fits:
        raise DTypeError(f"{what} {value!r:.60} is not a value of {dtype}; pass a wider dtype")
