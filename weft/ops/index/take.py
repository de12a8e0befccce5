"""Taking whole slices along one axis: take, index_select, narrow, and their transposes."""

from __future__ import annotations

import numpy as np

from ...core.batching import repeat
from ...core.dim import may_equal, surely_less
from ...core.division import Division
from ...core.errors import ArgumentError, IndexOutOfRange, ShapeError
from ...core.op import F, composite, general, op
from ...core.operands import is_number
from ...core.samples import ErrorSample, Sample
from ...core.shape import Shape, TensorType, as_int, normalize_axis, size_of
from ...core.tensor import Tensor
from .._halves import rounded_once
from .._operands import names_errors
from ._batching import ALL, BatchIndex, batch_taken, put_back
from ._checks import check_gradient, check_integer, check_range, flat_axis, operands
from ._spec import ARRAY, check_integer_index
from .rows import row_gradient
from .scatter_add import count_from_front, scatter_add_flat, scatter_add_rows
from .setitem import as_value


@op(general, linear=("x",))
def take(x: Tensor, indices: Tensor, axis: int | None = None, sparse: bool = False) -> Tensor:
    """Return the slices of x that `indices` names along an axis (None: elements of flattened x).

    The shape of `indices` takes the place of that axis. Negative indices count from the end.
    With `sparse`, which needs axis 0, a leaf x gets a row-sparse gradient.

    >>> import weft as wf
    >>> wf.take(wf.tensor([[1.0, 2.0], [3.0, 4.0]]), wf.tensor([1, 0, 1]), axis=0)
    tensor([[3., 4.],
            [1., 2.],
            [3., 4.]])
    """


@take.canon
def _(x, indices, axis, sparse):
    check_integer(indices, "indices")
    axis = flat_axis(x, axis)
    if sparse and axis != 0:
        raise ArgumentError(f"a row-sparse gradient is one along axis 0. Received: axis {axis}")
    return axis, bool(sparse)


@take.eval
def _(x, indices, axis, sparse):
    try:
        return x.take(indices.astype(np.intp, copy=False), axis)
    except IndexError:
        check_range(indices, x.size if axis is None else x.shape[axis], axis, "indices")
        raise


@take.infer
def _(x, indices, axis, sparse):
    return TensorType(_taken_shape(x.shape, indices.shape, axis), x.dtype)


def _taken_shape(shape: Shape, index_shape: Shape, axis: int | None) -> Shape:
    if axis is None:
        return tuple(index_shape)
    return (*shape[:axis], *index_shape, *shape[axis + 1 :])


@take.vjp("x")
def _(g, indices, x_shape, axis, sparse):
    if sparse:
        return row_gradient(g, indices, x_shape, wraps=indices.dtype.kind == "i")
    return F.take_adjoint(g, indices, x_shape, axis)


@take.place
def _(b, x, indices, axis, sparse):
    return taken(b, x, indices, axis)


def taken(b, x, indices, axis, wraps=True):
    """Return the element of a slice that an index names, for the compiler."""
    flat = axis is None
    size = size_of(x.shape) if flat else x.shape[axis]
    if not size:
        return None
    lead = 0 if flat else axis
    last = lead + indices.ndim
    index = b.index(indices.at(*b.coordinates[lead:last]), size, wraps=wraps)
    if flat:
        return x.at(*b.unravelled(index, x.shape))
    return x.at(*b.coordinates[:lead], index, *b.coordinates[last:])


@take.batch
def _(x, indices, axis, sparse, batched, examples):
    if not batched[0] and sparse:
        return F.take(x, indices, axis, sparse)
    if axis is None:
        x, axis = _flat(x, batched[0]), 0
    if not batched[1]:
        return F.take(x, indices, axis + 1)
    shape = x.shape[1:] if batched[0] else x.shape
    index = BatchIndex(shape, [indices], (True,), (*[ALL] * axis, ARRAY), examples)
    return batch_taken(x, batched[0], index)


def _flat(x, batched):
    lead = x.shape[:1] if batched else ()
    return F.reshape(x, (*lead, size_of(x.shape[len(lead) :])))


@take.samples
def _(s):
    yield Sample(s.real(2, 3), np.array([5, 0, -1]))
    yield Sample(s.real(2, 3), np.array([[1, 0, 1]]), axis=0)
    yield Sample(s.real(2, 3), np.array([2, 2]), axis=-1)
    yield Sample(s.real(2, 3, 2), np.array(1), dim=1, label="0-d index")
    yield Sample(s.real(4, 2), np.array([3, 0, -1]), axis=0, sparse=True, label="sparse")
    yield Sample(s.strided(3, 2), np.array([0, 2]), axis=0, label="non-contiguous")
    yield Sample(s.real(), np.array([0, 0]), label="0-d")
    yield Sample(s.real(2, 3), np.zeros((0, 2), int), axis=1, label="empty index")
    yield Sample(s.real(0, 3), np.array([1]), axis=1, label="empty")
    yield Sample(s.integers(4), np.array([1, 3], np.uint8), label="integers")


@take.error_samples
def _(s):
    x = s.real(2, 3)
    yield ErrorSample(
        x, np.array([0, 3]), axis=1, error=IndexError, match=r"indices\[1\] = 3 .* axis 1 of size 3"
    )
    yield ErrorSample(x, np.array([0]), axis=2, error=IndexError, match="axis 2 is out of range")
    yield ErrorSample(x, s.real(2), error=TypeError, match="indices must hold integers.*float64")
    yield ErrorSample(s.real(0), np.array(0), error=IndexError, match="indices 0 .* size 0")
    yield ErrorSample(x, np.array(0), 1, True, error=ValueError, match="along axis 0.*axis 1")


@op(general, linear=("g",), method=False)
def take_adjoint(g: Tensor, indices: Tensor, shape: Shape, axis: int | None) -> Tensor:
    """Return zeros of `shape` with the slices of g added where `indices` points along the axis."""


@take_adjoint.eval
def _(g, indices, shape, axis):
    if axis is None:
        return scatter_add_flat(shape, count_from_front(indices, size_of(shape)), g, g.dtype)
    if axis == 0:
        return scatter_add_rows(shape, indices, g, g.dtype)
    in_front = np.moveaxis(g, range(axis, axis + indices.ndim), range(indices.ndim))
    first = (shape[axis], *shape[:axis], *shape[axis + 1 :])
    return np.moveaxis(scatter_add_rows(first, indices, in_front, g.dtype), 0, axis)


@take_adjoint.scatter
def _(b, g, indices, shape, axis):
    places = b.over(g.shape)
    size = size_of(shape) if axis is None else shape[axis]
    if not size:
        return None
    lead = axis or 0
    last = lead + indices.ndim
    index = b.index(indices.at(*places[lead:last]), size)
    if axis is None:
        return b.put([index], g.at(*places), "sum", shape=(size,))
    return b.put([*places[:lead], index, *places[last:]], g.at(*places), "sum")


@take_adjoint.division
def _(g, indices, shape, axis):
    if axis is None:
        return None
    places = tuple(("index", i) for i in range(indices.ndim))
    labels = (*range(axis), *places, *range(axis + 1, len(shape)))
    result = (*range(axis), "row", *range(axis + 1, len(shape)))

    def part(at, g, indices):
        if at.label == "row":
            from_front = F.where(indices < 0, indices + shape[axis], indices)
            here, indices = at.places(from_front, shape[axis])
            here = F.reshape(here, (*here.shape, *[1] * (len(shape) - axis - 1)))
            g = F.where(here, g, F.zeros_like(g))
        return F.take_adjoint(g, indices, at.shape, axis)

    return Division([labels, places], result, dict.fromkeys(places, "sum"), part)


@take_adjoint.infer
def _(g, indices, shape, axis):
    check_gradient(g, _taken_shape(shape, indices.shape, axis))
    return TensorType(shape, g.dtype)


@take_adjoint.vjp("g")
def _(g, indices, axis):
    return F.take(g, indices, axis)


@take_adjoint.batch
def _(g, indices, shape, axis, batched, examples):
    g = g if batched[0] else repeat(g, examples)
    lines, place = ((size_of(shape),), 0) if axis is None else (shape, axis)
    if batched[1]:
        spec = (*[ALL] * place, ARRAY)
        put = put_back(g, BatchIndex(lines, [indices], (True,), spec, examples))
    else:
        put = F.take_adjoint(g, indices, (examples, *lines), place + 1)
    return put if axis is not None else F.reshape(put, (examples, *shape))


@take_adjoint.samples
def _(s):
    yield Sample(s.real(3), np.array([5, 0, -1]), (2, 3), None)
    yield Sample(s.real(3, 3), np.array([1, 0, 1]), (2, 3), 0)
    yield Sample(s.real(2, 2, 2), np.array([[2, -1], [0, 0]]), (2, 3), 1)
    yield Sample(s.real(2, 0), np.array([], int), (2, 3), 1, label="empty")


@composite(method=True)
@names_errors
def index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the slices of x that a 1-D (or 0-d) index names along `dim`.

    >>> import weft as wf
    >>> wf.index_select(wf.tensor([[1.0, 2.0, 3.0]]), 1, wf.tensor([2, 0]))
    tensor([[3., 1.]])
    """
    x, index = operands(x, index)
    if index.ndim > 1:
        raise ShapeError(
            f"index must be 1-D. Received: shape {tuple(index.shape)}; "
            "use take for an index of any shape"
        )
    return F.take(x, F.reshape(index, (-1,)), dim)


@composite(method=True)
@names_errors
@rounded_once
def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """Return x with `alpha` times each slice of source added at its index along `dim`.

    >>> import weft as wf
    >>> wf.index_add(wf.zeros(3), 0, wf.tensor([0, 2, 0]), wf.tensor([1.0, 2.0, 3.0]))
    tensor([4., 0., 2.])
    """
    x, index = operands(x, index)
    dim = normalize_axis(dim, x.ndim, "dim")
    check_integer(index, "index")
    source = as_value(source, x.dtype)
    expected = (*x.shape[:dim], *index.shape, *x.shape[dim + 1 :])
    if index.ndim != 1 or not may_equal(tuple(source.shape), expected):
        raise ShapeError(
            f"source must have shape {expected} for a 1-D index into dim {dim} of "
            f"{tuple(x.shape)}. Received: source {tuple(source.shape)}, index {tuple(index.shape)}"
        )
    source = source if source.dtype == x.dtype else F.cast(source, x.dtype)
    added = F.take_adjoint(source, index, tuple(x.shape), dim)
    return x + (added if is_number(alpha, 1) else alpha * added)


# -- one slice, one range -----------------------------------------------------------------------


@composite(method=True)
@names_errors
def narrow(x: Tensor, axis: int, start: int, length: int) -> Tensor:
    """Return `length` slices of x along an axis, beginning at `start`.

    >>> import weft as wf
    >>> wf.narrow(wf.tensor([1.0, 2.0, 3.0, 4.0]), 0, 1, 2)
    tensor([2., 3.])
    """
    (x,) = operands(x)
    axis = normalize_axis(axis, x.ndim)
    size = x.shape[axis]
    start, length = as_int(start, "start"), as_int(length, "length")
    begin = start + size if start < 0 else start
    if surely_less(length, 0):
        raise ArgumentError(f"length must not be negative. Received: {length}")
    if surely_less(begin, 0) or surely_less(size, begin + length):
        raise IndexOutOfRange(
            f"start {start} with length {length} leaves axis {axis} of size {size}"
        )
    return F.getitem(x, (*[ALL] * axis, (begin, begin + length, None)))


@composite(method=True)
@names_errors
def select(x: Tensor, axis: int, index: int) -> Tensor:
    """Return the slice of x at one position of an axis, without that axis.

    >>> import weft as wf
    >>> wf.select(wf.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, 0)
    tensor([1., 3.])
    """
    (x,) = operands(x)
    axis, index = normalize_axis(axis, x.ndim), as_int(index, "index")
    check_integer_index(index, x.shape[axis], axis)
    return F.getitem(x, (*[ALL] * axis, index))
