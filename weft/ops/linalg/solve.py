"""Linear systems: solve, triangular_solve and the inverse."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batching import shifted
from ...core.dispatch import sum_to
from ...core.errors import LinalgError, ShapeError
from ...core.op import F, composite, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType
from ...core.tensor import Tensor
from .._halves import rounded_once
from . import _lapack
from ._matrices import (
    as_flag,
    check_square,
    column,
    in_working_precision,
    naming_failures,
    operand,
    solution_shape,
    solved,
    square_type,
    transposed,
)
from ._samples import regular, square_errors, square_samples

SINGULAR = "the matrix is singular"
BLOCK = 32  # rows solved one by one before a matrix product brings them into the rest


@op(general, promote="float", batch=solved)
def solve(a: Tensor, b: Tensor) -> Tensor:
    """Return x with a @ x = b for square matrices a; batch dimensions broadcast.

    A 1-D b is one right-hand side; otherwise the columns of b are, as in NumPy 2.

    Shapes: (..., n, n) and (..., n, k) -> (..., n, k), or (..., n, n) and (n,) -> (..., n).

    >>> import weft as wf
    >>> wf.linalg.solve(wf.tensor([[2.0, 0.0], [0.0, 4.0]]), wf.tensor([1.0, 1.0]))
    tensor([0.5 , 0.25])
    """


@solve.infer
def _(a, b):
    check_square(a, "a")
    return TensorType(solution_shape(a, b), a.dtype)


solve.eval(
    in_working_precision(
        naming_failures(_lapack.solve, SINGULAR, probe=lambda a, b: _lapack.inv(a))
    )
)


@solve.vjp("a")
def _(g, a, out, b_shape, a_shape):
    # From a dx + da x = 0: the gradient is -(a^-T g) x^T (Giles 2008, section 2.3.1).
    if len(b_shape) == 1:
        g, out = column(g), column(out)
    return sum_to(-F.matmul(F.solve(transposed(a), g), transposed(out)), a_shape)


@solve.vjp("b")
def _(g, a, b_shape):
    if len(b_shape) == 1:
        return sum_to(F.solve(transposed(a), column(g))[..., 0], b_shape)
    return sum_to(F.solve(transposed(a), g), b_shape)


SYSTEM_SHAPES = (
    ((3, 3), (3,)),
    ((3, 3), (3, 2)),
    ((2, 2, 2), (2, 2, 1)),
    ((2, 2, 2), (2, 2)),
    ((2, 2), (2, 2, 1)),
    ((2, 1, 2, 2), (2, 2, 1)),
    ((2, 2, 2), (2,)),
    ((1, 1), (1,)),
    ((0, 0), (0, 2)),
    ((0, 2, 2), (0, 2, 1)),
    ((2, 2), (2, 0)),
)


@solve.samples
def _(s):
    for a, b in SYSTEM_SHAPES:
        yield Sample(regular(s, *a), s.real(*b))
    yield Sample(regular(s, 3, 3).T, s.strided(3, 2), label="non-contiguous")
    yield Sample(np.array([[2, 1], [1, 3]]), np.array([1, 2]), grad=0, label="integers")


@solve.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), s.real(2), error=ValueError, match=r"square.*\(2, 3\)")
    yield ErrorSample(s.real(3), s.real(3), error=ValueError, match=r"a must be a matrix.*\(3,\)")
    yield ErrorSample(s.real(2, 2), s.real(3), error=ValueError, match=r"\(2, 2\).*\(3,\)")
    stack = np.stack([np.eye(2), np.ones((2, 2))])
    yield ErrorSample(
        stack, s.real(2, 1), error=ValueError, match=r"singular at batch index \(1,\)"
    )
    yield ErrorSample(np.zeros((2, 2)), s.real(2), error=ValueError, match="matrix is singular")


@op(general, promote="float", aliases=("inverse",), batch=shifted)
def inv(x: Tensor) -> Tensor:
    """Return the inverses of square matrices.

    To solve equations use `solve`, which is faster and more accurate.
    """


inv.infer(square_type)
inv.eval(in_working_precision(naming_failures(_lapack.inv, SINGULAR)))


@inv.vjp("x")
def _(g, out):
    turned = transposed(out)
    return -F.matmul(F.matmul(turned, g), turned)


inv.samples(square_samples)


@inv.error_samples
def _(s):
    yield from square_errors(s)
    yield ErrorSample(np.zeros((2, 2)), error=ValueError, match="matrix is singular")
    stack = np.stack([np.eye(2), np.zeros((2, 2))])
    yield ErrorSample(stack, error=ValueError, match=r"singular at batch index \(1,\)")


@op(
    general,
    promote="float",
    method=False,  # PyTorch's method takes the operands the other way round
    aliases=("solve_triangular",),
    keywords={"unitriangular": "unit_diagonal"},
    public=True,
    batch=solved,
)
def triangular_solve(
    a: Tensor,
    b: Tensor,
    *,
    upper: bool = False,
    transpose: bool = False,
    unit_diagonal: bool = False,
) -> Tensor:
    """Return x with a @ x = b for triangular matrices a; batch dimensions broadcast.

    upper           read the upper triangle; otherwise the lower one
    transpose       solve a.T @ x = b
    unit_diagonal   take the diagonal as ones, whatever it holds

    The other triangle is never read and its gradient is zero. Shapes are those of `solve`.
    """


@triangular_solve.canon
def _(a, b, upper, transpose, unit_diagonal):
    return (
        as_flag(upper, "upper"),
        as_flag(transpose, "transpose"),
        as_flag(unit_diagonal, "unit_diagonal"),
    )


@triangular_solve.infer
def _(a, b, upper, transpose, unit_diagonal):
    check_square(a, "a")
    return TensorType(solution_shape(a, b), a.dtype)


@triangular_solve.eval
@in_working_precision
def _(a, b, upper, transpose, unit_diagonal):
    check_square(a, "a")
    shape = solution_shape(a, b)
    if not unit_diagonal:
        _check_diagonal(a)
    x = b[:, None] if b.ndim == 1 else b
    x = np.array(np.broadcast_to(x, shape if b.ndim > 1 else (*shape, 1)), order="C")
    if transpose:
        a, upper = np.swapaxes(a, -1, -2), not upper
    if upper:  # reversing rows and columns turns the upper triangle into the lower one
        a = a[..., ::-1, ::-1]
        _substitute(a, x[..., ::-1, :], unit_diagonal)
    else:
        _substitute(a, x, unit_diagonal)
    return x[..., 0] if b.ndim == 1 else x


@triangular_solve.spelling
def _(types, upper, transpose, unit_diagonal):
    return (
        f"{{solved}}({{a}}, {{b}}, {upper}, {transpose}, {unit_diagonal})",
        {"solved": _solve_triangle},
    )


def _solve_triangle(a, b, upper, transpose, unit_diagonal):
    a = np.triu(a) if upper else np.tril(a)
    if unit_diagonal:
        a = np.where(np.eye(a.shape[-1], dtype=bool), 1.0, a)
    return np.linalg.solve(np.swapaxes(a, -1, -2) if transpose else a, b)


def _check_diagonal(a):
    zeros = np.argwhere(np.diagonal(a, axis1=-2, axis2=-1) == 0)
    if zeros.size:
        *batch, place = (int(i) for i in zeros[0])
        where = f" at batch index {tuple(batch)}" if batch else ""
        raise LinalgError(f"{SINGULAR}{where}: element {place} of its diagonal is zero")


def _substitute(a, x, unit_diagonal):
    """Overwrite x with the solution for lower triangles, row by row inside blocks of rows."""
    n = a.shape[-1]
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        x[..., start:stop, :] -= a[..., start:stop, :start] @ x[..., :start, :]
        for i in range(start, stop):
            if i > start:
                known = x[..., start:i, :]
                x[..., i, :] -= (a[..., i : i + 1, start:i] @ known)[..., 0, :]
            if not unit_diagonal:
                x[..., i, :] /= a[..., i, i, None]


@triangular_solve.vjp("a")
def _(g, a, out, a_shape, b_shape, upper, transpose, unit_diagonal):
    if len(b_shape) == 1:
        g, out = column(g), column(out)
    back = F.triangular_solve(
        a, g, upper=upper, transpose=not transpose, unit_diagonal=unit_diagonal
    )
    left, right = (out, back) if transpose else (back, out)
    full = -F.matmul(left, transposed(right))
    skip = int(unit_diagonal)
    read = F.triu(full, skip) if upper else F.tril(full, -skip)
    return sum_to(read, a_shape)


@triangular_solve.vjp("b")
def _(g, a, b_shape, upper, transpose, unit_diagonal):
    flags = {"upper": upper, "transpose": not transpose, "unit_diagonal": unit_diagonal}
    if len(b_shape) == 1:
        return sum_to(F.triangular_solve(a, column(g), **flags)[..., 0], b_shape)
    return sum_to(F.triangular_solve(a, g, **flags), b_shape)


@triangular_solve.samples
def _(s):
    for a, b in SYSTEM_SHAPES:
        yield Sample(_dominant(s, *a), s.real(*b))
    for upper in (False, True):
        for transpose in (False, True):
            a, b = _dominant(s, 3, 3), s.real(3, 2)
            yield Sample(a, b, upper=upper, transpose=transpose)
            yield Sample(a, b, upper=upper, transpose=transpose, unit_diagonal=True)
    large = _dominant(s, 70, 70)
    yield Sample(large, s.real(70, 2), grad=0, label="several blocks")
    yield Sample(large, s.real(70, 2), upper=True, grad=0, label="several blocks")


def _dominant(s, *shape):
    """Return matrices whose diagonal outweighs the rest, so that either triangle is regular."""
    return s.real(*shape) * 0.5 / max(shape[-1], 1) * 3 + 2.0 * np.eye(shape[-1])


@triangular_solve.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), s.real(2), error=ValueError, match=r"square.*\(2, 3\)")
    yield ErrorSample(s.real(2, 2), s.real(3, 1), error=ValueError, match="2 and 3 rows")
    singular = np.array([[1.0, 0.0], [1.0, 0.0]])
    yield ErrorSample(singular, s.real(2), error=ValueError, match="element 1 of its diagonal")
    flag = "upper must be True or False.*'yes'"
    yield ErrorSample(s.real(2, 2), s.real(2), upper="yes", error=TypeError, match=flag)


@composite()
@rounded_once
def cholesky_solve(b: Any, factor: Any, *, upper: bool = False) -> Any:
    """Return x with a @ x = b, given the Cholesky factor of a."""
    b, factor = operand(b), operand(factor)
    if b.ndim == 0:
        raise ShapeError("cholesky_solve: b must be a vector or matrices. Received: a 0-d tensor")
    half = F.triangular_solve(factor, b, upper=upper, transpose=upper)
    return F.triangular_solve(factor, half, upper=upper, transpose=not upper)
