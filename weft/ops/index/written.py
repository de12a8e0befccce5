"""Copies with a part replaced: PyTorch's index_copy, masked_scatter, put and their like.

Each says where it writes and leaves the writing to `index_set`, so gradients, graphs and machine
code are those of indexing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.dim import may_equal
from ...core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ...core.op import F, composite
from ...core.shape import as_int, normalize_axis, size_of
from ...core.tensor import Tensor
from .._halves import rounded_once
from .._operands import names_errors
from ._checks import check_boolean, check_integer, operands
from ._spec import split_index
from .setitem import ALL, as_value


def _at(x: Any, dim: Any, index: Any) -> tuple[int, tuple[Any, ...]]:
    """Return an axis counted from the front, and the index that names places along it."""
    axis = normalize_axis(dim, x.ndim, "dim")
    return axis, (*[slice(*ALL)] * axis, index)


def _check_shape(name: str, value: Any, expected: Sequence[Any]) -> None:
    if not may_equal(tuple(value.shape), tuple(expected)):
        raise ShapeError(
            f"{name} must have shape {tuple(expected)}. Received: {tuple(value.shape)}"
        )


def _vector_index(index: Any) -> Any:
    (index,) = operands(index)
    check_integer(index)
    if index.ndim > 1:
        raise ShapeError(f"index must be a vector. Received: shape {tuple(index.shape)}")
    return index if index.ndim else F.reshape(index, (1,))


# -- along one axis ------------------------------------------------------------------------------


@composite(method=True)
@names_errors
def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return x with the slices of `source` at the places that `index` names along `dim`.

    >>> import weft as wf
    >>> wf.index_copy(wf.zeros(3), 0, wf.tensor([2, 0]), wf.tensor([5.0, 7.0]))
    tensor([7., 0., 5.])
    """
    (x,) = operands(x)
    index, source = _vector_index(index), as_value(source, x.dtype)
    axis, place = _at(x, dim, index)
    _check_shape("source", source, (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]))
    written: Tensor = F.index_set(x, place, source)
    return written


@composite(method=True)
@names_errors
def index_fill(x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Return x with one number in every slice that `index` names along `dim`.

    >>> import weft as wf
    >>> wf.index_fill(wf.zeros(3), 0, wf.tensor([2, 0]), 4.0)
    tensor([4., 0., 4.])
    """
    (x,) = operands(x)
    value = as_value(value, x.dtype)
    _check_shape("value", value, ())
    written: Tensor = F.index_set(x, _at(x, dim, _vector_index(index))[1], value)
    return written


@composite(method=True)
@names_errors
def select_scatter(x: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return x with `src` as the slice that `index` names along `dim`.

    >>> import weft as wf
    >>> wf.select_scatter(wf.zeros((2, 2)), wf.tensor([1.0, 2.0]), 0, 1)
    tensor([[0., 0.],
            [1., 2.]])
    """
    (x,) = operands(x)
    src = as_value(src, x.dtype)
    axis, place = _at(x, dim, as_int(index, "index"))
    _check_shape("src", src, (*x.shape[:axis], *x.shape[axis + 1 :]))
    written: Tensor = F.index_set(x, place, src)
    return written


@composite(method=True)
@names_errors
def slice_scatter(
    x: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Return x with `src` in the places start:end:step along `dim`.

    >>> import weft as wf
    >>> wf.slice_scatter(wf.zeros(5), wf.tensor([1.0, 2.0]), start=1, end=4, step=2)
    tensor([0., 1., 0., 2., 0.])
    """
    (x,) = operands(x)
    src = as_value(src, x.dtype)
    if as_int(step, "step") < 1:
        raise ArgumentError(f"step must be positive. Received: step={step}")
    _, place = _at(x, dim, slice(start, end, step))
    _check_shape("src", src, x[place].shape)
    written: Tensor = F.index_set(x, place, src)
    return written


@composite(method=True)
@names_errors
def diagonal_scatter(
    x: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """Return x with `src` on the diagonal of two axes; of `src` the last axis runs along it.

    >>> import weft as wf
    >>> wf.diagonal_scatter(wf.zeros((2, 3)), wf.tensor([1.0, 2.0]), 1)
    tensor([[0., 1., 0.],
            [0., 0., 2.]])
    """
    (x,) = operands(x)
    src = as_value(src, x.dtype)
    axes = [normalize_axis(axis, x.ndim, name) for axis, name in ((dim1, "dim1"), (dim2, "dim2"))]
    if axes[0] == axes[1]:
        raise ArgumentError(f"dim1 and dim2 must differ. Received: {dim1} and {dim2}")
    rest = [axis for axis in range(x.ndim) if axis not in axes]
    order = (*axes, *rest)
    offset = as_int(offset, "offset")
    replaced = F.diagonal(x, offset, *axes).shape
    _check_shape("src", src, replaced)
    along = F.iota(replaced[-1])
    places = (along - min(offset, 0), along + max(offset, 0))
    written = F.index_set(F.permute(x, order), places, F.moveaxis(src, -1, 0))
    back: Tensor = F.permute(written, tuple(order.index(axis) for axis in range(x.ndim)))
    return back


# -- anywhere ------------------------------------------------------------------------------------


@composite(method=True)
@names_errors
@rounded_once
def index_put(x: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Return x with `values` written at x[indices], or with them added there.

    indices      a tuple of integer or boolean tensors, as in x[i, j]
    accumulate   True: values that go to one place are all added to what is there

    >>> import weft as wf
    >>> i = wf.tensor([0, 0, 2])
    >>> wf.index_put(wf.zeros(3), (i,), wf.tensor([1.0, 2.0, 3.0]), accumulate=True)
    tensor([3., 0., 3.])
    """
    if not isinstance(indices, (tuple, list)):
        raise ArgumentTypeError(
            f"indices must be a tuple of tensors. Received: {type(indices).__name__}"
        )
    (x,) = operands(x)
    if not accumulate:
        return F.index_set(x, tuple(indices), values)
    spec, arrays = split_index(tuple(indices))
    values = as_value(values, x.dtype)
    values = values if values.dtype == x.dtype else F.cast(values, x.dtype)
    part = F.broadcast_to(values, x[tuple(indices)].shape)
    shape = tuple(x.shape)
    if arrays:
        return x + F.getitem_arrays_adjoint(part, arrays, shape, spec)
    return x + F.getitem_adjoint(part, shape, spec)


@composite(method=True)
@names_errors
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return x with the elements of `source` at places that count through flattened x.

    >>> import weft as wf
    >>> wf.put(wf.zeros((2, 2)), wf.tensor([3, 0]), wf.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 1.]])
    """
    x, index = operands(x, index)
    check_integer(index)
    source = as_value(source, x.dtype)
    if not may_equal((index.size,), (source.size,)):
        raise ShapeError(
            "source must have as many elements as index. "
            f"Received: shapes {tuple(source.shape)} and {tuple(index.shape)}"
        )
    flat = F.reshape(x, (size_of(x.shape),))
    places = (F.reshape(index, (-1,)),)
    written = F.index_put(flat, places, F.reshape(source, (-1,)), bool(accumulate))
    shaped: Tensor = F.reshape(written, tuple(x.shape))
    return shaped


@composite(method=True)
@names_errors
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return x with the elements of `source`, in order, where `mask` (broadcast to x) is True.

    >>> import weft as wf
    >>> x, mask = wf.zeros(4), wf.tensor([True, False, True, True])
    >>> wf.masked_scatter(x, mask, wf.tensor([5.0, 6.0, 7.0, 8.0]))
    tensor([5., 0., 6., 7.])
    """
    x, mask = operands(x, mask)
    check_boolean(mask)
    source = F.reshape(as_value(source, x.dtype), (-1,))
    source = source if source.dtype == x.dtype else F.cast(source, x.dtype)
    mask = F.broadcast_to(mask, tuple(x.shape))
    if 0 in x.shape:
        return x
    # Where the mask is False any place will do; where it is True one beyond the end is refused.
    order = F.cumsum(F.cast(F.reshape(mask, (-1,)), "int64"), 0) - 1
    places = F.where(F.reshape(mask, (-1,)), order, 0)
    if 0 in source.shape:
        raise ShapeError("source must hold an element for each True of mask. Received: none")
    chosen = F.reshape(F.take(source, places, 0), tuple(x.shape))
    result: Tensor = F.where(mask, chosen, x)
    return result
