"""Gathering and scattering along one axis, one index for each element.

`gather`, `scatter`, `scatter_add` and `scatter_reduce` are PyTorch's; `take_along_axis` and
`put_along_axis` are NumPy's, the latter returning the new tensor because tensors are values.
Negative indices count from the end. Where several values go to one element, `scatter` keeps the
last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batching import shifted, with_rank
from ...core.dim import Dim, may_equal, surely_less
from ...core.division import Division
from ...core.errors import ShapeError
from ...core.op import F, composite, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import Shape, TensorType, broadcast, normalize_axis
from ...core.tensor import Tensor
from .._operands import names_errors
from ._checks import check_gradient, check_integer, check_range, operands
from ._spec import ARRAY
from .scatter_add import scatter_add_at
from .setitem import as_value


def along(index: Any, dim: int) -> tuple[Any, ...]:
    """Return the full index whose entry at `dim` is `index` and which elsewhere keeps its place."""
    return tuple(
        index if axis == dim else _places(size, axis, index.ndim)
        for axis, size in enumerate(index.shape)
    )


def _places(size: Any, axis: int, ndim: int) -> Any:
    shape = [1] * ndim
    shape[axis] = size
    places = F.iota(size) if isinstance(size, Dim) else np.arange(size)
    return places.reshape(shape)


# -- gather -------------------------------------------------------------------------------------


@op(general, linear=("x",), batch=shifted)
def gather(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return, for each place of `index`, the element of x that it names along `dim`.

    `index` has as many dimensions as x, and outside `dim` at most its sizes; the result has the
    shape of `index`.

    >>> import weft as wf
    >>> x = wf.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> wf.gather(x, 1, wf.tensor([[0, 0], [1, 0]]))
    tensor([[1., 1.],
            [4., 3.]])
    """


@gather.by_keywords()
def _(x, dim, index, sparse_grad=False):
    """Return the same with a row-sparse gradient: of a vector, whose rows are its elements."""
    if not sparse_grad:
        return F.gather(x, dim, index)
    x, index = operands(x, index)
    if x.ndim != 1:
        raise ShapeError(
            "gather: sparse_grad is for a vector, whose rows are its elements; take whole rows by "
            f"wf.take(x, index, axis=0, sparse=True). Received: x of shape {tuple(x.shape)}"
        )
    return F.take(x, index, normalize_axis(dim, 1, "gather: dim"), sparse=True)


@gather.canon
def _(x, index, dim):
    return (_check_along(x, index, dim),)


@gather.picks
def _(x, index, dim):
    return _one_of_each_row(x, index, dim)


@gather.division
def _(x, index, dim):
    labels = _beside(x.shape, index.shape, dim)
    return Division([labels, labels], labels)


def _beside(shape: Shape, index: Shape, dim: int) -> tuple[int | None, ...]:
    """Return labels of the axes along which each row is by itself."""
    return tuple(i if i != dim and shape[i] == index[i] else None for i in range(len(shape)))


@gather.eval
def _(x, index, dim):
    try:
        return x[along(index, dim)]
    except IndexError:
        check_range(index, x.shape[dim], dim)
        raise


@gather.infer
def _(x, index, dim):
    _check_along(x, index, dim)
    return TensorType(index.shape, x.dtype)


@gather.vjp("x")
def _(g, index, x_shape, dim):
    return F.gather_adjoint(g, index, x_shape, dim)


@gather.lower
def _(b, x, index, dim):
    return b.reduce("sum", b.picked(index, x))


@gather.place
def _(b, x, index, dim):
    if not x.shape[dim]:
        return None
    places = list(b.coordinates)
    places[dim] = b.index(index.here(), x.shape[dim])
    return x.at(*places)


@gather.samples
def _(s):
    yield Sample(s.real(3), 0, s.integers(4, high=3))
    yield Sample(s.real(2, 3), 1, s.integers(2, 4, high=3))
    yield Sample(s.real(2, 3), -2, s.integers(3, 3, low=-2, high=2), label="negative")
    yield Sample(s.real(2, 3), 1, s.integers(1, 2, high=3), label="smaller index")
    yield Sample(s.strided(3, 2), 0, s.integers(2, 2, high=3), label="non-contiguous")
    yield Sample(s.real(2, 3, 2), 1, s.integers(2, 1, 2, high=3, dtype=np.int32))
    yield Sample(s.real(2, 3), 1, s.integers(2, 0), label="empty")
    yield Sample(s.integers(2, 3), 1, s.integers(2, 2, high=3), label="integers")


@gather.error_samples
def _(s):
    x, i = s.real(2, 3), s.integers(2, 2, high=2)
    yield ErrorSample(
        x, 1, np.array([[0, 1], [3, 0]]), error=IndexError, match=r"index\[1, 0\] = 3 .* size 3"
    )
    yield ErrorSample(x, 2, i, error=IndexError, match="dim 2 is out of range")
    yield ErrorSample(x, 1, s.real(2, 2), error=TypeError, match="integers.*float64")
    yield ErrorSample(x, 1, i[0], error=ValueError, match=r"\(2, 3\).*Received: .*\(2,\)")
    yield ErrorSample(x, 0, s.integers(2, 4), error=ValueError, match=r"\(2, 4\)")


@op(general, linear=("g",), method=False, batch=shifted)
def gather_adjoint(g: Tensor, index: Tensor, shape: Shape, dim: int) -> Tensor:
    """Return zeros of `shape` with each element of g added where `index` points along `dim`."""


@gather_adjoint.division
def _(g, index, shape, dim):
    labels = _beside(shape, index.shape, dim)

    def part(at, g, index):
        return F.gather_adjoint(g, index, at.shape, dim)

    return Division([labels, labels], labels, part=part)


@gather_adjoint.puts
def _(g, index, shape, dim):
    return _one_of_each_row(shape, index, dim)


def _one_of_each_row(shape: Shape, index: Shape, dim: int) -> bool:
    return dim == len(shape) - 1 and index == (*shape[:-1], 1) and shape[-1] > 0


@gather_adjoint.eval
def _(g, index, shape, dim):
    return scatter_add_at(shape, along(index, dim), g, g.dtype)


@gather_adjoint.infer
def _(g, index, shape, dim):
    _check_along(TensorType(shape, g.dtype), index, dim)
    check_gradient(g, index.shape)
    return TensorType(shape, g.dtype)


@gather_adjoint.vjp("g")
def _(g, index, dim):
    return F.gather(g, dim, index)


@gather_adjoint.scatter
def _(b, g, index, shape, dim):
    return put_along(b, index, g, shape[dim], dim, "sum")


def put_along(b, index, src, size, dim, way, base=None):
    """Return that values go to the places of an index along one axis, for the compiler."""
    if not size:
        return None
    places = list(b.over(index.shape))
    value = src.at(*places) if src.ndim else src.at()
    places[dim] = b.index(index.at(*places), size)
    return b.put(places, value, way, base=base)


@gather_adjoint.lower
def _(b, g, index, shape, dim):
    return b.picked(index, g)


@gather_adjoint.samples
def _(s):
    yield Sample(s.real(4), s.integers(4, high=3), (3,), 0)
    yield Sample(s.real(2, 4), s.integers(2, 4, high=3), (2, 3), 1)
    yield Sample(s.real(1, 2), s.integers(1, 2, low=-3, high=3), (2, 3), 1)
    yield Sample(s.real(0, 2), s.integers(0, 2), (3, 2), 0)
    yield Sample(s.real(2, 1), s.integers(2, 1, high=1), (2, 1), 1)


# -- scatter ------------------------------------------------------------------------------------


@op(general, result="any", linear=("x", "src"), method=False)
def scatter_along(x: Tensor, index: Tensor, src: Tensor, dim: int) -> Tensor:
    """Return x with src, of the shape of `index` or 0-d, written where `index` points along dim."""


@scatter_along.canon
def _(x, index, src, dim):
    if src.ndim and not may_equal(tuple(src.shape), tuple(index.shape)):
        raise ShapeError(f"src must have the shape of index, {index.shape}. Received: {src.shape}")
    return (_check_along(x, index, dim),)


@scatter_along.eval
def _(x, index, src, dim):
    out = x.copy()
    try:
        out[along(index, dim)] = src
    except IndexError:
        check_range(index, x.shape[dim], dim)
        raise
    return out


@scatter_along.scatter
def _(b, x, index, src, dim):
    return put_along(b, index, src, x.shape[dim], dim, "set", x)


@scatter_along.infer
def _(x, index, src, dim):
    return TensorType(x.shape, x.dtype)


@scatter_along.vjp("x")
def _(g, index, dim):
    return F.scatter_along(g, index, np.zeros((), g.dtype), dim)


@scatter_along.vjp("src")
def _(g, index, src_shape, src_dtype, dim):
    written = F.gather(g, dim, index)
    stays = F.last_writes(along(index, dim), g.shape, (ARRAY,) * g.ndim)
    written = F.sum_to(F.where(stays, written, F.zeros_like(written)), src_shape)
    return written if written.dtype == src_dtype else F.cast(written, src_dtype)


@scatter_along.batch
def _(x, index, src, dim):
    one_value = src.ndim == 1 and index.ndim > 1
    if one_value:
        src = F.broadcast_to(with_rank(src, index.ndim - 1), index.shape)
    return F.scatter_along(x, index, src, dim + 1)


@scatter_along.samples
def _(s):
    yield Sample(s.real(3), s.integers(4, high=3), s.real(4), 0)
    yield Sample(s.real(2, 3), np.array([[0, 2], [1, 1]]), s.real(2, 2), 1)
    yield Sample(s.real(2, 3), np.array([[0, 2], [1, -1]]), s.real(), -1, label="one value")
    yield Sample(s.strided(2, 3), np.array([[1, 0]]), s.real(1, 2), 0, label="non-contiguous")
    yield Sample(s.real(2, 3), s.integers(2, 0), s.real(2, 0), 1, label="empty")


@scatter_along.error_samples
def _(s):
    x, i = s.real(2, 3), s.integers(2, 2, high=2)
    yield ErrorSample(x, i, s.real(3), 1, error=ValueError, match=r"\(2, 2\).*Received: \(3,\)")
    yield ErrorSample(
        x, np.array([[9]]), s.real(), 1, error=IndexError, match=r"index\[0, 0\] = 9 .* size 3"
    )


@composite(method=True, keywords={"value": "src"})
@names_errors
def scatter(x: Tensor, dim: int, index: Tensor, src: Any) -> Tensor:
    """Return x with the elements of src written where `index` points along `dim`.

    src is a number, or a tensor at least as large as `index` in every dimension. Where several go
    to one place the last one stays, and only that one receives a gradient.

    >>> import weft as wf
    >>> wf.scatter(wf.zeros(2, 3), 1, wf.tensor([[2], [0]]), 1.0)
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """
    x, index = operands(x, index)
    value = _cut_to_index(as_value(src, x.dtype), index)
    return F.scatter_along(x, index, value, dim)


@composite(method=True)
@names_errors
def scatter_add(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return x with the elements of src added where `index` points along `dim`.

    >>> import weft as wf
    >>> wf.scatter_add(wf.zeros(3), 0, wf.tensor([0, 2, 0]), wf.tensor([1.0, 2.0, 3.0]))
    tensor([4., 0., 2.])
    """
    x, index = operands(x, index)
    addend = _cut_to_index(as_value(src, x.dtype), index)
    dim = _check_along(x, index, dim)
    addend = addend if addend.dtype == x.dtype else F.cast(addend, x.dtype)
    addend = _broadcast(addend, tuple(index.shape))
    return x + F.gather_adjoint(addend, index, tuple(x.shape), dim)


def _cut_to_index(src: Tensor, index: Any) -> Tensor:
    """Return the part of src that has the shape of index."""
    shape = tuple(index.shape)
    if not src.ndim:
        return src
    if len(shape) != src.ndim or any(map(surely_less, src.shape, shape)):
        raise ShapeError(
            f"src must be at least as large as index, shape {shape}, in each dimension. "
            f"Received: src of shape {tuple(src.shape)}"
        )
    return src if shape == src.shape else src[tuple(slice(size) for size in shape)]


# -- NumPy's names ------------------------------------------------------------------------------


@composite(method=True, aliases=("take_along_dim",))
@names_errors
def take_along_axis(x: Tensor, indices: Tensor, axis: int | None = -1) -> Tensor:
    """Return the elements of x that `indices` names along an axis (None: of the flattened x).

    x and indices broadcast against each other in the other dimensions.

    >>> import weft as wf
    >>> x = wf.tensor([[3.0, 1.0, 2.0]])
    >>> wf.take_along_axis(x, wf.argsort(x))
    tensor([[1., 2., 3.]])
    """
    x, indices = operands(x, indices)
    if axis is None:
        x, axis = F.reshape(x, (-1,)), 0
    axis = _axis_of_both(x, indices, axis)
    x, indices = _match_outside(x, indices, axis)
    return F.gather(x, axis, indices)


@composite(method=True)
@names_errors
def put_along_axis(x: Tensor, indices: Tensor, values: Any, axis: int | None = -1) -> Tensor:
    """Return x with `values`, broadcast, written where `indices` points along an axis.

    NumPy's function of this name changes its argument; this one returns the new tensor.

    >>> import weft as wf
    >>> wf.put_along_axis(wf.zeros(1, 3), wf.tensor([[2]]), 7.0, 1)
    tensor([[0., 0., 7.]])
    """
    x, indices = operands(x, indices)
    if axis is None:
        return _put_flat(x, indices, values)
    axis = _axis_of_both(x, indices, axis)
    pairs = zip(indices.shape, x.shape, strict=True)
    shape = tuple(n if i == axis else d for i, (n, d) in enumerate(pairs))
    indices = _broadcast(indices, shape)
    return F.scatter_along(x, indices, _broadcast(as_value(values, x.dtype), shape), axis)


def _put_flat(x: Tensor, indices: Tensor, values: Any) -> Tensor:
    written = put_along_axis(F.reshape(x, (-1,)), indices, values, 0)
    return F.reshape(written, tuple(x.shape))


def _axis_of_both(x: Any, indices: Any, axis: Any) -> int:
    if x.ndim != indices.ndim:
        raise ShapeError(
            f"indices must have as many dimensions as x, shape {tuple(x.shape)}. "
            f"Received: {tuple(indices.shape)}"
        )
    return normalize_axis(axis, x.ndim)


def _match_outside(x: Any, indices: Any, axis: int) -> tuple[Any, Any]:
    """Return x and indices broadcast against each other in all dimensions but `axis`."""
    shared = broadcast(
        *(tuple(1 if i == axis else d for i, d in enumerate(t.shape)) for t in (x, indices))
    )
    targets = [(*shared[:axis], t.shape[axis], *shared[axis + 1 :]) for t in (x, indices)]
    return _broadcast(x, targets[0]), _broadcast(indices, targets[1])


def _broadcast(x: Any, shape: Shape) -> Any:
    return x if tuple(x.shape) == shape else F.broadcast_to(x, shape)


def _check_along(x: Any, index: Any, given: Any) -> int:
    """Return the axis; raise unless index has x's dimensions, none larger outside `dim`."""
    dim = normalize_axis(given, x.ndim, "dim")
    check_integer(index)
    fits = index.ndim == x.ndim and all(
        axis == dim or not surely_less(b, a)
        for axis, (a, b) in enumerate(zip(index.shape, x.shape, strict=True))
    )
    if not fits:
        raise ShapeError(
            f"index must have the dimensions of x, shape {tuple(x.shape)}, and outside dim "
            f"{dim} at most its sizes. Received: index of shape {tuple(index.shape)}"
        )
    return dim
