"""Triangles and diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dim import may_equal, size_max, size_min
from ...core.errors import AxisError, ShapeError
from ...core.op import F, composite, movement, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import Shape, TensorType, as_int, as_shape, normalize_axis
from ...core.tensor import Tensor


@op(movement, linear=("x",), numpy="np.tril({x}, {k})")
def tril(x: Tensor, k: int = 0, *, diagonal: int | None = None) -> Tensor:
    """Return the matrices in x with zeros above their k-th diagonal.

    `diagonal` is PyTorch's name for k.

    >>> import weft as wf
    >>> wf.tril(wf.tensor([[1, 2], [3, 4]]))
    tensor([[1, 0],
            [3, 4]])
    """


@op(movement, linear=("x",), numpy="np.triu({x}, {k})")
def triu(x: Tensor, k: int = 0, *, diagonal: int | None = None) -> Tensor:
    """Return the matrices in x with zeros below their k-th diagonal.

    `diagonal` is PyTorch's name for k.
    """


@tril.eval
def _(x, k, diagonal):
    return np.tril(x, k)


@triu.eval
def _(x, k, diagonal):
    return np.triu(x, k)


@tril.vjp("x")
def _(g, k):
    return F.tril(g, k)


@triu.vjp("x")
def _(g, k):
    return F.triu(g, k)


def _canon_triangle(x, k, diagonal):
    if x.ndim < 2:
        raise ShapeError(f"two dimensions or more are needed. Received: shape {tuple(x.shape)}")
    return as_int(k if diagonal is None else diagonal, "the diagonal k"), None


@tril.place
def _(b, x, k, diagonal):
    *_, i, j = b.coordinates
    return b.select(j - i <= k, x.here(), 0)


@triu.place
def _(b, x, k, diagonal):
    *_, i, j = b.coordinates
    return b.select(j - i >= k, x.here(), 0)


def _same_type(x, k, diagonal):
    return x


def _triangle_samples(s):
    for k in (0, 1, -1, 7, -7):
        yield Sample(s.real(3, 2), k)
    yield Sample(s.real(2, 2, 3), diagonal=1)
    yield Sample(s.real(2, 0, 3), label="empty")
    yield Sample(s.strided(3, 3), label="non-contiguous")
    yield Sample(s.booleans(3, 3), label="truth values")


def _triangle_errors(s):
    yield ErrorSample(s.real(3), error=ValueError, match=r"shape \(3,\)")
    yield ErrorSample(s.real(3, 3), 0.5, error=TypeError, match="Received: 0.5")


for _triangle in (tril, triu):
    _triangle.canon(_canon_triangle)
    _triangle.infer(_same_type)
    _triangle.samples(_triangle_samples)
    _triangle.error_samples(_triangle_errors)


@op(movement, linear=("x",), keywords={"dim1": "axis1", "dim2": "axis2"})
def diagonal(x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return a diagonal in the plane of two axes; it becomes the last axis of the result.

    >>> import weft as wf
    >>> wf.diagonal(wf.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """


@diagonal.canon
def _(x, offset, axis1, axis2):
    if x.ndim < 2:
        raise ShapeError(f"two dimensions or more are needed. Received: shape {tuple(x.shape)}")
    return _canon_plane(x.ndim, offset, axis1, axis2)


@diagonal.infer
def _(x, offset, axis1, axis2):
    rest = tuple(dim for i, dim in enumerate(x.shape) if i not in (axis1, axis2))
    return TensorType((*rest, _length(x.shape, offset, axis1, axis2)), x.dtype)


@diagonal.eval
def _(x, offset, axis1, axis2):
    return x.diagonal(offset, axis1, axis2)


@diagonal.view
def _(x, offset, axis1, axis2):
    length = _length(x.shape, offset, axis1, axis2)
    kept = [axis for axis in range(len(x.shape)) if axis not in (axis1, axis2)]
    first, second = x.strides[axis1], x.strides[axis2]
    start = max(0, -offset) * first + max(0, offset) * second
    shape = (*(x.shape[axis] for axis in kept), length)
    strides = (*(x.strides[axis] for axis in kept), first + second)
    return x.restrided(shape, strides, start if length else 0)


@diagonal.vjp("x")
def _(g, x_shape, offset, axis1, axis2):
    return F.embed_diagonal(g, x_shape, offset, axis1, axis2)


@diagonal.samples
def _(s):
    for offset in (0, 1, -2, 5):
        yield Sample(s.real(3, 2), offset)
    yield Sample(s.real(2, 3, 2), 0, 1, 2)
    yield Sample(s.real(2, 3, 2), 1, -1, 0)
    yield Sample(s.real(0, 3), label="empty")
    yield Sample(s.strided(3, 3), label="non-contiguous")
    yield Sample(s.integers(2, 2), label="integers")


@diagonal.error_samples
def _(s):
    yield ErrorSample(s.real(3), error=ValueError, match=r"shape \(3,\)")
    yield ErrorSample(s.real(2, 3), 0, 0, 2, error=IndexError, match="axis2 2 is out of range")
    yield ErrorSample(s.real(2, 3), 0, 1, -1, error=ValueError, match="must differ.*1 and -1")
    yield ErrorSample(s.real(2, 3), 1.0, error=TypeError, match="Received: 1.0")


@op(movement, linear=("x",), method=False)
def embed_diagonal(
    x: Tensor, shape: Shape, offset: int = 0, axis1: int = 0, axis2: int = 1
) -> Tensor:
    """Return zeros of the given shape with x on a diagonal: the adjoint of `diagonal`."""


@embed_diagonal.canon
def _(x, shape, offset, axis1, axis2):
    shape = as_shape(shape)
    offset, axis1, axis2 = _canon_plane(len(shape), offset, axis1, axis2)
    rest = tuple(dim for i, dim in enumerate(shape) if i not in (axis1, axis2))
    expected = (*rest, _length(shape, offset, axis1, axis2))
    if not may_equal(tuple(x.shape), expected):
        raise ShapeError(
            f"the diagonal of shape {shape} has shape {expected}. Received: {tuple(x.shape)}"
        )
    return shape, offset, axis1, axis2


@embed_diagonal.infer
def _(x, shape, offset, axis1, axis2):
    return TensorType(shape, x.dtype)


@embed_diagonal.eval
def _(x, shape, offset, axis1, axis2):
    result = np.zeros(shape, x.dtype)
    places = result.diagonal(offset, axis1, axis2)
    places.flags.writeable = True  # NumPy hands out diagonals read-only; this array is ours
    places[...] = x
    return result


@embed_diagonal.vjp("x")
def _(g, offset, axis1, axis2):
    return F.diagonal(g, offset, axis1, axis2)


@embed_diagonal.place
def _(b, x, shape, offset, axis1, axis2):
    i, j = b.coordinates[axis1], b.coordinates[axis2]
    rest = [c for axis, c in enumerate(b.coordinates) if axis not in (axis1, axis2)]
    on = b.eq((j - i).expr, offset)
    return (
        x.at(*rest, (i if offset >= 0 else j), where=on) if x.shape[-1] else b.constant(0, x.dtype)
    )


@embed_diagonal.samples
def _(s):
    yield Sample(s.real(2), (3, 2))
    yield Sample(s.real(1), (3, 2), 1)
    yield Sample(s.real(2, 2), (2, 2, 3), 0, 2, 0)
    yield Sample(s.real(0), (2, 2), 2, label="empty")


@embed_diagonal.error_samples
def _(s):
    yield ErrorSample(s.real(3), (2, 2), error=ValueError, match=r"\(2,\)\. Received: \(3,\)")
    yield ErrorSample(s.real(2), (2, 2), 0, 0, 0, error=ValueError, match="must differ")


def _canon_plane(ndim: int, offset: Any, axis1: Any, axis2: Any) -> tuple[int, int, int]:
    first = normalize_axis(axis1, ndim, "axis1")
    second = normalize_axis(axis2, ndim, "axis2")
    if first == second:
        raise AxisError(f"axis1 and axis2 must differ. Received: {axis1} and {axis2}")
    return as_int(offset, "offset"), first, second


def _length(shape: Shape, offset: int, axis1: int, axis2: int) -> Any:
    rows, columns = shape[axis1] + min(offset, 0), shape[axis2] - max(offset, 0)
    return size_max(size_min(rows, columns), 0)


@composite(method=True)
def diag(x: Any, k: int = 0, *, diagonal: int | None = None) -> Any:
    """Return the k-th diagonal of a matrix, or the matrix that has a vector there.

    >>> import weft as wf
    >>> wf.diag(wf.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    k = as_int(k if diagonal is None else diagonal, "diag: the diagonal k")
    if x.ndim == 1:
        return diag_embed(x, k)
    if x.ndim != 2:
        raise ShapeError(
            f"diag: a vector or a matrix is needed. Received: shape {tuple(x.shape)}; "
            "diagonal and diag_embed take any number of dimensions"
        )
    return F.diagonal(x, k)


@composite(method=True)
def diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Return matrices in the plane of two new axes that have x's last axis on a diagonal."""
    if x.ndim == 0:
        raise ShapeError("diag_embed: a 0-d tensor has no axis to lay on a diagonal")
    offset, axis1, axis2 = _canon_plane(x.ndim + 1, offset, dim1, dim2)
    shape = list(x.shape[:-1])
    for axis in sorted((axis1, axis2)):
        shape.insert(axis, x.shape[-1] + abs(offset))
    return F.embed_diagonal(x, tuple(shape), offset, axis1, axis2)


@composite(method=False)
def block_diag(*tensors: Any) -> Any:
    """Return a matrix with the given matrices along its diagonal and zeros elsewhere."""
    blocks = [F.atleast_2d(x) for x in tensors]
    for block in blocks:
        if block.ndim != 2:
            raise ShapeError(
                f"block_diag: at most two dimensions. Received: shape {tuple(block.shape)}"
            )
    width = sum(block.shape[1] for block in blocks)
    rows, left = [], 0
    for block in blocks:
        right = width - left - block.shape[1]
        rows.append(F.pad(block, ((0, 0), (left, right))))
        left += block.shape[1]
    return F.concat(rows, 0)
