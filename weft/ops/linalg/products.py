"""Products of vectors and matrices, written in matmul; cross is an operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.batching import with_rank
from ...core.dim import may_equal, typical
from ...core.dispatch import as_sequence, sum_to
from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite, general, op
from ...core.operands import is_number
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, as_int, broadcast, normalize_axis
from ...core.tensor import Tensor
from .._halves import rounded_once, through_float32
from .._operands import names_errors
from ._matrices import check_matrix, check_square, column, identity_like, operand, row

Number = bool | int | float


# -- vectors --------------------------------------------------------------------------------------


@composite(method=True, public=("wf",))
def dot(x: Any, y: Any) -> Any:
    """Return NumPy's dot: vectors give their inner product, matrices their product.

    In general the last axis of x is summed against the second-to-last of y (the only one of a
    vector); a 0-d operand multiplies.

    >>> import weft as wf
    >>> wf.dot(wf.tensor([1.0, 2.0]), wf.tensor([3.0, 4.0]))
    tensor(11.)
    """
    x, y = operand(x), operand(y)
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    if y.ndim <= 2:
        return F.matmul(x, y)
    return F.tensordot(x, y, axes=(-1, -2))


@composite(method=True, public=("wf",))
def vdot(x: Any, y: Any) -> Any:
    """Return the inner product of two tensors of equally many elements, taken as flat vectors."""
    x, y = operand(x), operand(y)
    if x.size != y.size:
        raise ShapeError(
            f"vdot: x and y must have equally many elements. Received: {x.shape} and {y.shape}"
        )
    return F.matmul(F.reshape(x, (x.size,)), F.reshape(y, (y.size,)))


@composite(method=True, public=("wf", "linalg"))
def vecdot(x: Any, y: Any, *, axis: int = -1) -> Any:
    """Return inner products along an axis of equal size; the other axes broadcast."""
    x, y = operand(x), operand(y)
    sizes = [t.shape[normalize_axis(axis, t.ndim, "vecdot: axis")] for t in (x, y)]
    if sizes[0] != sizes[1]:
        raise ShapeError(
            f"vecdot: x and y must have the same size along axis {axis}. "
            f"Received: {x.shape} and {y.shape}"
        )
    x, y = F.moveaxis(x, axis, -1), F.moveaxis(y, axis, -1)
    return F.matmul(row(x), column(y))[..., 0, 0]


@composite(method=True, public=("wf",))
def inner(x: Any, y: Any) -> Any:
    """Return the sums of products over the last axes of x and y.

    Shapes: (..., k) and (*, k) -> (..., *); a 0-d operand multiplies.
    """
    x, y = operand(x), operand(y)
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    return F.tensordot(x, y, axes=(-1, -1))


@composite(method=True, aliases=("ger",), public={"wf": ("outer", "ger"), "linalg": ("outer",)})
def outer(x: Any, y: Any) -> Any:
    """Return the matrix of products x[i] * y[j] of two vectors; more dimensions are flattened."""
    x, y = operand(x), operand(y)
    return F.reshape(x, (x.size, 1)) * F.reshape(y, (y.size,))


@op(general, promote="common", multilinear=("x", "y"), public=("wf", "linalg"))
def cross(x: Tensor, y: Tensor, *, axis: int = -1) -> Tensor:
    """Return the vector product of 3-vectors along an axis; the other axes broadcast.

    >>> import weft as wf
    >>> wf.cross(wf.tensor([1.0, 0.0, 0.0]), wf.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """


@cross.canon
def _(x, y, axis):
    ndim = max(x.ndim, y.ndim)
    axis = normalize_axis(axis, ndim) - ndim  # counted from the end, where broadcasting aligns
    for t in (x, y):
        if t.ndim < -axis or t.shape[axis] != 3:
            raise ShapeError(
                f"x and y must hold 3-vectors along axis {axis}. "
                f"Received: shapes {tuple(x.shape)} and {tuple(y.shape)}"
            )
    return (axis,)


@cross.infer
def _(x, y, axis):
    return TensorType(broadcast(x.shape, y.shape), x.dtype)


@cross.eval
@through_float32
def _(x, y, axis):
    (x0, x1, x2), (y0, y1, y2) = np.moveaxis(x, axis, 0), np.moveaxis(y, axis, 0)
    parts = (x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0)
    return np.stack(parts, axis=axis)


@cross.place
def _(b, x, y, axis):
    after, before = (b.table(np.roll(np.arange(3), k)).at(b.coordinates[axis]) for k in (2, 1))
    element = [
        _component(b, v, axis, i) for v, i in ((x, after), (y, before), (x, before), (y, after))
    ]
    return element[0] * element[1] - element[2] * element[3]


def _component(b, x, axis, index):
    """Return an element of one vector of x, which broadcasts to the result."""
    axes = list(b.coordinates)
    axes[axis] = index
    own = axes[len(axes) - x.ndim :]
    return x.at(*(0 if n == 1 else place for n, place in zip(x.shape, own, strict=True)))


@cross.vjp("x")
def _(g, y, x_shape, axis):
    return sum_to(F.cross(y, g, axis=axis), x_shape)


@cross.vjp("y")
def _(g, x, y_shape, axis):
    return sum_to(F.cross(g, x, axis=axis), y_shape)


@cross.batch
def _(x, y, axis):
    ndim = max(x.ndim, y.ndim) - 1
    return F.cross(with_rank(x, ndim), with_rank(y, ndim), axis=axis)


@cross.samples
def _(s):
    for x, y in (((3,), (3,)), ((2, 3), (3,)), ((2, 1, 3), (2, 3)), ((0, 3), (3,))):
        yield Sample(s.real(*x), s.real(*y))
    yield Sample(s.real(3, 2), s.real(3, 2), axis=0)
    yield Sample(s.strided(2, 3), s.strided(2, 3), label="non-contiguous")
    yield Sample(s.integers(3), s.integers(3), label="integers")


@cross.error_samples
def _(s):
    shapes = r"3-vectors along axis -1.*\(2,\) and \(3,\)"
    yield ErrorSample(s.real(2), s.real(3), error=ValueError, match=shapes)
    yield ErrorSample(s.real(2, 3), s.real(2, 3), axis=2, error=IndexError, match="axis 2")


# -- matrices -------------------------------------------------------------------------------------


@composite(method=True, public=("wf",))
def mv(x: Any, vec: Any) -> Any:
    """Return the product of a matrix and a vector."""
    x, vec = operand(x), operand(vec)
    _check_ndim("mv", ("x", x, 2), ("vec", vec, 1))
    return F.matmul(x, vec)


@composite(method=True, public=("wf",))
def bmm(x: Any, y: Any) -> Any:
    """Return the products of two stacks of matrices, (b, m, k) and (b, k, n)."""
    x, y = operand(x), operand(y)
    _check_ndim("bmm", ("x", x, 3), ("y", y, 3))
    if x.shape[0] != y.shape[0]:
        raise ShapeError(
            f"bmm: x and y must have the same batch size. Received: {x.shape} and {y.shape}"
        )
    return F.matmul(x, y)


@composite(method=True, public=("wf",))
@names_errors
@rounded_once
def addmm(x: Any, a: Any, b: Any, *, beta: Number = 1, alpha: Number = 1) -> Any:
    """Return beta * x + alpha * (a @ b) for matrices a and b; x broadcasts.

    With beta = 0 the values of x, NaN included, play no part.
    """
    x, a, b = operand(x), operand(a), operand(b)
    _check_ndim("addmm", ("a", a, 2), ("b", b, 2))
    return _add_product("addmm", x, F.matmul(a, b), beta, alpha)


@composite(method=True, public=("wf",))
@names_errors
@rounded_once
def addmv(x: Any, a: Any, vec: Any, *, beta: Number = 1, alpha: Number = 1) -> Any:
    """Return beta * x + alpha * (a @ vec) for a matrix and a vector; x broadcasts."""
    x, a, vec = operand(x), operand(a), operand(vec)
    _check_ndim("addmv", ("a", a, 2), ("vec", vec, 1))
    return _add_product("addmv", x, F.matmul(a, vec), beta, alpha)


@composite(method=True, public=("wf",))
@names_errors
@rounded_once
def baddbmm(x: Any, a: Any, b: Any, *, beta: Number = 1, alpha: Number = 1) -> Any:
    """Return beta * x + alpha * (a @ b) for stacks of matrices (b, m, k), (b, k, n)."""
    return _add_product("baddbmm", operand(x), bmm(a, b), beta, alpha)


@composite(method=True, public=("wf",))
@names_errors
@rounded_once
def addbmm(x: Any, a: Any, b: Any, *, beta: Number = 1, alpha: Number = 1) -> Any:
    """Return beta * x + alpha times the sum of the products of two stacks of matrices."""
    return _add_product("addbmm", operand(x), F.sum(bmm(a, b), 0), beta, alpha)


@composite(method=True, public=("wf",))
@names_errors
@rounded_once
def addr(x: Any, u: Any, v: Any, *, beta: Number = 1, alpha: Number = 1) -> Any:
    """Return beta * x + alpha times the outer product of two vectors; x broadcasts."""
    x, u, v = operand(x), operand(u), operand(v)
    _check_ndim("addr", ("u", u, 1), ("v", v, 1))
    return _add_product("addr", x, F.unsqueeze(u, 1) * F.unsqueeze(v, 0), beta, alpha)


def _add_product(name: str, x: Any, product: Any, beta: Number, alpha: Number) -> Any:
    shape = tuple(product.shape)
    if not may_equal(broadcast(tuple(x.shape), shape), shape):
        raise ShapeError(f"{name}: x must broadcast to the product's shape {shape}; got {x.shape}")
    if not is_number(alpha, 1):
        product = product * alpha
    if is_number(beta, 0):
        return product
    return (x if is_number(beta, 1) else x * beta) + product


@composite(method=True, public=("wf", "linalg"))
@rounded_once
def matrix_power(x: Any, n: int) -> Any:
    """Return square matrices multiplied n times by themselves; n < 0 takes the inverse.

    Repeated squaring needs about 2 log2(n) products.
    """
    x = operand(x)
    check_square(x, "matrix_power: x")
    n = as_int(n, "matrix_power: n")
    if n == 0:
        return identity_like(x)
    if n < 0:
        x, n = F.inv(x), -n
    result = None
    while n:
        if n & 1:
            result = x if result is None else F.matmul(result, x)
        n >>= 1
        x = F.matmul(x, x) if n else x
    return result


@composite()
def multi_dot(tensors: Sequence[Any]) -> Any:
    """Return the product of two or more matrices, multiplied in the cheapest order.

    The first and the last may be vectors.
    """
    matrices = [operand(t) for t in as_sequence(tensors, "multi_dot: tensors")]
    if len(matrices) < 2:
        raise ArgumentError(f"multi_dot: needs at least two tensors. Received: {len(matrices)}")
    ends = (0, len(matrices) - 1)
    for i, t in enumerate(matrices):
        if t.ndim != 2 and not (t.ndim == 1 and i in ends):
            raise ShapeError(
                f"multi_dot: tensors[{i}] must be a matrix (the first and last may be vectors). "
                f"Received: shape {t.shape}"
            )
    return _chain_product(*matrices)


@rounded_once
def _chain_product(*matrices: Any) -> Any:
    split = _best_splits(_chain_sizes(matrices))
    return _multiply_chain(matrices, split, 0, len(matrices) - 1)


def _chain_sizes(matrices: Sequence[Any]) -> list[int]:
    """Return the row count of the first matrix and the column count of each."""
    first, last = matrices[0], matrices[-1]
    rows = 1 if first.ndim == 1 else first.shape[0]
    inner = [m.shape[-1] for m in matrices[:-1]]
    return [rows, *inner, 1 if last.ndim == 1 else last.shape[-1]]


def _best_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Return where to split each part of a matrix chain (Cormen et al., section 14.2)."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs = {
                k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            }
            split[i, j] = min(costs, key=lambda k: typical(costs[k]))
            cost[i, j] = costs[split[i, j]]
    return split


def _multiply_chain(
    matrices: Sequence[Any], split: dict[tuple[int, int], int], i: int, j: int
) -> Any:
    if i == j:
        return matrices[i]
    k = split[i, j]
    left = _multiply_chain(matrices, split, i, k)
    return F.matmul(left, _multiply_chain(matrices, split, k + 1, j))


@composite(method=True, public=("wf", "linalg"))
def trace(x: Any, *, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Any:
    """Return the sum of a diagonal of the matrices in the given two axes, by default the last."""
    x = operand(x)
    check_matrix(x, "trace: x")
    return F.sum(F.diagonal(x, offset=offset, axis1=axis1, axis2=axis2), axis=-1)


@composite(keywords={"dim1": "axis1", "dim2": "axis2"}, public={"linalg": ("diagonal",)})
def matrix_diagonal(x: Any, *, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Any:
    """Return a diagonal of the matrices in the given two axes, by default the last.

    So linalg.diagonal in NumPy, PyTorch and the array API; the flat `diagonal` takes the first two.
    """
    return F.diagonal(operand(x), offset, axis1, axis2)


def _check_ndim(name: str, *expected: tuple[str, Any, int]) -> None:
    for what, t, ndim in expected:
        if t.ndim != ndim:
            raise ShapeError(
                f"{name}: {what} must have {ndim} dimension(s). Received: shape {tuple(t.shape)}"
            )
