"""Give the same elements another shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dim import Dim, differ_unless_empty, may_equal, surely_less
from ...core.errors import ArgumentTypeError, ShapeError, UnknownSizeError
from ...core.op import F, composite, movement, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import (
    Axes,
    Shape,
    TensorType,
    as_int,
    normalize_axes,
    normalize_axis,
    size_of,
)
from ...core.tensor import Tensor


@op(movement, linear=("x",), reshapes=True, numpy="np.reshape({x}, {shape})")
def reshape(x: Tensor, shape: Shape) -> Tensor:
    """Return the elements, in row-major order, in another shape; one size may be -1.

    >>> import weft as wf
    >>> wf.reshape(wf.arange(6), (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """


@reshape.canon
def _(x, shape):
    if is_plain(shape):
        return (shape,)
    sizes = as_sizes(shape)
    return (_fill_unknown(sizes, x) if -1 in sizes else sizes,)


@reshape.infer
def _(x, shape):
    if differ_unless_empty(size_of(shape), x.size):
        raise ShapeError(
            f"a tensor of shape {x.shape} with {x.size} element(s) cannot take shape {shape} "
            f"with {size_of(shape)}"
        )
    return TensorType(shape, x.dtype)


@reshape.eval
def _(x, shape):
    return x.reshape(shape)


@reshape.vjp("x")
def _(g, x_shape):
    return F.reshape(g, x_shape)


@reshape.as_method
def _reshape_method(x: Tensor, *shape: Any) -> Tensor:
    """Return the elements in another shape: x.reshape(2, 3) or x.reshape((2, 3))."""
    return reshape.function(x, sizes_from(shape))


@reshape.samples
def _(s):
    pairs = [((), (1, 1)), ((1,), ()), ((6,), (2, 3)), ((2, 3), (3, 2)), ((2, 3), 6)]
    pairs += [((2, 3), (-1,)), ((2, 3), (3, -1, 1)), ((0,), (2, 0)), ((0, 3), (3, 0)), ((), -1)]
    for old, new in pairs:
        yield Sample(s.real(*old), new)
    yield Sample(s.strided(2, 3), (3, 2), label="non-contiguous")
    yield Sample(s.integers(4), [2, 2], label="integers")


@reshape.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), (4,), error=ValueError, match=r"\(2, 3\) .*6 .*\(4,\) .*4")
    yield ErrorSample(s.real(2, 3), (4, -1), error=ValueError, match=r"6 elements.*\(4, -1\)")
    yield ErrorSample(s.real(6), (-1, -1), error=ValueError, match=r"one size.*\(-1, -1\)")
    yield ErrorSample(s.real(6), (-2, 3), error=ValueError, match=r"\(-2, 3\)")
    yield ErrorSample(s.real(6), (2.0, 3), error=TypeError, match="Received: 2.0")
    yield ErrorSample(s.real(0), (0, -1), error=ValueError, match="ambiguous")


def is_plain(shape: Any) -> bool:
    """Tell, fast, whether a shape argument is in canonical form: a tuple of ints >= 0."""
    if shape.__class__ is not tuple:
        return False
    for dim in shape:  # noqa: SIM110  (all() takes thrice the time, and every reshape comes here)
        if dim.__class__ is not int or dim < 0:
            return False
    return True


def as_sizes(shape: Any) -> Shape:
    """Return a shape argument as a tuple of sizes, of which -1 may be one."""
    if isinstance(shape, (int, np.integer, Dim)):
        shape = (shape,)
    if not isinstance(shape, (tuple, list)):
        raise ArgumentTypeError(f"shape must be an int or a sequence of ints. Received: {shape!r}")
    sizes = tuple(as_int(dim, "each size in shape") for dim in shape)
    if any(surely_less(size, -1) for size in sizes):
        raise ShapeError(f"sizes must be 0 or more, or -1 to be inferred. Received: {sizes}")
    return sizes


def sizes_from(args: tuple[Any, ...]) -> Any:
    """Return the shape given as separate sizes or as one sequence."""
    return args[0] if len(args) == 1 else args


def _fill_unknown(sizes: Shape, x: Any) -> Shape:
    if sizes.count(-1) > 1:
        raise ShapeError(f"only one size can be -1. Received: {sizes}")
    known = -size_of(sizes)
    total = size_of(x.shape)
    if known == 0:
        raise ShapeError(f"the size for -1 is ambiguous beside a size of 0. Received: {sizes}")
    if total % known != 0:
        raise ShapeError(
            f"{total} elements of shape {tuple(x.shape)} do not divide into shape {sizes}"
        )
    return tuple(total // known if d == -1 else d for d in sizes)


@composite(method=True, public=False)
def view(x: Any, *shape: Any) -> Any:
    """Return the elements in another shape, as `reshape`: x.view(2, 3) or x.view((2, 3))."""
    return F.reshape(x, sizes_from(shape))


@composite(method=True, aliases=("view_as",), public=False)
def reshape_as(x: Any, other: Any) -> Any:
    """Return the elements in the shape of another tensor."""
    return F.reshape(x, tuple(other.shape))


@composite(method=True)
def ravel(x: Any) -> Any:
    """Return the elements in one dimension."""
    return F.reshape(x, (x.size,))


@composite(method=True)
def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Return x with the dimensions from `start_dim` to `end_dim` (included) made into one."""
    if x.ndim == 0:
        return F.reshape(x, (1,))
    start = normalize_axis(start_dim, x.ndim, "flatten: start_dim")
    end = normalize_axis(end_dim, x.ndim, "flatten: end_dim")
    if start > end:
        raise ShapeError(
            f"flatten: start_dim must not lie behind end_dim. Received: {start_dim}, {end_dim}"
        )
    merged = size_of(x.shape[start : end + 1])
    return F.reshape(x, (*x.shape[:start], merged, *x.shape[end + 1 :]))


@composite(method=True)
def unflatten(x: Any, dim: int, sizes: Any) -> Any:
    """Return x with one dimension split into several; one of the sizes may be -1.

    >>> import weft as wf
    >>> wf.unflatten(wf.zeros(2, 6), 1, (3, -1)).shape
    (2, 3, 2)
    """
    dim = normalize_axis(dim, x.ndim, "unflatten: dim")
    sizes = as_sizes(sizes)
    if -1 not in sizes and size_of(sizes) != x.shape[dim]:
        raise ShapeError(
            f"unflatten: sizes {sizes} do not multiply to {x.shape[dim]}, the size of "
            f"dimension {dim} of shape {tuple(x.shape)}"
        )
    if -1 in sizes:
        sizes = _fill_unknown(sizes, TensorType((x.shape[dim],), x.dtype))
    return F.reshape(x, (*x.shape[:dim], *sizes, *x.shape[dim + 1 :]))


@op(movement, linear=("x",), reshapes=True)
def squeeze(x: Tensor, axis: Axes = None) -> Tensor:
    """Return x without the given axes of size 1 (without all of these by default).

    An axis of another size is an error, as in NumPy and the array API.
    """


@squeeze.canon
def _(x, axis):
    if axis is None:
        return (tuple(i for i, dim in enumerate(x.shape) if _is_one(dim)),)
    axes = normalize_axes(axis, x.ndim)
    for i in axes:
        if x.shape[i] != 1:
            raise ShapeError(
                f"only axes of size 1 can be removed; axis {i} of shape {tuple(x.shape)} has "
                f"size {x.shape[i]}"
            )
    return (axes,)


def _is_one(size: Any) -> bool:
    if isinstance(size, Dim) and may_equal(size, 1):
        raise UnknownSizeError(f"the size {size} may be 1 or not; name the axes to remove")
    return bool(size == 1)


@squeeze.spelling
def _(types, axis):
    return f"np.squeeze({{x}}, {axis[0] if len(axis) == 1 else axis})"


@squeeze.infer
def _(x, axis):
    return TensorType(_without(x.shape, axis), x.dtype)


@squeeze.eval
def _(x, axis):
    return x.reshape(_without(x.shape, axis))


@squeeze.vjp("x")
def _(g, axis):
    return F.unsqueeze(g, axis)


@squeeze.samples
def _(s):
    yield Sample(s.real())
    yield Sample(s.real(1, 3, 1))
    yield Sample(s.real(2, 3))
    yield Sample(s.real(1, 3, 1), axis=0)
    yield Sample(s.real(1, 3, 1), axis=(0, -1))
    yield Sample(s.real(1, 3, 1), axis=())
    yield Sample(s.real(0, 1), axis=1)
    yield Sample(s.strided(3, 1, 2), axis=1, label="non-contiguous")


@squeeze.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), axis=0, error=ValueError, match=r"axis 0 of .*\(2, 3\).*size 2")
    yield ErrorSample(s.real(1, 3), axis=2, error=IndexError, match="axis 2 is out of range")
    yield ErrorSample(s.real(1), axis=1.5, error=TypeError, match="Received: 1.5")


def _without(shape: Shape, axis: tuple[int, ...]) -> Shape:
    return tuple(dim for i, dim in enumerate(shape) if i not in axis)


@op(movement, linear=("x",), aliases=("expand_dims",), reshapes=True)
def unsqueeze(x: Tensor, axis: Axes) -> Tensor:
    """Return x with new axes of size 1 that stand at the given places of the result.

    >>> import weft as wf
    >>> wf.unsqueeze(wf.zeros(2, 3), -1).shape
    (2, 3, 1)
    """


@unsqueeze.canon
def _(x, axis):
    if axis is None:
        raise ArgumentTypeError("axis must be an int or a tuple of ints. Received: None")
    added = len(axis) if isinstance(axis, (tuple, list)) else 1
    return (normalize_axes(axis, x.ndim + added),)


@unsqueeze.spelling
def _(types, axis):
    return f"np.expand_dims({{x}}, {axis[0] if len(axis) == 1 else axis})"


@unsqueeze.infer
def _(x, axis):
    return TensorType(_with_ones(x.shape, axis), x.dtype)


@unsqueeze.eval
def _(x, axis):
    return x.reshape(_with_ones(x.shape, axis))


@unsqueeze.vjp("x")
def _(g, axis):
    return F.squeeze(g, axis)


@unsqueeze.samples
def _(s):
    for shape, axis in (((), 0), ((3,), 0), ((3,), -1), ((2, 3), 1), ((2, 3), (0, -1)), ((0,), 1)):
        yield Sample(s.real(*shape), axis)
    yield Sample(s.real(2, 3), (), label="no axes")
    yield Sample(s.strided(2, 3), axis=1, label="non-contiguous")


@unsqueeze.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), 3, error=IndexError, match="axis 3 is out of range")
    yield ErrorSample(s.real(2), (0, 0), error=ValueError, match="more than once")
    yield ErrorSample(s.real(2), None, error=TypeError, match="Received: None")


def _with_ones(shape: Shape, axis: tuple[int, ...]) -> Shape:
    sizes = list(shape)
    for i in axis:  # sorted, so each lands at its place in the result
        sizes.insert(i, 1)
    return tuple(sizes)


@composite()
def atleast_1d(*tensors: Any) -> Any:
    """Return each tensor with at least one dimension (a tuple if several are given)."""
    return _each(tensors, lambda x: F.reshape(x, (1,)) if x.ndim == 0 else x)


@composite()
def atleast_2d(*tensors: Any) -> Any:
    """Return each tensor with at least two dimensions; vectors become rows."""
    return _each(tensors, _as_matrix)


@composite()
def atleast_3d(*tensors: Any) -> Any:
    """Return each tensor with at least three dimensions, as NumPy: (n,) becomes (1, n, 1)."""

    def as_3d(x: Any) -> Any:
        return F.unsqueeze(_as_matrix(x), -1) if x.ndim < 3 else x

    return _each(tensors, as_3d)


def _as_matrix(x: Any) -> Any:
    return F.unsqueeze(x, tuple(range(2 - x.ndim))) if x.ndim < 2 else x


def _each(tensors: tuple[Any, ...], fn: Any) -> Any:
    results = tuple(fn(x) for x in tensors)
    return results[0] if len(results) == 1 else results
