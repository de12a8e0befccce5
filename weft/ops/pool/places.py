"""Values taken from and put to flat places of each channel: what max-pooling indices mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batching import folded
from ...core.dim import may_equal
from ...core.dtype import Array
from ...core.errors import DTypeError, IndexOutOfRange, ShapeError
from ...core.op import F, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import Shape, TensorType, as_shape, size_of
from ...core.tensor import Tensor
from ..index.rows import with_rows_at
from ..index.scatter_add import scatter_add_flat


@op(general, linear=("x",), method=False, batch=folded)
def pool_gather(x: Tensor, index: Tensor) -> Tensor:
    """Return x (N, C, *spatial) at flat spatial places: index (N, C, *windows) gives its shape."""


@pool_gather.canon
def _(x, index):
    _check_index(index)
    if not may_equal(tuple(x.shape[:2]), tuple(index.shape[:2])):
        raise ShapeError(
            "index must have the batch and channels of x. "
            f"Received: x {tuple(x.shape)}, index {tuple(index.shape)}"
        )
    return ()


@pool_gather.infer
def _(x, index):
    return TensorType(index.shape, x.dtype)


@pool_gather.eval
def _(x, index):
    places = _flat_places(index, size_of(x.shape[2:]))
    return x.reshape(-1)[places].reshape(index.shape)


@pool_gather.place
def _(b, x, index):
    size = size_of(x.shape[2:])
    if not size:
        return None
    flat = b.index(index.here(), size, wraps=False)
    return x.at(*b.coordinates[:2], *b.unravelled(flat, x.shape[2:]))


@pool_gather.vjp("x")
def _(g, index, x_shape):
    return F.pool_scatter(g, index, x_shape[2:])


@op(general, linear=("y",), method=False, batch=folded)
def pool_scatter(y: Tensor, index: Tensor, size: tuple[int, ...]) -> Tensor:
    """Return zeros (N, C, *size) with y (N, C, *windows) added at flat spatial places.

    The adjoint of `pool_gather`: values that meet in one place add up.
    """


@pool_scatter.canon
def _(y, index, size):
    _check_index(index)
    if not may_equal(tuple(y.shape), tuple(index.shape)):
        raise ShapeError(
            "values and index must have the same shape. "
            f"Received: {tuple(y.shape)} and {tuple(index.shape)}"
        )
    return (as_shape(size, "size"),)


@pool_scatter.infer
def _(y, index, size):
    return TensorType((*y.shape[:2], *size), y.dtype)


@pool_scatter.eval
def _(y, index, size):
    places = _flat_places(index, size_of(size))
    return scatter_add_flat((*y.shape[:2], *size), places, y, y.dtype)


@pool_scatter.scatter
def _(b, y, index, size):
    places = b.over(y.shape)
    if not size_of(size):
        return None
    flat = b.index(index.at(*places), size_of(size), wraps=False)
    whole = (*y.shape[:2], size_of(size))
    return b.put([*places[:2], flat], y.at(*places), "sum", shape=whole)


@pool_scatter.vjp("y")
def _(g, index):
    return F.pool_gather(g, index)


@op(general, method=False, batch=folded)
def pool_last_write(index: Tensor, size: tuple[int, ...]) -> Tensor:
    """Return True where an element of index (N, C, *windows) is the last to name its place.

    With values masked by it, adding up becomes overwriting, which is what unpooling does.
    """


@pool_last_write.canon
def _(index, size):
    _check_index(index)
    return (as_shape(size, "size"),)


@pool_last_write.infer
def _(index, size):
    return TensorType(index.shape, np.dtype(np.bool_))


@pool_last_write.eval
def _(index, size):
    places = _flat_places(index, size_of(size))
    order = np.arange(places.size)
    writer = np.zeros(size_of(index.shape[:2]) * size_of(size), np.intp)
    writer[places] = order  # NumPy keeps the last of repeated assignments
    return (writer[places] == order).reshape(index.shape)


@pool_last_write.expand
def _(index, size):
    channels, windows, places = (size_of(n) for n in (index.shape[:2], index.shape[2:], size))
    order = F.reshape(F.iota(channels * windows), index.shape)
    rows = F.reshape(F.cast(index, order.dtype), (channels, windows))
    flat = rows + F.reshape(F.iota(channels) * places, (channels, 1))
    nobody = F.broadcast_to(np.zeros((), order.dtype), (channels * places,))
    writer = with_rows_at(nobody, F.reshape(flat, (-1,)), F.reshape(order, (-1,)))
    return F.pool_gather(F.reshape(writer, (*index.shape[:2], *size)), index) == order


def _check_index(index: Any) -> None:
    if index.ndim < 3:
        raise ShapeError(
            f"index must have the shape (batch, channels, *windows). Received: {tuple(index.shape)}"
        )
    if index.dtype.kind not in "iu":
        raise DTypeError(f"index must hold integers. Received: {index.dtype}")


def _flat_places(index: Array, size: int) -> Array:
    """Return places within channels as places in the whole flattened array, checked."""
    rows = index.reshape(size_of(index.shape[:2]), size_of(index.shape[2:])).astype(np.intp)
    if rows.size and (rows.min() < 0 or rows.max() >= size):
        wrong = rows[(rows < 0) | (rows >= size)][0]
        raise IndexOutOfRange(
            f"index {wrong} is out of range for {size} spatial elements (0..{size - 1})"
        )
    rows += np.arange(len(rows))[:, None] * size
    return rows.reshape(-1)


# -- samples ----------------------------------------------------------------------------------

CASES: tuple[tuple[Shape, Shape], ...] = (
    ((2, 2, 4), (2, 2, 3)),
    ((1, 2, 3, 2), (1, 2, 2, 2)),
    ((1, 1, 2, 2, 2), (1, 1, 3, 1, 2)),
    ((0, 2, 3), (0, 2, 2)),
    ((1, 2, 3), (1, 2, 0)),
)


@pool_gather.samples
def _(s):
    for x, index in CASES:
        yield Sample(s.real(*x), s.integers(*index, high=size_of(x[2:])))
    yield Sample(s.strided(1, 2, 3, 2), s.integers(1, 2, 4, high=6), label="non-contiguous")


@pool_gather.error_samples
def _(s):
    x = s.real(1, 2, 3)
    yield ErrorSample(x, s.real(1, 2, 3), error=TypeError, match="integers.*float64")
    yield ErrorSample(x, s.integers(2, 2, 3), error=ValueError, match=r"index \(2, 2, 3\)")
    yield ErrorSample(x, np.full((1, 2, 1), 3), error=IndexError, match="index 3 .*3 spatial")


@pool_scatter.samples
def _(s):
    for x, index in CASES:
        yield Sample(s.real(*index), s.integers(*index, high=size_of(x[2:])), x[2:])


@pool_scatter.error_samples
def _(s):
    index = s.integers(1, 2, 3, high=4)
    yield ErrorSample(s.real(1, 2, 4), index, (4,), error=ValueError, match=r"\(1, 2, 4\) and")
    yield ErrorSample(
        s.real(1, 2, 3), index - 9, (4,), error=IndexError, match="out of range for 4"
    )


@pool_last_write.samples
def _(s):
    for x, index in CASES:
        yield Sample(s.integers(*index, high=size_of(x[2:])), x[2:], grad=0)


@pool_last_write.error_samples
def _(s):
    yield ErrorSample(s.real(1, 2, 3), (4,), error=TypeError, match="integers.*float64")
    yield ErrorSample(s.integers(3), (4,), error=ValueError, match=r"Received: \(3,\)")
