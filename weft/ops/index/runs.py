"""Runs of equal values, places that count through a whole tensor, and strided reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtype import int64
from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, as_int, as_shape, size_of
from ...core.tensor import Tensor
from .._operands import names_errors
from ._checks import check_integer, flat_axis, operands, uncountable
from ._spec import UNKNOWN


@op(general, outputs=3, method=False, batch=uncountable)
def runs(x: Tensor, axis: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Return one value (or slice) of each run of equals, the run of each element, and lengths."""


@runs.canon
def _(x, axis):
    return (flat_axis(x, axis),)


@runs.eval
def _(x, axis):
    rows = x.reshape(-1) if axis is None else np.moveaxis(x, axis, 0)
    count = len(rows)
    starts = np.ones(count, bool)
    different = rows[1:] != rows[:-1]
    starts[1:] = different.any(axis=tuple(range(1, different.ndim)))
    values = rows[starts]
    inverse = np.cumsum(starts) - 1
    lengths = np.diff(np.append(np.flatnonzero(starts), count))
    shape = x.shape if axis is None else (count,)
    if axis is not None:
        values = np.ascontiguousarray(np.moveaxis(values, 0, axis))
    return values, inverse.astype(np.int64).reshape(shape), lengths.astype(np.int64)


@runs.infer
def _(x, axis):
    found = (UNKNOWN,) if axis is None else (*x.shape[:axis], UNKNOWN, *x.shape[axis + 1 :])
    inverse = x.shape if axis is None else (x.shape[axis],)
    return (
        TensorType(found, x.dtype),
        TensorType(inverse, int64),
        TensorType((UNKNOWN,), int64),
    )


@runs.samples
def _(s):
    yield Sample(np.array([1, 1, 2, 2, 2, 1]))
    yield Sample(np.array([[1, 1], [1, 1], [0, 1]]), axis=0)
    yield Sample(np.array([[1, 1, 2], [3, 3, 3]]), axis=1)
    yield Sample(np.zeros(0), grad=0, label="empty")
    yield Sample(np.zeros((0, 2)), axis=0, grad=0, label="no slices")
    yield Sample(np.zeros((3, 0)), axis=0, grad=0, label="slices of nothing")


@runs.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), axis=2, error=IndexError, match="axis 2 is out of range")


@composite(method=True)
@names_errors
def unique_consecutive(
    x: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Any:
    """Return x without what equals its predecessor, or with an axis without such slices.

    return_inverse   also the index of the run that each element (slice) lies in
    return_counts    also how long each run is

    >>> import weft as wf
    >>> wf.unique_consecutive(wf.tensor([1, 1, 2, 1]), return_counts=True)
    (tensor([1, 2, 1]), tensor([2, 1, 1]))
    """
    (x,) = operands(x)
    values, inverse, counts = F.runs(x, axis)
    if not (return_inverse or return_counts):
        return values
    return (values, *[inverse] * bool(return_inverse), *[counts] * bool(return_counts))


@composite()
@names_errors
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Return places that count through a tensor of a shape as an index for each axis.

    >>> import weft as wf
    >>> wf.unravel_index(wf.tensor([0, 5]), (2, 3))
    (tensor([0, 1]), tensor([0, 2]))
    """
    (indices,) = operands(indices)
    check_integer(indices, "indices")
    found: list[Tensor] = []
    rest = indices
    for size in reversed(as_shape(shape)):
        found.insert(0, F.mod(rest, size))
        rest = F.floor_divide(rest, size)
    return tuple(found)


@composite(method=True)
@names_errors
def as_strided(x: Tensor, size: Any, stride: Any, storage_offset: int = 0) -> Tensor:
    """Return elements of x, read in row-major order, by strides in elements. It is a copy.

    Element (i, j, ...) is the one at storage_offset + i * stride[0] + j * stride[1] + ...

    >>> import weft as wf
    >>> wf.as_strided(wf.arange(6), (3, 2), (1, 2))
    tensor([[0, 2],
            [1, 3],
            [2, 4]])
    """
    (x,) = operands(x)
    shape, offset = as_shape(size, "size"), as_int(storage_offset, "storage_offset")
    steps = [as_int(step, "stride") for step in stride]
    if len(steps) != len(shape):
        raise ShapeError(
            f"size and stride must be equally long. Received: {shape} and {tuple(stride)}"
        )
    places = np.full(shape, offset, np.int64)
    for axis, (count, step) in enumerate(zip(shape, steps, strict=True)):
        along = np.arange(count) * step
        places += along.reshape(-1, *(1,) * (len(shape) - axis - 1))
    total = size_of(x.shape)
    if places.size and not 0 <= places.min() <= places.max() < total:
        raise ArgumentError(
            f"size {shape}, stride {tuple(steps)} and storage_offset {offset} reach from element "
            f"{places.min()} to {places.max()} of {total}"
        )
    taken: Tensor = F.take(F.reshape(x, (-1,)), places, 0)
    return taken
