"""Shapes, axes and the type (shape and dtype) that shape rules compute with."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .dim import Dim, broadcast_sizes
from .dtype import DType
from .errors import ArgumentTypeError, AxisError, ShapeError

Size = Any  # an int, or a Dim where a graph does not know it yet; both behave as integers
Shape = tuple[Size, ...]
Axes = int | Sequence[int] | None


class _ShapeAndDType(NamedTuple):
    shape: Shape
    dtype: DType


class TensorType(_ShapeAndDType):
    """The type of a tensor: what a shape rule receives for an input and returns for an output.

    Its dtype is NumPy's object, whatever stands in front of that in a face.
    """

    __slots__ = ()

    def __new__(cls, shape: Shape, dtype: Any) -> TensorType:
        """Return the type of a shape and a dtype."""
        if not isinstance(dtype, np.dtype):
            dtype = getattr(dtype, "dtype", dtype)
        return tuple.__new__(cls, (shape, dtype))

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return size_of(self.shape)


def type_of(value: Any) -> TensorType:
    """Return the type of anything that has a shape and a dtype."""
    return TensorType(tuple(value.shape), value.dtype)


def size_of(shape: Iterable[int]) -> int:
    """Return the number of elements of a shape."""
    size = 1
    for dim in shape:
        size *= dim
    return size


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape that all given shapes broadcast to."""
    ndim = max(map(len, shapes), default=0)
    result: list[Size] = [1] * ndim
    for shape in shapes:
        for i, dim in enumerate(shape, ndim - len(shape)):
            if dim == 1 or dim == result[i]:
                continue
            if dim.__class__ is Dim or result[i].__class__ is Dim:
                result[i] = broadcast_sizes(result[i], dim)
                continue
            if result[i] != 1:
                raise ShapeError(_broadcast_message(shapes, i - ndim), shapes=shapes)
            result[i] = dim
    return tuple(result)


def _broadcast_message(shapes: tuple[Shape, ...], axis: int) -> str:
    dims = sorted({s[axis] for s in shapes if len(s) >= -axis and s[axis] != 1}, key=str)
    shown = " and ".join(map(str, shapes))
    hint = _broadcast_hint(shapes)
    return f"shapes {shown} do not broadcast: sizes {dims} differ at axis {axis}{hint}"


def _broadcast_hint(shapes: tuple[Shape, ...]) -> str:
    """Suggest the missing axis when one shape is a leading part of another."""
    short, long = min(shapes, key=len), max(shapes, key=len)
    if 0 < len(short) < len(long) and long[: len(short)] == short:
        return f"; did you mean to add a trailing axis, x[..., None], to {short}?"
    return ""


def as_int(value: Any, what: str) -> int:
    """Return an integer argument as a Python int (or an unknown size); raise if it is none."""
    if value.__class__ is Dim:
        return value  # type: ignore[return-value]  # stands for an int
    if isinstance(value, bool):
        raise ArgumentTypeError(f"{what} must be an integer. Received: {value!r}")
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentTypeError(f"{what} must be an integer. Received: {value!r}") from None


def as_shape(shape: Any, what: str = "shape") -> Shape:
    """Return a shape argument (an int or a sequence of ints) as a tuple of sizes >= 0."""
    if shape.__class__ is int and shape >= 0:
        return (shape,)
    if shape.__class__ is tuple and all(d.__class__ is int and d >= 0 for d in shape):
        return shape
    if isinstance(shape, (int, np.integer, Dim)):
        shape = (shape,)
    try:
        result: Shape = tuple(as_int(dim, f"each size in {what}") for dim in shape)
    except TypeError as error:
        if isinstance(error, ArgumentTypeError):
            raise
        raise ArgumentTypeError(
            f"{what} must be an int or a sequence of ints. Received: {shape!r}"
        ) from None
    if any(dim < 0 for dim in result if dim.__class__ is not Dim):
        raise ShapeError(f"{what} must not hold negative sizes. Received: {result}")
    return result


def normalize_axis(axis: Any, ndim: int, what: str = "axis") -> int:
    """Return an axis counted from the front; raise if it lies outside `ndim` dimensions."""
    index = axis if axis.__class__ is int else as_int(axis, what)
    if -ndim <= index < ndim:
        return index + ndim if index < 0 else index
    if ndim == 0:
        raise AxisError(
            f"{what} {index} is out of range: the tensor is 0-d and has no axes",
            axis=index,
            ndim=ndim,
        )
    raise AxisError(
        f"{what} {index} is out of range for {ndim} dimension(s); use {-ndim}..{ndim - 1}",
        axis=index,
        ndim=ndim,
    )


def normalize_axes(axis: Axes, ndim: int, what: str = "axis") -> tuple[int, ...]:
    """Return axes (None = all) as a sorted tuple counted from the front; raise on repeats."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, (tuple, list)):
        return (normalize_axis(axis, ndim, what),)
    axes = tuple(sorted(normalize_axis(a, ndim, what) for a in axis))
    if len(set(axes)) != len(axes):
        twice = next(a for a in axes if axes.count(a) > 1)
        raise AxisError(f"{what} {tuple(axis)} names a dimension more than once", twice=twice)
    return axes


def reduced_shape(shape: Shape, axes: tuple[int, ...], keepdims: bool) -> Shape:
    """Return the shape after reducing over normalised axes."""
    if keepdims:
        return tuple(1 if i in axes else dim for i, dim in enumerate(shape))
    return tuple(dim for i, dim in enumerate(shape) if i not in axes)


def broadcast_axes(from_shape: Shape, to_shape: Shape) -> tuple[int, ...]:
    """Return the axes of `to_shape` along which `from_shape` was repeated to fill it."""
    lead = len(to_shape) - len(from_shape)
    grown = (i + lead for i, dim in enumerate(from_shape) if dim == 1 and to_shape[i + lead] != 1)
    return (*range(lead), *grown)
